// Attention with the vector kernel. A task is some query rows of one sequence and some key heads. A few rows
// (decoding) take all heads at once, because a context is then read as it lies in memory.
//
// A context is always computed in segments that begin at fixed positions, each from a fresh state, and put
// together in order. When there are fewer tasks than threads, several threads take segments of one task: who
// computes a segment, and what else the step holds, never changes a bit of the result.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"

namespace inferno::cpu {
namespace {

constexpr int queries_at_once = 64;     // rows times heads: enough to pay for turning the keys
constexpr int segment_positions = 256;  // whole chunks; enough to be worth handing out
static_assert(segment_positions % attend_chunk == 0);

struct Task {
  int sequence;
  int kv_head, kv_heads;  // the first and how many
  int row, rows;          // of the batch
  int begin, end;         // positions that any of them sees
};

struct Shape {
  int group;   // query heads for each key head
  int padded;  // head_dim rounded up to whole vectors
  explicit Shape(const AttentionSpec& spec)
      : group(spec.heads / spec.kv_heads), padded((spec.head_dim + 15) / 16 * 16) {}
  int queries_of_head(const Task& task) const { return task.rows * group; }
  // Floats of a task's running state: tops, totals and sums, head after head.
  std::size_t state(const Task& task) const {
    return static_cast<std::size_t>(task.kv_heads * queries_of_head(task)) *
           static_cast<std::size_t>(padded + 2);
  }
};

int first_seen(const AttentionSpec& spec, int own) {
  return spec.window > 0 ? std::max(0, own - spec.window + 1) : 0;
}

std::vector<Task> tasks_of(const AttentionCall& call, const Shape& shape, int threads) {
  std::vector<Task> tasks;
  const std::int32_t* starts = integers(call.step.query_start);
  const std::int32_t* positions = integers(call.step.positions);
  const int sequences = call.step.context_len.rows;
  const int rows_at_once = std::max(1, queries_at_once / shape.group);
  for (int s = 0; s < sequences; ++s) {
    for (int row = starts[s]; row < starts[s + 1]; row += rows_at_once) {
      const int rows = std::min(rows_at_once, starts[s + 1] - row);
      const int begin = first_seen(call.spec, positions[row]), end = positions[row + rows - 1] + 1;
      const std::int64_t parts = std::int64_t{sequences} * ((end - begin) / segment_positions);
      const bool whole = rows < rows_at_once && parts >= threads;
      const int heads = whole ? call.spec.kv_heads : 1;
      for (int h = 0; h < call.spec.kv_heads; h += heads)
        tasks.push_back({s, h, heads, row, rows, begin, end});
    }
  }
  return tasks;
}

// One key head's part of a task's state.
struct State {
  float *tops, *totals, *sums;
  State(float* memory, int queries) : tops(memory), totals(memory + queries), sums(memory + 2 * queries) {}
};
State state_of(float* memory, const Task& task, const Shape& shape, int head) {
  const int queries = shape.queries_of_head(task);
  return State(memory + std::ptrdiff_t{head} * queries * (shape.padded + 2), queries);
}

// A task's queries as the kernel wants them: [kv_heads, rows * group].
struct Queries {
  std::vector<const float*> query;
  std::vector<int> first, last;
  Queries(const Task& task, const AttentionCall& call, const Matrix& qkv) {
    const Shape shape(call.spec);
    const int of_head = shape.queries_of_head(task);
    for (int i = 0; i < task.kv_heads * of_head; ++i) {
      const int row = task.row + i % of_head / shape.group;
      const int head = (task.kv_head + i / of_head) * shape.group + i % shape.group;
      query.push_back(floats(qkv, row) + head * call.spec.head_dim);
      last.push_back(*integers(call.step.positions, row));
      first.push_back(first_seen(call.spec, last.back()));
    }
  }
};

int first_segment(const Task& task) {
  return task.begin / segment_positions;
}
int segments_of(const Task& task) {
  return (task.end + segment_positions - 1) / segment_positions - first_segment(task);
}

// A task's queries for the kernel, to be run against any of its segments.
class TaskRun {
 public:
  TaskRun(const Compute& compute, const Task& task, const AttentionCall& call, const Matrix& qkv,
          float* scratch)
      : kernels_(*compute.kernels), task_(task), shape_(call.spec), queries_(task, call, qkv) {
    const AttentionSpec& spec = call.spec;
    const int of_head = shape_.queries_of_head(task);
    for (int h = 0; h < task.kv_heads; ++h) {
      const int offset = (task.kv_head + h) * spec.head_dim;
      heads_.push_back({.queries = of_head,
                        .query = queries_.query.data() + h * of_head,
                        .first = queries_.first.data() + h * of_head,
                        .last = queries_.last.data() + h * of_head,
                        .first_known = task.begin,
                        .last_known = task.end,
                        .head_dim = spec.head_dim,
                        .scale = spec.scale,
                        .keys = floats(call.cache.keys) + offset,
                        .values = floats(call.cache.values) + offset,
                        .row_stride = call.cache.keys.cols,
                        .block_table = integers(call.group.block_table, task.sequence),
                        .block_size = call.step.block_size,
                        .padded_dim = shape_.padded,
                        .scratch = scratch});
    }
  }

