#include "backend/cuda/cuda_backend.h"

#include <cuda_profiler_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backend/cuda/check.h"
#include "backend/cuda/dispatch/dispatch.h"
#include "backend/cuda/dispatch/formats.h"
#include "backend/cuda/graph.h"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/sample/sample.h"
#include "backend/cuda/memory.h"
#include "backend/cuda/pack.h"
#include "backend/cuda/probe.h"
#include "backend/cuda/products.h"
#include "base/error.h"

namespace inferno {
namespace cuda {
namespace {

constexpr int max_head_dim = 256, max_experts = 4096;
constexpr std::size_t partial_floats = std::size_t{4} << 20, ticket_count = std::size_t{1} << 16;

CudaBuild this_build() {
  CudaBuild build = {.toolkit_version = CUDART_VERSION, .architectures = {}};
  const std::string_view list = INFERNO_CUDA_BUILT_FOR;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    build.architectures.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return build;
}

// A stream on a device that has been chosen.
class Stream {
 public:
  Stream(int device, cudaDeviceProp& properties, bool clusters) {
    check(cudaSetDevice(device));
    check(cudaGetDeviceProperties(&properties, device));
    check(cudaStreamCreateWithFlags(&queue_.stream, cudaStreamNonBlocking));
    queue_.multiprocessors = properties.multiProcessorCount;
    queue_.shared_limit = static_cast<int>(properties.sharedMemPerBlockOptin);
    queue_.overlaps = properties.major >= 9;
    if (properties.major >= 9 && clusters) {
      queue_.max_cluster = max_decode_cluster(queue_.multiprocessors, queue_.shared_limit);
    }
    const std::vector<std::string> built_for = this_build().architectures;
    queue_.warp_groups = properties.major == 9 && std::ranges::find(built_for, "90a") != built_for.end();
  }
  ~Stream() { cudaStreamDestroy(queue_.stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  const Queue& queue() const { return queue_; }

 private:
  Queue queue_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, DType activations, int threads)
      : device_(device),
        threads_(threads),
        activations_(activations),
        stream_(device, properties_, activations == DType::bf16),
        memory_(queue().stream),
        staging_(queue().stream),
        packer_(queue(), memory_, staging_, activations == DType::bf16),
        products_(queue(), memory_, activations),
        partial_(memory_, "attention scratch"),
        sampling_(memory_, "sampling scratch"),
        graphs_(queue().stream),
        marks_(queue().stream) {}
  ~CudaBackend() override { cudaStreamSynchronize(queue().stream); }

  DeviceInfo info() const override {
    DeviceInfo out = {.name = properties_.name,
                      .kernels = fmt::format("sm_{}{}, {} activations", properties_.major, properties_.minor,
                                             activations_ == DType::f32 ? "float32" : "bf16")};
    check(cudaMemGetInfo(&out.free_bytes, &out.total_bytes));
    return out;
  }
  DType activation_type() const override { return activations_; }
  DType cache_type() const override { return activations_; }
  std::optional<Advice> refuses_cache(const AttentionSpec& spec, CacheTypes types) const override {
    return refuses_head(types, spec.head_dim);
  }
  std::optional<std::string> refuses(const BlockSpec& block, WeightFormat format) const override;
  std::string kernel_for(const Operation& operation, int tokens) const override;
  Weight weight_without_memory(const WeightShape& shape) const override {
    const auto layout = static_cast<std::uint8_t>(packer_.layout_for(shape.format));
    return {shape.format, shape.count, shape.rows, shape.cols, {}, layout};
  }
  double read_bandwidth() override { return cuda::read_bandwidth(queue(), memory_); }
  void show_profiler(const std::function<void()>& body) override {
    check(cudaStreamSynchronize(queue().stream));
    check(cudaProfilerStart());
    body();
    check(cudaStreamSynchronize(queue().stream));
    check(cudaProfilerStop());
  }
  std::optional<std::string> refuses_determinism() override {
    return "the CUDA kernels depend on the number of tokens in a step and differ in the order of their sums";
  }

  Buffer allocate(std::size_t bytes, std::string_view purpose) override {
    enter_thread();
    return memory_.allocate(bytes, purpose);
  }
  Weight pack(const HostWeight& source) override {
    enter_thread();
    return packer_.pack(source);
  }
  void load(std::span<Weight> to, std::span<const WeightSource> from) override {
    enter_thread();
    load_weights(queue(), packer_, memory_, to, from, threads_);
  }
  std::optional<Relayout> relayout(const Weight& weight) const override {
    const Layout layout = view(weight).layout;
    if (layout == Layout::stored) return std::nullopt;
    if (layout == Layout::tiled) {
      return Relayout{"tiles of eight rows", "the kernels read eight rows together; no value changes"};
    }
    return Relayout{
        "codes and scales separated",
        fmt::format("blocks of {} bytes cannot be read 16 bytes at a time", block_bytes(weight.format))};
  }
  std::uint64_t workspace_bytes(const ModelSpec& spec, std::span<const WeightShape> weights,
                                const Workload& largest) const override;
  void prepare(const ModelSpec& spec, const Workload& largest) override;
  void upload(Matrix to, std::span<const std::byte> from) override {
    expects(from.size() <= to.bytes(), "upload fits its matrix");
    enter_thread();
    expects(!graphs_.is_inside(), "what is replayed does not upload");
    if (can_put(to.data, from.size())) return put(queue(), to.data, from);
    staging_.upload(to.data, from);
  }
  void download(std::span<std::byte> to, Matrix from) override {
    expects(to.size() <= from.bytes(), "download asks for no more than the matrix has");
    enter_thread();
    staging_.download(to, from.data);
  }
  // A mixture reads all its experts from a few hundred rows on, so that 512 rows of a prompt take half the
  // time of 2,048.
  StepRows step_rows() const override {
    return {.all = 2048, .prompts_beside_answers = 1024, .seconds = 0.04};
  }
  bool queues() const override { return true; }
  Buffer allocate_for_host(std::size_t bytes, std::string_view /*purpose*/) override {
    enter_thread();
    return host_memory(queue().stream, bytes);
  }
  std::uint64_t mark() override {
    enter_thread();
    return marks_.set();
  }
  void wait_for(std::uint64_t mark) override { marks_.wait_for(mark); }
  void replay(std::span<const std::uint64_t> key, const std::function<void()>& body) override {
    enter_thread();
    graphs_.replay(key, body);
  }
  ReplayCounts replay_counts() const override { return graphs_.counts(); }
  std::unique_ptr<StepTimer> make_step_timer() override {
    enter_thread();
    return std::make_unique<EventStepTimer>(queue().stream);
  }

  void embed(Matrix out, const Weight& table, Matrix tokens, float scale) override {
    if (out.rows > 0) cuda::embed(queue(), out, view(table), tokens, scale);
  }
  void add_positions(Matrix x, const Weight& table, Matrix positions) override {
    if (x.rows > 0) add_rows(queue(), x, view(table), positions);
  }
  void add_norm(Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) override {
    if (residual.rows > 0) cuda::add_norm(queue(), out, residual, delta, scale, norm);
  }
  void linear(Matrix out, NormedRows in, const Linear& weights) override {
    products_.linear(out, in, weights);
  }
  void rotate_and_store(Matrix qkv, Matrix rope_table, const AttentionCall& call) override {
    if (qkv.rows > 0) cuda::rotate_and_store(queue(), qkv, rope_table, call);
  }
  void attend(Matrix out, Matrix qkv, const AttentionCall& call) override { attend_rest(out, qkv, call, 0); }
  void rotate_and_attend(Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call) override;
  void activate(Matrix out, Matrix in, const ActivationSpec& activation) override {
    if (out.rows > 0) cuda::activate(queue(), out, in, activation);
  }
  void linear_activated(Matrix out, Matrix wide, NormedRows in, const Linear& weights,
                        const ActivationSpec& activation) override {
    products_.linear_activated(out, wide, in, weights, activation);
  }
  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    products_.mix_experts(out, in, spec, weights);
  }
  NormedRows linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights) override {
    return products_.linear_add_norm(then, in, weights);
  }
  NormedRows mix_experts_add_norm(const AfterBranch& then, NormedRows in, const MoeMlp& spec,
                                  const MoeWeights& weights) override {
    return products_.mix_experts_add_norm(then, in, spec, weights);
  }
  Matrix finish_norm(NormedRows in) override { return products_.single().finish(in); }
  void take_rows(Matrix out, NormedRows in, Matrix rows) override {
    const Matrix from = products_.single().finish(in);
    if (out.rows > 0) cuda::take_rows(queue(), out, from, rows);
  }
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    if (out.rows == 0) return;
    cuda::sample(queue(), out, logits, inputs, sampling_room(logits.cols, logits.rows));
  }

