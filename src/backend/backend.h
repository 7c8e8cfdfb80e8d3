// What a device must do to run a decoder: hold memory and perform the operations below.
//
// Basic operations are pure virtual, so a backend that lacks one does not compile. Fused operations run their
// parts in sequence unless a backend overrides them. The loader asks once, through refuses(), whether the
// backend supports what the checkpoint needs (a weight format, a head size); after that no call may decline,
// and no call may move work to another device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backend/cache_types.h"
#include "backend/sampling.h"
#include "backend/steps.h"
#include "backend/weight_source.h"
#include "base/error.h"
#include "spec/model_spec.h"
#include "tensor/format.h"
#include "tensor/matrix.h"

namespace inferno {

class Buffer {  // owns backend memory
 public:
  using Release = std::function<void(std::byte*)>;
  Buffer() = default;
  Buffer(std::byte* data, std::size_t size, Release release) : data_(data, std::move(release)), size_(size) {}
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte, Release> data_;
  std::size_t size_ = 0;
};

// A matrix (or `count` equal ones: experts) in its stored format, in host memory, rows in the decoder's
// order.
struct HostWeight {
  WeightFormat format = WeightFormat::f32;
  std::int32_t count = 1;
  std::int32_t rows = 0;                            // output features
  std::int32_t cols = 0;                            // input features, a multiple of block_elements(format)
  std::span<const std::byte> data;                  // count * rows * bytes_for(format, cols)
  std::span<const std::int32_t> column_order = {};  // WeightSource::column_order
};

// A weight in the layout of the backend's kernels. Only the backend that packed it knows that layout.
struct Weight {
  WeightFormat format = WeightFormat::f32;
  std::int32_t count = 1;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  Buffer memory;
  std::uint8_t layout = 0;                      // private to the backend
  std::vector<std::int32_t> column_order = {};  // WeightSource::column_order
};

// A weight without its memory.
struct WeightShape {
  WeightFormat format = WeightFormat::f32;
  std::int32_t count = 1, rows = 0, cols = 0;
};

// How pack() changed the stored bytes of a weight.
struct Relayout {
  std::string to, why;
};

// out = in * parts^T + bias. The parts' rows follow one another in the output: GGUF may give Q, K and V
// different formats. With experts, every part has the same count and bias has one row for each.
struct Linear {
  std::vector<const Weight*> parts;
  Matrix bias;  // f32 [count, output features]; empty when the layer has none
};

struct Norm {
  NormKind kind = NormKind::rms;
  float epsilon = 0.0f;
  Matrix gain, bias;  // f32 [1, width]; bias is empty for rms
};

// What follows a branch: residual += scale * branch, then out = norm(residual).
struct AfterBranch {
  Matrix out, residual, branch;
  float scale = 1.0f;
  const Norm* norm = nullptr;
  const Linear* router = nullptr;  // the router of the mix_experts_add_norm that reads `out` next, if any
};

// The factor 1 / rms that the rows of an RMS norm still lack, as sums of squares over parts of the row.
struct DelayedNorm {
  const float* squares = nullptr;  // in backend memory
  int parts = 0;
  float per_width = 1.0f, epsilon = 0.0f;  // per_width: 1 / the number of columns
};

// Rows for an operation to read, together with what they still lack. An operation that joins a branch with
// the norm after it may leave the factor 1 / rms to the operation that reads the rows next. Only one
// operation reads such rows, so they can be moved but not copied. Complete rows convert to NormedRows.
class NormedRows {
 public:
  NormedRows(Matrix complete) : rows_(complete) {}
  // router: whose logits of these rows the backend has summed already; may be null.
  NormedRows(Matrix rows, const DelayedNorm& delayed, const Weight* router)
      : rows_(rows), delayed_(delayed), router_(router) {}
  NormedRows(NormedRows&&) = default;
  NormedRows& operator=(NormedRows&&) = default;
  NormedRows(const NormedRows&) = delete;
  NormedRows& operator=(const NormedRows&) = delete;
  ~NormedRows() = default;

