// What a request must satisfy before it is queued.
#pragma once

#include "engine/request.h"

namespace inferno {

struct RequestLimits {
  int vocab = 0;
  int context = 0;
  int model_context = 0;  // what the model was made for; `context` may be less
  int max_logprobs = 20;
  int max_choices = 128;
  int max_listed = 4096;  // entries of each of logit_bias, banned, allowed and stop_tokens
};

// Error{invalid_request} naming the field, what it may be and what it was.
void check_request(const GenerationRequest& request, const RequestLimits& limits);

}  // namespace inferno