 private:
  const Queue& queue() const { return stream_.queue(); }
  // CUDA keeps a current device for each thread, and the thread that computes is not the one that loaded. A
  // step begins with an upload, so operations need not check.
  void enter_thread() const {
    int current = -1;
    check(cudaGetDevice(&current));
    if (current != device_) check(cudaSetDevice(device_));
  }
  AttendScratch attend_scratch();
  void attend_rest(Matrix out, Matrix qkv, const AttentionCall& call, int decodes);
  int decodes_apart(const AttentionCall& call, Matrix rope_table) const;
  AttentionProblem problem_of(const AttentionOperation& operation, int tokens, CacheTypes cache) const;
  AttentionProblem problem_of(const AttentionCall& call, Matrix rope_table) const;
  static constexpr std::size_t attend_bytes =
      ticket_count * sizeof(std::uint32_t) + partial_floats * sizeof(float);
  static std::size_t sampling_bytes(int vocab, int rows) {
    const auto at_once = static_cast<std::size_t>(std::min(rows, sample_rows_at_once));
    return at_once * sample_floats(vocab) * sizeof(float);
  }
  float* sampling_room(int vocab, int rows) {
    return reinterpret_cast<float*>(sampling_.at_least(sampling_bytes(vocab, rows)));
  }

  int device_, threads_;
  DType activations_;
  cudaDeviceProp properties_ = {};
  Stream stream_;
  DeviceMemory memory_;
  Staging staging_;
  Packer packer_;
  Products products_;
  Workspace partial_, sampling_;
  GraphCache graphs_;
  Marks marks_;
};

std::optional<std::string> CudaBackend::refuses(const BlockSpec& block, WeightFormat /*format*/) const {
  const AttentionSpec& attention = block.attention;
  if (attention.head_dim <= 0 || attention.kv_heads <= 0 || attention.heads % attention.kv_heads != 0) {
    return fmt::format("{} query heads cannot share {} key heads of {} elements", attention.heads,
                       attention.kv_heads, attention.head_dim);
  }
  if (attention.head_dim > max_head_dim) {
    return fmt::format("heads of {} elements: the CUDA attention kernels support at most {}",
                       attention.head_dim, max_head_dim);
  }
  if (const auto* moe = std::get_if<MoeMlp>(&block.mlp)) {
    if (moe->active < 1 || moe->active > moe->experts) {
      return fmt::format("{} active of {} experts", moe->active, moe->experts);
    }
    if (moe->active > max_active_experts) {
      return fmt::format("{} active experts: the CUDA kernels support at most {}", moe->active,
                         max_active_experts);
    }
    if (moe->experts > max_experts) {
      return fmt::format("{} experts: the CUDA kernels support at most {}", moe->experts, max_experts);
    }
  }
  return std::nullopt;
}

AttendScratch CudaBackend::attend_scratch() {
  // Tickets come first and are zero again after every use; the memory is zeroed when it is allocated.
  std::byte* start = partial_.at_least(attend_bytes);
  return {.partial = reinterpret_cast<float*>(start + ticket_count * sizeof(std::uint32_t)),
          .tickets = reinterpret_cast<std::uint32_t*>(start),
          .partial_floats = static_cast<std::int64_t>(partial_floats),
          .ticket_count = static_cast<std::int64_t>(ticket_count)};
}

// The same sums as prepare() makes, before a weight is packed.
std::uint64_t CudaBackend::workspace_bytes(const ModelSpec& spec, std::span<const WeightShape> weights,
                                           const Workload& largest) const {
  std::size_t expanded = 0, experts = 0;
  for (const WeightShape& weight : weights) expanded = std::max(expanded, packer_.expanded_bytes(weight));
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* moe = std::get_if<MoeMlp>(&block.mlp)) {
      experts = std::max(experts, products_.experts_bytes(*moe, spec.width, largest.tokens));
    }
  }
  const std::size_t single = queue().overlaps ? SingleToken::reserved_bytes() : 0;
  return expanded + experts + attend_bytes + single + sampling_bytes(spec.vocab, largest.logit_rows);
}

