// A ragged batch over a paged KV cache: sequences of different lengths in scattered blocks. Everything that
// no query may read is poison.
#pragma once

#include <optional>
#include <vector>

#include "backend/backend.h"
#include "support/device.h"

namespace inferno {

struct Sequence {
  int context = 1;  // positions after the step
  int rows = 1;     // the last positions, which are computed in this step
};

struct AttendCase {
  AttentionSpec spec;
  std::vector<Sequence> sequences;
  int block_size = 16;
  double spread = 1.0;                   // standard deviation of queries and keys
  std::optional<CacheTypes> cache = {};  // nullopt: what the backend prefers
};

class AttendScene {
 public:
  AttendScene(Device& device, const AttendCase& attend_case);

  HostMatrix found();
  HostMatrix expected() const;

 private:
  void fill_inputs();
  void place(const std::vector<std::int32_t>& pool);
  Matrix upload_scaled(HostMatrix& values, DType type, const HostMatrix& scales);
  HostMatrix head_of(const HostMatrix& rows, int first, int count, int kv_head) const;

  Device& device_;
  AttendCase case_;
  HostMatrix queries_, sinks_;              // [rows, qkv columns], [1, heads]
  HostMatrix key_scales_, value_scales_;    // [1, kv_heads]
  std::vector<HostMatrix> keys_, values_;   // one for each sequence: [context, kv_heads * head_dim]
  HostMatrix cached_keys_, cached_values_;  // [cache rows, kv_heads * head_dim]
  std::vector<std::int32_t> block_table_;   // [sequences, max_blocks_]
  int max_blocks_ = 0;
  StepInputs step_;
};

}  // namespace inferno
