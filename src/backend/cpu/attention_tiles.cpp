// Attention with the vector kernel. A task is a range of query rows of one sequence and a range of key heads.
// Tasks of few rows (decoding) take all heads, because the context is then read in memory order.
//
// A context is cut into segments at fixed positions; each is reduced on its own, and the results are combined
// in order. So a query's result is the same bit for bit, whichever queries share its task and however many
// threads share the segments.
//
// The kernel reads floats. A cache of another type is widened for it, chunk by chunk.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"

namespace inferno::cpu {
namespace {

constexpr int queries_at_once = 64;        // rows times heads: enough to pay for transposing the keys
constexpr int segment = 4 * attend_chunk;  // positions

struct Task {
  int sequence;
  int kv_head, kv_heads;  // index of the first key head, and their number
  int row, rows;          // of the batch
  int begin, end;         // positions that any of its rows sees

  int first_segment() const { return begin / segment; }
  int segments() const { return (end + segment - 1) / segment - first_segment(); }
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
      const std::int64_t parts = std::int64_t{sequences} * ((end - begin) / segment);
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

// The queries of a task as arguments of the kernel: [kv_heads, rows * group].
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

void clear(const Task& task, const Shape& shape, float* memory) {
  const int of_head = shape.queries_of_head(task);
  for (int h = 0; h < task.kv_heads; ++h) {
    const State state = state_of(memory, task, shape, h);
    std::fill_n(state.tops, of_head, -INFINITY);
    std::fill_n(state.totals, of_head, 0.0f);
    std::fill_n(state.sums, std::ptrdiff_t{of_head} * shape.padded, 0.0f);
  }
}

bool is_widened(const KvLayer& cache) {
  return cache.keys.dtype != DType::f32 || cache.values.dtype != DType::f32;
}

// The arguments of the kernel for a task, except positions and state; of a cache that is widened, except keys
// and values.
std::vector<AttendCall> calls_of(const Task& task, const AttentionCall& call, const Queries& queries) {
  const AttentionSpec& spec = call.spec;
  const Shape shape(spec);
  const int of_head = shape.queries_of_head(task);
  const bool direct = !is_widened(call.cache);
  std::vector<AttendCall> heads;
  for (int h = 0; h < task.kv_heads; ++h) {
    const int offset = (task.kv_head + h) * spec.head_dim;
    heads.push_back({.queries = of_head,
                     .query = queries.query.data() + h * of_head,
                     .first = queries.first.data() + h * of_head,
                     .last = queries.last.data() + h * of_head,
                     .first_known = task.begin,
                     .last_known = task.end,
                     .head_dim = spec.head_dim,
                     .scale = spec.scale,
                     .keys = direct ? floats(call.cache.keys) + offset : nullptr,
                     .values = direct ? floats(call.cache.values) + offset : nullptr,
                     .row_stride = call.cache.keys.cols,
                     .block_table = integers(call.group.block_table, task.sequence),
                     .block_size = call.step.block_size,
                     .padded_dim = shape.padded});
  }
  return heads;
}

// Makes floats of the positions of one chunk that have blocks: position p is then row p % attend_chunk of
// memory that the next chunk overwrites.
class Widener {
 public:
  Widener(const Compute& compute, const AttentionCall& call, const Task& task, float* memory)
      : compute_(compute), call_(call), task_(task), keys_(memory), stride_(Shape(call.spec).padded) {
    // For the kernel, the chunk is the only block of the cache.
    if (is_widened(call.cache)) table_.resize(static_cast<std::size_t>(task.end / attend_chunk + 1));
  }
  explicit operator bool() const { return !table_.empty(); }

  void widen(AttendCall& to, int head) const {
    const CacheHead keys = key_head(call_, task_.kv_head + head);
    const CacheHead values = value_head(call_, task_.kv_head + head);
    const std::int32_t* blocks = integers(call_.group.block_table, task_.sequence);
    const int size = call_.step.block_size;
    float* const value_rows = keys_ + std::ptrdiff_t{attend_chunk} * stride_;
    for (int p = std::max(to.begin, task_.begin); p < std::min(to.end, task_.end); ++p) {
      const std::int64_t row = std::int64_t{blocks[p / size]} * size + p % size;
      const std::ptrdiff_t at = std::ptrdiff_t{p % attend_chunk} * stride_;
      widen(keys, row, keys_ + at);
      widen(values, row, value_rows + at);
    }
    to.keys = keys_;
    to.values = value_rows;
    to.row_stride = stride_;
    to.block_table = table_.data();
    to.block_size = attend_chunk;
  }