void CudaBackend::prepare(const ModelSpec& spec, const Workload& largest) {
  check(cudaStreamSynchronize(queue().stream));
  graphs_.clear();
  packer_.finish();
  if (activations_ == DType::bf16) products_.reserve_expanded(packer_.expanded_bytes());
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* moe = std::get_if<MoeMlp>(&block.mlp)) {
      products_.reserve_experts(*moe, spec.width, largest.tokens);
    }
  }
  attend_scratch();
  products_.single().reserve();
  if (largest.logit_rows > 0) sampling_room(spec.vocab, largest.logit_rows);
  check(cudaStreamSynchronize(queue().stream));
}

AttentionProblem CudaBackend::problem_of(const AttentionOperation& operation, int tokens,
                                         CacheTypes cache) const {
  return {.device = queue(),
          .spec = operation.spec,
          .tokens = tokens,
          .sequences = operation.sequences,
          .rope_cols = operation.rope_cols,
          .block_size = operation.block_size,
          .activations = activations_,
          .cache = cache};
}

AttentionProblem CudaBackend::problem_of(const AttentionCall& call, Matrix rope_table) const {
  const AttentionOperation operation = {.spec = call.spec,
                                        .rope_cols = rope_table.cols,
                                        .block_size = call.step.block_size,
                                        .sequences = call.step.context_len.rows};
  return problem_of(operation, call.step.tokens.rows, {call.cache.keys.dtype, call.cache.values.dtype});
}

