// The routes of the API, one function each. They run on a worker thread, may throw ApiError or Error, and
// answer through the call: at once, or later from start_generation().
#pragma once

#include <memory>

#include "server/call.h"

namespace inferno::server {

using SharedCall = std::shared_ptr<Call>;

// openai/
void chat_completions(SharedCall call);
void count_chat_tokens(SharedCall call);
void completions(SharedCall call);
void responses(SharedCall call);
void count_response_tokens(SharedCall call);
void list_models(SharedCall call);
void show_model(SharedCall call);

// anthropic/
void messages(SharedCall call);
void count_tokens(SharedCall call);

// tools.cpp: what llama-server and vLLM offer beside the APIs
void tokenize(SharedCall call);
void detokenize(SharedCall call);
void apply_template(SharedCall call);
void show_properties(SharedCall call);

// operations.cpp
void health(SharedCall call);
void live(SharedCall call);
void ready(SharedCall call);
void version(SharedCall call);
void metrics(SharedCall call);

// page.cpp
void page(SharedCall call);

}  // namespace inferno::server
