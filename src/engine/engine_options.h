// The options of an engine, and the statistics it reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cache_types.h"
#include "backend/steps.h"

namespace inferno {

struct EngineOptions {
  int max_sequences = 64;       // running at once; at most the decoder's max_logit_rows
  int max_step_tokens = 512;    // rows of a step; at most the decoder's max_tokens
  int max_prompt_tokens = 256;  // prompt rows of a step while answers are decoded
  // A step with answers that takes longer gets fewer prompt rows; 0: no limit.
  double max_step_seconds = 0.0;
  int max_waiting = 1024;       // requests; further ones get Error{overloaded}
  int max_logprobs = 20;        // maximum number of alternatives per token
  int block_size = 32;          // tokens
  std::size_t cache_bytes = 0;  // 0: what max_sequences need, within half of the free memory
  bool prefix_cache = true;
  // No bit of an answer depends on its neighbours. Error{unsupported} when the backend cannot promise it.
  bool deterministic = false;
  // Queue a step before the tokens of the previous one are read, if it does not depend on their values.
  // Unset: if the backend queues.
  std::optional<bool> plans_ahead = {};
  // Fill EngineStats::device and host_seconds, which costs the device some microseconds a step.
  bool times_steps = false;

  // Sets the limits of steps to those that a device asks for.
  void suit(const StepRows& rows) {
    max_step_tokens = rows.all;
    max_prompt_tokens = rows.prompts_beside_answers;
    max_step_seconds = rows.seconds;
  }
};

struct EngineStats {
  int running = 0;                  // sequences
  int waiting = 0;                  // requests that were in no step yet
  int max_sequences = 0;            // that may run at once
  int full_sequences = 0;           // that fit into the cache if all fill their context
  int blocks = 0, free_blocks = 0;  // over all window groups
  int block_size = 0;               // in tokens
  std::size_t cache_bytes = 0;
  CacheTypes cache_types;
  std::size_t cache_token_bytes = 0;  // of one token, over all layers
  std::uint64_t requests = 0;
  // Tokens of the prompts that were begun, and those of them found in the prefix cache: each prompt is looked
  // up once, so these are the queries and hits of the cache, too.
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;
  std::uint64_t generated_tokens = 0, steps = 0, preemptions = 0;
  // Of the steps: those that only decode, and those that compute prompts beside decodes. The rest computes
  // prompts alone.
  std::uint64_t decode_steps = 0, mixed_steps = 0;
  std::uint64_t step_rows = 0;    // of all steps
  std::uint64_t ahead_steps = 0;  // queued before the tokens of the step before were read
  ReplayCounts replays;
  // With EngineOptions::times_steps. Host time is that of the engine's thread, without waiting for the
  // device or computing in its place.
  StepTimes device;
  double host_seconds = 0.0;
  // Time that the engine's thread spent on the masks of constrained answers, in all and at most in one step.
  // A device that queues waits for that only where it exceeds the forward pass.
  double mask_seconds = 0, max_mask_seconds = 0;
};

}  // namespace inferno
