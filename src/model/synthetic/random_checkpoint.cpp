#include "model/synthetic/random_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"
#include "model/slots.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

// Generates blocks when they are read. Reads must begin and end at block borders, as the rows of the loader
// do.
class RandomSource final : public ByteSource {
 public:
  RandomSource(WeightFormat format, std::uint64_t bytes, float deviation, std::uint64_t seed)
      : format_(format), bytes_(bytes), deviation_(deviation), seed_(seed) {}
  std::uint64_t size() const override { return bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    const std::size_t block = block_bytes(format_), chunk = block * random_chunk;
    expects(offset % block == 0 && to.size() % block == 0, "random tensors are read in whole blocks");
    expects(offset <= bytes_ && to.size() <= bytes_ - offset, "random tensors are read within their bounds");
    if (const std::size_t skip = offset % chunk;
        skip != 0) {  // the rest of the chunk that the read begins in
      const std::size_t count = std::min(chunk - skip, to.size());
      std::vector<std::byte> whole(skip + count);
      fill_random(format_, whole, deviation_, seed_, (offset - skip) / block);
      std::memcpy(to.data(), whole.data() + skip, count);
      offset += count;
      to = to.subspan(count);
    }
    if (!to.empty()) fill_random(format_, to, deviation_, seed_, offset / block);
  }

 private:
  WeightFormat format_;
  std::uint64_t bytes_;
  float deviation_;
  std::uint64_t seed_;
};

// Norm gains: all ones, so that activations keep their size whatever the depth.
std::shared_ptr<const ByteSource> ones(std::size_t count) {
  const std::vector<float> values(count, 1.0f);
  std::vector<std::byte> bytes(count * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return memory_source(std::move(bytes));
}

class RandomCheckpoint final : public Checkpoint {
 public:
  RandomCheckpoint(Config config, std::string type) : config_(std::move(config)), type_(std::move(type)) {}

  void fill(const RandomWeights& weights) {
    const Architecture& arch = architecture_for(*this);
    bool has_router_bias = false;
    for (const SlotRequest& request : slot_requests(arch.describe(config_))) {
      has_router_bias |= request.slot == Slot::router && request.bias;
      add(request, arch, weights);
    }
    if (weights.router_skew > 0.0f && !has_router_bias) {
      fail(ErrorKind::invalid_request, fmt::format("{}: its routers have no bias to skew", type_),
           {.why = {}, .next = "skew a shape whose routers have one, such as gpt-oss-20b"});
    }
  }

  Container container() const override { return Container::safetensors; }
  std::string_view architecture() const override { return type_; }
  const Config& config() const override { return config_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) out.push_back(name);
    return out;
  }

 private:
  static WeightFormat format_for(const SlotRequest& request, const RandomWeights& weights) {
    if (request.slot == Slot::router) return WeightFormat::bf16;
    const WeightFormat wanted = request.experts > 0 ? weights.experts : weights.dense;
    for (const WeightFormat format : {wanted, WeightFormat::q8_0}) {
      if (request.cols % block_elements(format) == 0) return format;
    }
    return WeightFormat::bf16;
  }

  void add(const SlotRequest& request, const Architecture& arch, const RandomWeights& weights) {
    const std::vector<NameChoice> choices = names_for(request, arch, Container::safetensors);
    expects(!choices.empty(), "a family names what it asks for");
    const NameChoice& choice = choices.front();
    const bool fused = choice.tensors.size() == 1;
    const int all_rows = std::accumulate(request.parts.begin(), request.parts.end(), 0);
    for (std::size_t part = 0; part < choice.tensors.size(); ++part) {
      const std::string& name = choice.tensors[part];
      const bool apart = name.find("{e}") != std::string::npos;
      for (int expert = 0; expert < (apart ? request.experts : 1); ++expert) {
        const std::int64_t rows = fused ? all_rows : request.parts[part];
        add_tensor(request, choice, for_expert(name, expert), {apart ? 0 : request.experts, rows}, weights);
      }
    }
  }

  struct Extent {
    std::int64_t experts, rows;
  };

  void add_tensor(const SlotRequest& request, const NameChoice& choice, const std::string& name,
                  Extent extent, const RandomWeights& weights) {
    std::vector<std::int64_t> stacked;
    if (extent.experts > 0) stacked.push_back(extent.experts);
    if (request.is_vector) {
      const auto count = static_cast<std::size_t>(request.cols);
      const auto source = request.slot == Slot::sinks ? nullptr : ones(count);
      put(name + ".weight", {WeightFormat::f32, {request.cols}, source, 0, count * sizeof(float)}, 1.0f,
          weights);
    } else {
      const WeightFormat format = format_for(request, weights);
      const bool transposed = choice.layout == MatrixLayout::in_out && block_elements(format) == 1;
      std::vector<std::int64_t> shape = stacked;
      shape.push_back(transposed ? request.cols : extent.rows);
      shape.push_back(transposed ? extent.rows : request.cols);
      put(name + ".weight", {format, shape, nullptr, 0, 0},
          1.0f / std::sqrt(static_cast<float>(request.cols)), weights);
    }
    if (!request.bias) return;
    std::vector<std::int64_t> shape = stacked;
    shape.push_back(request.is_vector ? request.cols : extent.rows);
    const bool skewed = request.slot == Slot::router && weights.router_skew > 0.0f;
    put(name + ".bias", {WeightFormat::f32, shape, nullptr, 0, 0}, skewed ? weights.router_skew : 0.02f,
        weights);
  }

  void put(const std::string& name, StoredTensor tensor, float deviation, const RandomWeights& weights) {
    if (tensor.source == nullptr) {
      const std::int64_t elements =
          std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
      tensor.bytes = bytes_for(tensor.format, static_cast<std::size_t>(elements));
      const std::uint64_t seed = weights.seed + 0x9E3779B97F4A7C15ull * (tensors_.size() + 1);
      tensor.source = std::make_shared<RandomSource>(tensor.format, tensor.bytes, deviation, seed);
    }
    tensors_.insert_or_assign(name, std::move(tensor));
  }

  Config config_;
  std::string type_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace

std::unique_ptr<Checkpoint> random_checkpoint(Config config, std::string_view type,
                                              const RandomWeights& weights) {
  auto checkpoint = std::make_unique<RandomCheckpoint>(std::move(config), std::string(type));
  checkpoint->fill(weights);
  return checkpoint;
}

}  // namespace inferno