  // For operations that can supply the missing factor.
  const Matrix& unfinished() const { return rows_; }
  const std::optional<DelayedNorm>& delayed() const { return delayed_; }
  const Weight* router() const { return router_; }
  // For operations of backends that never delay a norm.
  Matrix complete() const {
    expects(!delayed_, "a backend that never delays a norm reads complete rows");
    return rows_;
  }

 private:
  Matrix rows_;
  std::optional<DelayedNorm> delayed_;
  const Weight* router_ = nullptr;
};

struct KvLayer {
  Matrix keys, values;  // [blocks * block_size, kv_heads * head_dim], in the types of the cache
};

// Where the layers of one attention window store their keys and values.
struct KvGroup {
  Matrix slots;        // i32 [tokens, 1]: the cache row each new token is written to
  Matrix block_table;  // i32 [sequences, max blocks]: position p is row table[p / block_size] * block_size +
                       // p % block_size
};

// One step's ragged batch, in backend memory. Steps of the same extents use the same addresses, so that a
// CUDA graph can be replayed.
struct StepInputs {
  Matrix tokens, positions;     // i32 [tokens, 1]
  Matrix query_start;           // i32 [sequences + 1, 1]: first row of each sequence
  Matrix context_len;           // i32 [sequences, 1]: length of each sequence after the step
  Matrix logit_rows;            // i32 [rows, 1]: rows of the batch that need logits
  std::vector<KvGroup> groups;  // one for each distinct window, in the order of window_groups()
  int block_size = 0;
  int decodes = 0;  // so many sequences at the start have one token each; a backend may run them apart
};

struct AttentionWeights {
  Matrix q_norm, k_norm;  // f32 [1, head_dim]
  Matrix sinks;           // f32 [1, heads]
  // f32 [1, kv_heads]: an FP8 cache stores key / scale and value / scale; empty: 1.
  Matrix key_scales, value_scales;
  float norm_epsilon = 0.0f;
};
struct AttentionCall {
  const AttentionSpec& spec;
  const AttentionWeights& weights;
  const StepInputs& step;
  const KvGroup& group;
  KvLayer cache;
};

struct MoeWeights {
  Linear router;  // [experts, width]
  Linear
      gate_up;  // per expert: all gate rows, then all up rows (one part of 2 * hidden rows, or two of hidden)
  Linear down;  // per expert: [width, hidden]
};

// The operations of a step whose kernels depend on their arguments, without the rows: see kernel_for().
struct LinearOperation {
  const Linear& weights;
};
struct LinearActivatedOperation {
  const Linear& weights;
  const ActivationSpec& activation;
};
struct LinearAddNormOperation {
  const Linear& weights;
  const Norm& norm;
  const Linear* router = nullptr;  // AfterBranch::router
};
struct MixExpertsOperation {
  const MoeMlp& spec;
  const MoeWeights& weights;
  const Norm* norm = nullptr;                        // null: mix_experts; otherwise mix_experts_add_norm
  const LinearAddNormOperation* previous = nullptr;  // which writes the rows, if it does
};
struct AttentionOperation {
  const AttentionSpec& spec;
  int rope_cols = 0, block_size = 0;
  int sequences = 1;
};
using Operation = std::variant<LinearOperation, LinearActivatedOperation, LinearAddNormOperation,
                               MixExpertsOperation, AttentionOperation>;

struct DeviceInfo {
  std::string name;
  std::string kernels;  // the instruction set or architecture chosen, by name
  std::size_t total_bytes = 0, free_bytes = 0;
  int threads = 1;  // host threads that compute
};

// The largest step that a decoder will run.
struct Workload {
  int tokens = 0;
  int logit_rows = 0;
  int context = 0;  // positions a sequence may reach
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceInfo info() const = 0;
  // The type of the matrices that linear() reads; those that only other operations read may also be f32.
  virtual DType activation_type() const = 0;
  // The type in which a cache stores keys and values unless another one is asked for.
  virtual DType cache_type() const = 0;
  // Why keys and values of such heads cannot be stored in these types, and what to use instead; nullopt if
  // they can.
  virtual std::optional<Advice> refuses_cache(const AttentionSpec& /*spec*/, CacheTypes types) const {
    if (types == CacheTypes{cache_type(), cache_type()}) return std::nullopt;
    const std::string own = name_of(CacheTypes{cache_type(), cache_type()});
    return Advice{.why = "the kernels of this device read keys and values in " + own + " only",
                  .next = "leave the type to the device (auto), or use --device cpu"};
  }

