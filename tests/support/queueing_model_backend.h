// Counters of the backend that pretends to queue.
#pragma once

namespace inferno::testing {

// The maximum number of queued draws that were not waited for, so far.
int max_draws_under_way();

}  // namespace inferno::testing