  // From a fresh state in `memory`, chunk by chunk for all heads.
  void segment(int index, float* memory) {
    const int of_head = shape_.queries_of_head(task_);
    for (int h = 0; h < task_.kv_heads; ++h) {
      const State state = state_of(memory, task_, shape_, h);
      std::fill_n(state.tops, of_head, -INFINITY);
      std::fill_n(state.totals, of_head, 0.0f);
      std::fill_n(state.sums, std::ptrdiff_t{of_head} * shape_.padded, 0.0f);
      AttendCall& head = heads_[static_cast<std::size_t>(h)];
      head.tops = state.tops;
      head.totals = state.totals;
      head.sums = state.sums;
    }
    const int whole = (first_segment(task_) + index) * segment_positions;
    const int first = std::max(whole, task_.begin / attend_chunk * attend_chunk);
    const int end = std::min(whole + segment_positions, task_.end);
    const int step = task_.kv_heads == 1 ? segment_positions : attend_chunk;
    for (int begin = first; begin < end; begin += step) {
      for (AttendCall& head : heads_) {
        head.begin = begin;
        head.end = std::min(end, begin + step);
        kernels_.attend(head);
      }
    }
  }

 private:
  const Kernels& kernels_;
  const Task& task_;
  Shape shape_;
  Queries queries_;
  std::vector<AttendCall> heads_;
};

// Adds another segment of the same task. One that a query does not see adds nothing, to the bit.
void merge(State to, State from, int queries, int padded) {
  for (int q = 0; q < queries; ++q) {
    const float top = std::max(to.tops[q], from.tops[q]);
    if (top == -INFINITY) continue;  // neither had a position that this query sees
    const float keep = std::exp(to.tops[q] - top), add = std::exp(from.tops[q] - top);
    to.tops[q] = top;
    to.totals[q] = keep * to.totals[q] + add * from.totals[q];
    float* sum = to.sums + std::ptrdiff_t{q} * padded;
    const float* other = from.sums + std::ptrdiff_t{q} * padded;
    for (int d = 0; d < padded; ++d) sum[d] = keep * sum[d] + add * other[d];
  }
}

// The sink joins the softmax here: a score without a value.
void finish(const Matrix& out, const Task& task, const AttentionCall& call, float* memory) {
  const AttentionSpec& spec = call.spec;
  const Shape shape(spec);
  const int of_head = shape.queries_of_head(task);
  for (int i = 0; i < task.kv_heads * of_head; ++i) {
    const State state = state_of(memory, task, shape, i / of_head);
    const int q = i % of_head, row = task.row + q / shape.group;
    const int head = (task.kv_head + i / of_head) * shape.group + q % shape.group;
    float factor = 1.0f / state.totals[q];
    if (spec.sinks) {
      const float sink = floats(call.weights.sinks)[head], top = std::max(sink, state.tops[q]);
      const float keep = std::exp(state.tops[q] - top);
      factor = keep / (keep * state.totals[q] + std::exp(sink - top));
    }
    float* to = floats(out, row) + head * spec.head_dim;
    const float* sum = state.sums + std::ptrdiff_t{q} * shape.padded;
    for (int d = 0; d < spec.head_dim; ++d) to[d] = factor * sum[d];
  }
}

std::size_t scratch_size(const Shape& shape) {
  return static_cast<std::size_t>(shape.padded + 16) * attend_chunk;
}

void merge_segment(const Task& task, const Shape& shape, float* to, float* from) {
  for (int h = 0; h < task.kv_heads; ++h) {
    merge(state_of(to, task, shape, h), state_of(from, task, shape, h), shape.queries_of_head(task),
          shape.padded);
  }
}

// One thread, all segments. `memory` has room for two states.
void run_task(const Compute& compute, const Task& task, const AttentionCall& call, const Matrix& qkv,
              float* memory, float* scratch) {
  const Shape shape(call.spec);
  TaskRun run(compute, task, call, qkv, scratch);
  run.segment(0, memory);
  float* other = memory + shape.state(task);
  for (int index = 1; index < segments_of(task); ++index) {
    run.segment(index, other);
    merge_segment(task, shape, memory, other);
  }
}

// `parts` threads for each task, each with some of its segments; then one thread for each task merges.
void attend_split(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call,
                  const std::vector<Task>& tasks, int parts) {
  const Shape shape(call.spec);
  std::size_t stride = 0, most = 0;
  for (const Task& task : tasks) {
    stride = std::max(stride, (shape.state(task) + 15) / 16 * 16);
    most = std::max(most, static_cast<std::size_t>(segments_of(task)));
  }
  float* states = compute.scratch.shared(Scratch::Use::partial_attention, tasks.size() * most * stride);
  const auto state_at = [&](std::int64_t task, int segment) {
    return states + (static_cast<std::size_t>(task) * most + static_cast<std::size_t>(segment)) * stride;
  };
  const auto count = static_cast<std::int64_t>(tasks.size());
  compute.pool.parallel_for(count * parts, 1, [&](const auto& range) {
    float* scratch = compute.scratch.own(range.worker, scratch_size(shape));
    for (auto i = range.begin; i < range.end; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i / parts)];
      const int segments = segments_of(task), part = static_cast<int>(i % parts);
      TaskRun run(compute, task, call, qkv, scratch);
      for (int index = segments * part / parts; index < segments * (part + 1) / parts; ++index) {
        run.segment(index, state_at(i / parts, index));
      }
    }
  });
  compute.pool.parallel_for(count, 1, [&](const auto& range) {
    for (auto t = range.begin; t < range.end; ++t) {
      const Task& task = tasks[static_cast<std::size_t>(t)];
      for (int index = 1; index < segments_of(task); ++index) {
        merge_segment(task, shape, state_at(t, 0), state_at(t, index));
      }
      finish(out, task, call, state_at(t, 0));
    }
  });
}

}  // namespace

void attend_tiles(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call) {
  const Shape shape(call.spec);
  const std::vector<Task> tasks = tasks_of(call, shape, compute.pool.threads());
  int longest = 0;
  std::size_t state = 0;
  for (const Task& task : tasks) {
    longest = std::max(longest, task.end - task.begin);
    state = std::max(state, shape.state(task));
  }
  const auto count = static_cast<std::int64_t>(tasks.size());
  const std::int64_t wanted = (compute.pool.threads() + count - 1) / std::max<std::int64_t>(1, count);
  const auto parts = static_cast<int>(std::min<std::int64_t>(wanted, longest / segment_positions));
  if (parts > 1) {
    attend_split(compute, out, qkv, call, tasks, parts);
    return;
  }
  const std::int64_t cost = std::int64_t{longest} * shape.padded * shape.group;
  compute.pool.parallel_for(count, grain_for(compute.pool, count, cost), [&](const auto& range) {
    float* memory = compute.scratch.own(range.worker, scratch_size(shape) + 2 * state);
    for (auto i = range.begin; i < range.end; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      run_task(compute, task, call, qkv, memory + scratch_size(shape), memory);
      finish(out, task, call, memory + scratch_size(shape));
    }
  });
}

}  // namespace inferno::cpu