 private:
  void widen(const CacheHead& from, std::int64_t row, float* to) const {
    compute_.kernels->widen(
        {.out = to, .in = from.at(row), .count = from.dim, .type = from.matrix.dtype, .scale = from.scale});
  }

  const Compute& compute_;
  const AttentionCall& call_;
  const Task& task_;
  float* keys_;
  std::ptrdiff_t stride_;
  std::vector<std::int32_t> table_;  // all 0; empty if the cache has floats
};
std::size_t widened_size(const Shape& shape) {
  return std::size_t{2} * static_cast<std::size_t>(shape.padded) * attend_chunk;
}

// The kernel's calls for the heads of a task, and where they read and write.
struct HeadCalls {
  HeadCalls(const Compute& compute, const Task& task, const AttentionCall& call, const Queries& queries,
            float* a_scratch)
      : calls(calls_of(task, call, queries)),
        widener(compute, call, task, a_scratch),
        scratch(a_scratch + (widener ? widened_size(Shape(call.spec)) : 0)) {}

  std::vector<AttendCall> calls;
  Widener widener;
  float* scratch;
};

// The queries of a task against one segment, from a fresh state: chunk by chunk for all heads.
void run_segment(const Compute& compute, const Task& task, const Shape& shape, HeadCalls& heads, int index,
                 float* memory) {
  clear(task, shape, memory);
  const int chunk = task.begin / attend_chunk * attend_chunk;  // the first that any query sees
  const int from = std::max(chunk, index * segment), to = std::min(task.end, (index + 1) * segment);
  const int step = task.kv_heads == 1 && !heads.widener ? segment : attend_chunk;
  for (int begin = from; begin < to; begin += step) {
    for (int h = 0; h < task.kv_heads; ++h) {
      const State state = state_of(memory, task, shape, h);
      AttendCall& head = heads.calls[static_cast<std::size_t>(h)];
      head.begin = begin;
      head.end = std::min(to, begin + step);
      if (heads.widener) heads.widener.widen(head, h);
      head.tops = state.tops;
      head.totals = state.totals;
      head.sums = state.sums;
      head.scratch = heads.scratch;
      compute.kernels->attend(head);
    }
  }
}

// Adds the next segment of a task's context.
void merge(State to, State from, int queries, int padded) {
  for (int q = 0; q < queries; ++q) {
    const float top = std::max(to.tops[q], from.tops[q]);
    if (top == -INFINITY) continue;  // neither part had a position that this query sees
    const float keep = std::exp(to.tops[q] - top), add = std::exp(from.tops[q] - top);
    to.tops[q] = top;
    to.totals[q] = keep * to.totals[q] + add * from.totals[q];
    float* sum = to.sums + std::ptrdiff_t{q} * padded;
    const float* other = from.sums + std::ptrdiff_t{q} * padded;
    for (int d = 0; d < padded; ++d) sum[d] = keep * sum[d] + add * other[d];
  }
}

void merge(const Task& task, const Shape& shape, float* to, float* from) {
  for (int h = 0; h < task.kv_heads; ++h) {
    merge(state_of(to, task, shape, h), state_of(from, task, shape, h), shape.queries_of_head(task),
          shape.padded);
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

std::size_t scratch_size(const Shape& shape, bool widened) {
  return static_cast<std::size_t>(shape.padded + 16) * attend_chunk + (widened ? widened_size(shape) : 0);
}

std::size_t aligned(std::size_t size) {
  return (size + 15) / 16 * 16;
}

// Combines all segments of a task in `memory`; `spare` has room for one more state.
void run_task(const Compute& compute, const Task& task, const AttentionCall& call, const Matrix& qkv,
              float* memory, float* spare, float* scratch) {
  const Shape shape(call.spec);
  const Queries queries(task, call, qkv);
  HeadCalls heads(compute, task, call, queries, scratch);
  for (int i = 0; i < task.segments(); ++i) {
    run_segment(compute, task, shape, heads, task.first_segment() + i, i == 0 ? memory : spare);
    if (i > 0) merge(task, shape, memory, spare);
  }
}

// Computes every segment by itself, in any order; then one thread per task combines them.
void attend_split(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call,
                  const std::vector<Task>& tasks, std::size_t state) {
  const Shape shape(call.spec);
  std::vector<int> first = {0};  // index of the first segment of each task
  for (const Task& task : tasks) first.push_back(first.back() + task.segments());
  float* states =
      compute.scratch.shared(Scratch::Use::partial_attention, static_cast<std::size_t>(first.back()) * state);
  compute.pool.parallel_for(first.back(), 1, [&](const auto& range) {
    float* scratch = compute.scratch.own(range.worker, scratch_size(shape, is_widened(call.cache)));
    for (auto i = range.begin; i < range.end; ++i) {
      const auto at = std::ranges::upper_bound(first, static_cast<int>(i)) - first.begin() - 1;
      const Task& task = tasks[static_cast<std::size_t>(at)];
      const Queries queries(task, call, qkv);
      HeadCalls heads(compute, task, call, queries, scratch);
      const int index = task.first_segment() + static_cast<int>(i) - first[static_cast<std::size_t>(at)];
      run_segment(compute, task, shape, heads, index, states + static_cast<std::size_t>(i) * state);
    }
  });
  compute.pool.parallel_for(static_cast<std::int64_t>(tasks.size()), 1, [&](const auto& range) {
    for (auto t = static_cast<std::size_t>(range.begin); t < static_cast<std::size_t>(range.end); ++t) {
      float* whole = states + static_cast<std::size_t>(first[t]) * state;
      for (int i = 1; i < tasks[t].segments(); ++i) {
        merge(tasks[t], shape, whole, whole + static_cast<std::size_t>(i) * state);
      }
      finish(out, tasks[t], call, whole);
    }
  });
}

}  // namespace

ScratchFloats attend_tiles_scratch(const AttentionSpec& spec, int threads, int context) {
  const Shape shape(spec);
  const Task largest = {.sequence = 0,
                        .kv_head = 0,
                        .kv_heads = spec.kv_heads,
                        .row = 0,
                        .rows = std::max(1, queries_at_once / shape.group),
                        .begin = 0,
                        .end = 0};
  const std::size_t state = aligned(shape.state(largest));
  const int seen = spec.window > 0 ? std::min(context, spec.window + segment) : context;
  // attend_split() runs only with fewer tasks than threads.
  const auto segments = static_cast<std::size_t>(threads - 1) * static_cast<std::size_t>(seen / segment + 1);
  return {.own = scratch_size(shape, /*widened=*/true) + 2 * state, .shared = segments * state};
}

void attend_tiles(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call) {
  const Shape shape(call.spec);
  const std::vector<Task> tasks = tasks_of(call, shape, compute.pool.threads());
  int longest = 0;
  std::size_t state = 0;
  for (const Task& task : tasks) {
    longest = std::max(longest, task.end - task.begin);
    state = std::max(state, aligned(shape.state(task)));
  }
  const auto count = static_cast<std::int64_t>(tasks.size());
  if (count < compute.pool.threads() && longest > segment) {
    attend_split(compute, out, qkv, call, tasks, state);
    return;
  }
  const std::size_t room = scratch_size(shape, is_widened(call.cache));
  const std::int64_t cost = std::int64_t{longest} * shape.padded * shape.group;
  compute.pool.parallel_for(count, grain_for(compute.pool, count, cost), [&](const auto& range) {
    float* scratch = compute.scratch.own(range.worker, room + 2 * state);
    float* memory = scratch + room;
    for (auto i = range.begin; i < range.end; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      run_task(compute, task, call, qkv, memory, memory + state, scratch);
      finish(out, task, call, memory);
    }
  });
}

}  // namespace inferno::cpu