// Of all sequences but the first `decodes`.
void CudaBackend::attend_rest(Matrix out, Matrix qkv, const AttentionCall& call, int decodes) {
  if (out.rows == decodes) return;
  using Run = void (*)(CudaBackend&, Matrix, Matrix, const AttentionCall&, int);
  static constexpr std::array<RunRow<AttendKernel, Run>, attend_kernels> rows = {{
      {AttendKernel::hopper, [](CudaBackend& own, Matrix to, Matrix from, const AttentionCall& c,
                                int first) { attend_hopper(own.queue(), to, from, c, first); }},
      {AttendKernel::hopper_and_tiles,
       [](CudaBackend& own, Matrix to, Matrix from, const AttentionCall& c, int first) {
         attend_hopper_and_tiles(own.queue(), to, from, c, first);
       }},
      {AttendKernel::tiles, [](CudaBackend& own, Matrix to, Matrix from, const AttentionCall& c,
                               int first) { attend_tiles(own.queue(), to, from, c, first); }},
      {AttendKernel::rows,
       [](CudaBackend& own, Matrix to, Matrix from, const AttentionCall& c, int first) {
         attend_rows(own.queue(), to, from, c, first, own.attend_scratch());
       }},
  }};
  static_assert(is_in_order(rows));
  AttentionProblem problem = problem_of(call, {});
  problem.tokens -= decodes;
  problem.sequences -= decodes;
  const AttendKernel kernel = choose_attend(problem).kernel;
  rows[static_cast<std::size_t>(kernel)].run(*this, out, qkv, call, decodes);
}