  // Why this backend cannot run the block on weights of that format; nullopt if it can.
  virtual std::optional<std::string> refuses(const BlockSpec& block, WeightFormat format) const = 0;
  // The names of the kernels that run the operation on `tokens` rows of a decoder's step, in order: what the
  // operation itself chooses. `doctor --verbose` and `bench --verbose` print them. Only the shape and layout
  // of the weights are read, so weights from weight_without_memory() will do.
  virtual std::string kernel_for(const Operation& operation, int tokens) const = 0;
  // In the layout that pack() chooses for the shape.
  virtual Weight weight_without_memory(const WeightShape& shape) const {
    return {shape.format, shape.count, shape.rows, shape.cols, {}, 0};
  }
  // Bytes that prepare() and the operations allocate besides weights, cache and the decoder's activations,
  // for a model with these weights; at least what they really allocate.
  virtual std::uint64_t workspace_bytes(const ModelSpec& /*spec*/, std::span<const WeightShape> /*weights*/,
                                        const Workload& /*largest*/) const {
    return 0;
  }
  // Bytes that this device reads from its memory in a second, measured now; 0 if the backend cannot measure.
  virtual double read_bandwidth() { return 0.0; }
  // Runs `body` and waits for the work it queued, inside the range that an attached profiler records.
  virtual void show_profiler(const std::function<void()>& body) { body(); }
  // From now on no bit of a row's result depends on the other rows of its step, nor on how a prompt is cut
  // into chunks. Returns the reason if this backend cannot promise that, else nullopt. Called before the
  // first step.
  virtual std::optional<std::string> refuses_determinism() = 0;

