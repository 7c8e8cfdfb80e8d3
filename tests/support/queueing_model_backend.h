// What the backend that says it queues has seen.
#pragma once

namespace inferno::testing {

// How many steps' draws were queued and not waited for at most, so far.
int max_draws_under_way();

}  // namespace inferno::testing
