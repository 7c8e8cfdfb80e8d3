// What an engine is told when it is made, and the numbers it reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace inferno {

struct EngineOptions {
  int max_sequences = 64;       // that run at once; never more than the decoder's max_logit_rows
  int max_step_tokens = 512;    // rows of a step; never more than the decoder's max_tokens
  int max_prompt_tokens = 256;  // rows of a step that may belong to prompts while answers are being written
  int max_waiting = 1024;       // requests; one more is Error{overloaded}
  int max_logprobs = 20;        // alternatives a request may ask for
  int block_size = 32;          // tokens
  std::size_t cache_bytes = 0;  // 0: what max_sequences need, within half of the free memory
  bool prefix_cache = true;
  // No bit of an answer depends on its neighbours. Error{unsupported} when the backend cannot promise it.
  bool deterministic = false;
  // A step is queued before the tokens of the one ahead of it are read, where it does not depend on what they
  // are. Unset: if the backend queues.
  std::optional<bool> plans_ahead = {};
};

struct EngineStats {
  int running = 0;                  // sequences
  int waiting = 0;                  // requests that have not begun
  int blocks = 0, free_blocks = 0;  // over all window groups
  std::size_t cache_bytes = 0;
  std::uint64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, steps = 0,
                preemptions = 0;
};

}  // namespace inferno