  // Zeroed memory. Error{io} or Error{device} naming `purpose` if there is not enough.
  virtual Buffer allocate(std::size_t bytes, std::string_view purpose) = 0;
  virtual Weight pack(const HostWeight& source) = 0;
  // Reads and packs weights that are not in memory, all in one call, so that reading one may overlap packing
  // another. As many `to` as `from`. Throws what reading throws.
  virtual void load(std::span<Weight> to, std::span<const WeightSource> from) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::vector<std::byte> bytes = read_weight(from[i]);
      to[i] = pack({from[i].format, from[i].count, from[i].rows, from[i].cols, bytes, from[i].column_order});
    }
  }
  // How the layout of a packed weight differs from the stored one, and why; nullopt if it does not.
  virtual std::optional<Relayout> relayout(const Weight& /*weight*/) const { return std::nullopt; }
  // Called once all weights are packed. Allocates everything that operations need besides their arguments, so
  // that no operation allocates afterwards.
  virtual void prepare(const ModelSpec& /*spec*/, const Workload& /*largest*/) {}
  virtual void upload(Matrix to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, Matrix from) = 0;  // waits for all work before it

  virtual StepRows step_rows() const { return {}; }

  // Whether operations return before they are done. If so, it pays to queue a step before the results of the
  // previous one are read.
  virtual bool queues() const { return false; }
  // Memory that operations write and that the host reads after it has waited for them.
  virtual Buffer allocate_for_host(std::size_t bytes, std::string_view purpose) {
    return allocate(bytes, purpose);
  }
  // Marks everything queued so far. wait_for() returns once that work is done; it does not wait for work that
  // was queued after the mark. Only the latest `max_marks` marks can be waited for.
  static constexpr std::uint64_t max_marks = 4;
  virtual std::uint64_t mark() { return 0; }
  virtual void wait_for(std::uint64_t /*mark*/) {}

  // Runs `body`, which queues operations, or replays what an earlier body queued under the same key without
  // calling this one. A key lists every shape and address that the body uses; only the contents of that
  // memory may differ between calls. Bodies may be nested; they must not upload or download.
  virtual void replay(std::span<const std::uint64_t> /*key*/, const std::function<void()>& body) { body(); }
  virtual ReplayCounts replay_counts() const { return {}; }

  // The timer must not outlive the backend.
  virtual std::unique_ptr<StepTimer> make_step_timer() { return std::make_unique<HostStepTimer>(); }

  // Operations are queued in order. Shapes follow [rows, cols]; `out` is always first.

  // out[r] = scale * table[tokens[r]]
  virtual void embed(Matrix out, const Weight& table, Matrix tokens, float scale) = 0;
  // x[r] += table[positions[r]]
  virtual void add_positions(Matrix x, const Weight& table, Matrix positions) = 0;
  // residual += scale * delta, unless delta is empty; then out = norm(residual), unless out is empty.
  virtual void add_norm(Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) = 0;
  virtual void linear(Matrix out, NormedRows in, const Linear& weights) = 0;
  // Normalizes (spec.qk_norm) and rotates the Q and K heads of each row of qkv in place, then writes K and V
  // to the cache, rounded to its types. rope_table is f32 [positions, 2 * half]: cosines, then sines; empty
  // when nothing rotates.
  virtual void rotate_and_store(Matrix qkv, Matrix rope_table, const AttentionCall& call) = 0;
  // Each row attends to the cached positions p <= its own, and p > own - window when there is one. Even its
  // own key and value are those of the cache.
  virtual void attend(Matrix out, Matrix qkv, const AttentionCall& call) = 0;
  // out [tokens, hidden]; in [tokens, 2 * hidden] (gate, then up) when gated.
  virtual void activate(Matrix out, Matrix in, const ActivationSpec& activation) = 0;
  // linear into `wide`, then activate into `out`; what `wide` holds afterwards is not defined.
  virtual void linear_activated(Matrix out, Matrix wide, NormedRows in, const Linear& weights,
                                const ActivationSpec& activation) {
    linear(wide, std::move(in), weights);
    activate(out, wide, activation);
  }
  virtual void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) = 0;
  // Two operations in one, for backends that then do less work. They return the rows of `then.out`, which may
  // still lack their norm; what `then.branch` holds afterwards is undefined.
  virtual NormedRows linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights) {
    linear(then.branch, in, weights);
    add_norm(then.out, then.residual, then.branch, then.scale, *then.norm);
    return then.out;
  }
  virtual NormedRows mix_experts_add_norm(const AfterBranch& then, NormedRows in, const MoeMlp& spec,
                                          const MoeWeights& weights) {
    mix_experts(then.branch, finish_norm(std::move(in)), spec, weights);
    add_norm(then.out, then.residual, then.branch, then.scale, *then.norm);
    return then.out;
  }
  // The same rows, complete, for several operations to read.
  virtual Matrix finish_norm(NormedRows in) { return in.complete(); }
  virtual void rotate_and_attend(Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
    rotate_and_store(qkv, rope_table, call);
    attend(out, qkv, call);
  }
  // out[r] = in[rows[r]], of any type.
  virtual void take_rows(Matrix out, NormedRows in, Matrix rows) = 0;
  // Draws a token for each row of logits, which may be overwritten. out is i32 [rows, sample_columns(N)]
  // if no row wants more than N alternatives. backend/sampling.h says what is computed.
  virtual void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) = 0;
};

// threads 0: one for each core this process may use.
std::unique_ptr<Backend> make_cpu_backend(int threads);
// `threads` host threads read weights; 0: a good number for this machine. A build without CUDA throws
// Error{device}.
std::unique_ptr<Backend> make_cuda_backend(int device, int threads = 0);
bool cuda_is_usable();  // whether make_cuda_backend(0) would succeed; decides `--device auto`

}  // namespace inferno
