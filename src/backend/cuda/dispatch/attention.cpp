// The tables of attention: one new token for each sequence, rows on their own, and tiles of a prompt's rows.
#include <bit>

#include "backend/cuda/dispatch/dispatch.h"

namespace inferno::cuda {
namespace {

bool has_bf16_cache(const AttentionProblem& problem) {
  return problem.cache == CacheTypes{DType::bf16, DType::bf16};
}

// attention_decode has a kernel for each of these.
bool has_decode_cache(const AttentionProblem& problem) {
  const DType type = problem.cache.keys;
  return type == problem.cache.values &&
         (type == DType::bf16 || type == DType::q8_0 || type == DType::f8_e4m3);
}

// Rows enough to fill tiles, of a head size that the tensor cores take.
bool has_tiles(const AttentionProblem& problem) {
  return problem.activations == DType::bf16 && problem.tokens >= 4 * problem.sequences &&
         problem.tokens > 8 && problem.spec.head_dim % 8 == 0 && problem.spec.head_dim <= 128;
}

constexpr std::array attend_table = {
    AttendRow{AttendKernel::hopper, "attention_hopper",
              [](const AttentionProblem& problem) {
                return has_tiles(problem) && has_bf16_cache(problem) && problem.device.warp_groups &&
                       problem.sequences == 1;
              }},
    // Sequences with few new tokens among others have small tiles.
    AttendRow{AttendKernel::hopper_and_tiles, "attention_hopper + attention_tiles",
              [](const AttentionProblem& problem) {
                return has_tiles(problem) && has_bf16_cache(problem) && problem.device.warp_groups;
              }},
    AttendRow{AttendKernel::tiles, "attention_tiles", has_tiles},
    AttendRow{AttendKernel::rows, "attention_rows", takes_everything},
};
static_assert(is_in_order(attend_table) && attend_table.size() == attend_kernels);

constexpr std::array rotate_attend_table = {
    RotateAttendRow{RotateAttendKernel::decode, "attention_decode",
                    [](const AttentionProblem& problem) {
                      const int head = problem.spec.head_dim;
                      return problem.tokens > 0 && problem.activations == DType::bf16 &&
                             has_decode_cache(problem) && (head == 64 || head == 128) &&
                             problem.tokens == problem.sequences && problem.rope_cols <= head &&
                             std::has_single_bit(static_cast<unsigned>(problem.block_size));
                    }},
    RotateAttendRow{RotateAttendKernel::rotate_then_attend, "rotate_and_store, attend", takes_everything},
};
static_assert(is_in_order(rotate_attend_table) && rotate_attend_table.size() == rotate_attend_kernels);

}  // namespace

const AttendRow& choose_attend(const AttentionProblem& problem) {
  return first_that_takes(attend_table, problem);
}
const RotateAttendRow& choose_rotate_and_attend(const AttentionProblem& problem) {
  return first_that_takes(rotate_attend_table, problem);
}

}  // namespace inferno::cuda