Matrix without_first(Matrix matrix, int rows) {
  return {matrix.data + matrix.top(rows).bytes(), matrix.dtype, matrix.rows - rows, matrix.cols};
}

// How many sequences at the start of the step the decode kernel takes.
int CudaBackend::decodes_apart(const AttentionCall& call, Matrix rope_table) const {
  AttentionProblem problem = problem_of(call, rope_table);
  const int decodes = problem.tokens == problem.sequences ? problem.sequences : call.step.decodes;
  problem.tokens = problem.sequences = decodes;
  return choose_rotate_and_attend(problem).kernel == RotateAttendKernel::decode ? decodes : 0;
}

// One row of a prompt must not send all decodes of its step to the kernels of prompts, which read a context
// for one query.
void CudaBackend::rotate_and_attend(Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
  const int decodes = decodes_apart(call, rope_table), rest = out.rows - decodes;
  if (decodes > 0) {
    attend_decode(queue(), out.top(decodes), qkv.top(decodes), rope_table, call, attend_scratch());
  }
  if (rest == 0) return;
  StepInputs step;
  step.positions = without_first(call.step.positions, decodes);
  const KvGroup group = {.slots = without_first(call.group.slots, decodes), .block_table = {}};
  cuda::rotate_and_store(queue(), without_first(qkv, decodes), rope_table,
                         {call.spec, call.weights, step, group, call.cache});
  attend_rest(out, qkv, call, decodes);
}

std::string CudaBackend::kernel_for(const Operation& operation, int tokens) const {
  if (const auto* attention = std::get_if<AttentionOperation>(&operation)) {
    return kernels_of_attention(problem_of(*attention, tokens, {cache_type(), cache_type()}));
  }
  if (const auto* mix = std::get_if<MixExpertsOperation>(&operation)) {
    return products_.kernels_of(*mix, tokens);
  }
  if (const auto* linear = std::get_if<LinearOperation>(&operation)) {
    return products_.kernels_of(*linear, tokens);
  }
  if (const auto* activated = std::get_if<LinearActivatedOperation>(&operation)) {
    return products_.kernels_of(*activated, tokens);
  }
  return products_.kernels_of(std::get<LinearAddNormOperation>(operation), tokens);
}

// Why `device` cannot be used; nullopt when it can.
std::optional<Advice> why_not(int device) {
  const ProbeSources sources;
  const GpuProbe found = probe(sources);
  if (found.state == DriverState::no_hardware) {
    return Advice{"there is no NVIDIA GPU and no driver on this machine", "use --device cpu"};
  }
  if (found.state != DriverState::ready) return explain(found, sources);
  for (const GpuDevice& gpu : found.devices) {
    if (gpu.index == device) return why_unusable(gpu, found, this_build());
  }
  return Advice{fmt::format("the driver offers {} device{}, counted from 0", found.devices.size(),
                            found.devices.size() == 1 ? "" : "s"),
                "see `inferno doctor` for a list; CUDA_VISIBLE_DEVICES also renumbers them"};
}

}  // namespace
}  // namespace cuda

namespace {

std::unique_ptr<Backend> make(int device, DType activations, int threads) {
  if (const auto problem = cuda::why_not(device)) {
    fail(ErrorKind::device, fmt::format("--device cuda:{}: this GPU cannot be used", device), *problem);
  }
  return std::make_unique<cuda::CudaBackend>(device, activations, threads);
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device, DType activations) {
  return make(device, activations, 0);
}

std::unique_ptr<Backend> make_cuda_backend(int device, int threads) {
  return make(device, DType::bf16, threads);
}

bool cuda_is_usable() {
  return !cuda::why_not(0).has_value();
}

}  // namespace inferno
