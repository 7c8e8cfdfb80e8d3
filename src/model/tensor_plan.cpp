#include "model/tensor_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "base/error.h"
#include "tensor/format.h"
#include "tensor/quantize.h"

namespace inferno {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// Finds the tensors of one slot and reports problems with them.
class Planner {
 public:
  Planner(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint)
      : spec_(spec), arch_(arch), checkpoint_(checkpoint) {
    const std::vector<std::string> names = checkpoint.names();
    drop_prefix_ = checkpoint.container() == Container::safetensors &&
                   std::none_of(names.begin(), names.end(),
                                [&](const std::string& name) { return name.starts_with(arch.prefix); });
  }

  TensorPlan run() {
    for (const SlotRequest& request : slot_requests(spec_)) plan_.slots.push_back(plan_slot(request));
    refuse_unused();
    return std::move(plan_);
  }

 private:
  std::string stored_name(const std::string& name) const {
    return drop_prefix_ && name.starts_with(arch_.prefix) ? name.substr(arch_.prefix.size()) : name;
  }

  std::optional<StoredTensor> find(const std::string& name) {
    auto found = checkpoint_.find(name);
    if (found) used_.insert(name);
    return found;
  }

  // "x.weight", or plain "x" (sinks, stacked experts).
  std::optional<StoredTensor> find_weight(const std::string& name, std::string& found_as) {
    for (const char* ending : {".weight", ""}) {
      found_as = stored_name(name) + ending;
      if (auto found = find(found_as)) return found;
    }
    found_as = stored_name(name) + ".weight";
    return std::nullopt;
  }

  std::optional<StoredTensor> find_bias(const std::string& name, std::string& found_as) {
    for (const char* ending : {".bias", "_bias"}) {
      found_as = stored_name(name) + ending;
      if (auto found = find(found_as)) return found;
    }
    return std::nullopt;
  }

  bool exists(const NameChoice& choice) const {
    return std::all_of(choice.tensors.begin(), choice.tensors.end(), [&](const std::string& name) {
      const std::string first = stored_name(for_expert(name, 0));
      return checkpoint_.find(first + ".weight") || checkpoint_.find(first);
    });
  }

  PlannedSlot plan_slot(const SlotRequest& request) {
    std::vector<NameChoice> choices = names_for(request, arch_, checkpoint_.container());
    if (request.slot == Slot::embedding && spec_.tied_head) {
      // If embedding and head are one matrix, some exporters keep only the head's name.
      const std::vector<NameChoice> head =
          names_for({.slot = Slot::head, .parts = {}}, arch_, checkpoint_.container());
      choices.insert(choices.end(), head.begin(), head.end());
    }
    PlannedSlot slot = {.request = request, .parts = {}};
    if (choices.empty()) {
      problem("layer {}: this checkpoint format has no name for {}", request.layer, name_of(request.slot));
      return slot;
    }
    const auto chosen =
        std::find_if(choices.begin(), choices.end(), [&](const NameChoice& c) { return exists(c); });
    const NameChoice& choice = chosen == choices.end() ? choices.front() : *chosen;
    const bool fused = choice.tensors.size() == 1;
    const int all_rows = std::accumulate(request.parts.begin(), request.parts.end(), 0);
    for (std::size_t i = 0; i < choice.tensors.size(); ++i) {
      PlannedPart part;
      part.rows = fused ? all_rows : request.parts[i];
      part.experts = request.experts;
      part.interleaved = choice.interleaved;
      fill(part, request, choice, i);
      slot.parts.push_back(std::move(part));
    }
    return slot;
  }

  void fill(PlannedPart& part, const SlotRequest& request, const NameChoice& choice, std::size_t index) {
    const std::string& name = choice.tensors[index];
    const bool apart = name.find("{e}") != std::string::npos;
    const int tensors = apart ? request.experts : 1;
    for (int expert = 0; expert < tensors; ++expert) {
      const std::string one = for_expert(name, expert);
      std::string found_as;
      const auto weight = find_weight(one, found_as);
      if (!weight) {
        problem("{}: missing ({})", found_as, name_of(request.slot));
        return;
      }
      part.names.push_back(found_as);
      part.transposed = choice.layout == MatrixLayout::in_out && block_elements(weight->format) == 1;
      check_shape(found_as, *weight, part, request, apart);
      part.tensors.push_back(*weight);
      if (request.bias) plan_bias(part, request, one, apart);
    }
    const auto other_format = [&](const StoredTensor& t) { return t.format != part.tensors.front().format; };
    if (std::any_of(part.tensors.begin(), part.tensors.end(), other_format)) {
      problem("{}: the experts of one layer are stored in different formats", part.names.front());
    }
    const bool rotated = request.slot == Slot::qkv && index < 2 && choice.tensors.size() == 3;
    if (rotated && checkpoint_.container() == Container::gguf &&
        arch_.gguf_rows == GgufRows::rotary_neighbours) {
      const AttentionSpec& a = spec_.blocks[static_cast<std::size_t>(request.layer)].attention;
      part.rotary_heads = index == 0 ? a.heads : a.kv_heads;
    }
  }

  void plan_bias(PlannedPart& part, const SlotRequest& request, const std::string& name, bool apart) {
    std::string found_as;
    const auto bias = find_bias(name, found_as);
    if (!bias) {
      problem("{}.bias: missing ({})", stored_name(name), name_of(request.slot));
      return;
    }
    const std::int64_t size = request.is_vector ? request.cols : part.rows;
    std::vector<std::int64_t> expected = {size};
    if (part.experts > 0 && !apart) expected.insert(expected.begin(), part.experts);
    if (bias->shape != expected) wrong_shape(stored_name(name) + ".bias", *bias, expected);
    part.biases.push_back(*bias);
    part.bias_names.push_back(found_as);
  }

  void check_shape(const std::string& name, const StoredTensor& tensor, const PlannedPart& part,
                   const SlotRequest& request, bool apart) {
    std::vector<std::int64_t> expected = {part.rows, request.cols};
    if (part.transposed) std::swap(expected[0], expected[1]);
    if (request.is_vector) expected = {request.cols};
    if (part.experts > 0 && !apart) expected.insert(expected.begin(), part.experts);
    if (tensor.shape != expected) return wrong_shape(name, tensor, expected);
    const int block = block_elements(tensor.format);
    if (request.cols % block != 0) {
      problem("{}: rows of {} columns are not whole blocks of {} elements ({})", name, request.cols, block,
              inferno::name_of(tensor.format));
    }
  }

  void refuse_unused() {
    for (const std::string& name : checkpoint_.names()) {
      if (used_.contains(name)) continue;
      // Attention masks and frequencies that old exporters saved; GGUF's frequency factors are read as
      // config.
      if (ends_with_any(name, {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", "rope_freqs.weight",
                               "rope_factors_long.weight", "rope_factors_short.weight"})) {
        continue;
      }
      if (spec_.tied_head && (name == "lm_head.weight" || name == "output.weight")) continue;
      problem("{}: unexpected tensor, not used by this architecture", name);
    }
  }

  void wrong_shape(const std::string& name, const StoredTensor& tensor,
                   const std::vector<std::int64_t>& expected) {
    problem("{}: expected [{}], found [{}]", name, fmt::join(expected, ", "), fmt::join(tensor.shape, ", "));
  }

  template <class... Args>
  void problem(fmt::format_string<Args...> text, Args&&... args) {
    plan_.problems.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  const ModelSpec& spec_;
  const Architecture& arch_;
  const Checkpoint& checkpoint_;
  bool drop_prefix_ = false;
  TensorPlan plan_;
  std::set<std::string> used_;  // names of tensors
};

// Rows per group whose two halves are interleaved: WeightSource::alternating.
int alternating_rows(const PlannedPart& part) {
  if (part.interleaved) return part.rows;  // gate 0, up 0, gate 1, up 1, …
  // Pair 0's two rows, pair 1's two rows, … of each head.
  return part.rotary_heads > 0 ? part.rows / part.rotary_heads : 0;
}

// [cols, rows] to [rows, cols], elements of `size` bytes. Square tiles keep both sides in cache.
void transpose(std::byte* to, const std::byte* from, std::size_t rows, std::size_t cols, std::size_t size) {
  constexpr std::size_t tile = 32;
  for (std::size_t r0 = 0; r0 < rows; r0 += tile) {
    for (std::size_t c0 = 0; c0 < cols; c0 += tile) {
      for (std::size_t r = r0; r < std::min(r0 + tile, rows); ++r) {
        for (std::size_t c = c0; c < std::min(c0 + tile, cols); ++c) {
          std::memcpy(to + (r * cols + c) * size, from + (c * rows + r) * size, size);
        }
      }
    }
  }
}

// Reads rows of a part, whose tensors follow one another.
class PartReader {
 public:
  PartReader(const PlannedPart& part, int cols)
      : tensors_(part.tensors),
        is_transposed_(part.transposed),
        rows_(static_cast<std::uint64_t>(part.rows)),
        cols_(static_cast<std::uint64_t>(cols)),
        element_bytes_(block_bytes(part.tensors.front().format)),
        row_bytes_(bytes_for(part.tensors.front().format, static_cast<std::size_t>(cols))) {
    std::uint64_t bytes = 0;
    for (const StoredTensor& tensor : tensors_) bytes += tensor.bytes;
    expects(bytes == static_cast<std::uint64_t>(std::max(part.experts, 1)) * rows_ * row_bytes_,
            "the planned tensors fill the part");
  }

  void operator()(std::int64_t first, std::span<std::byte> to) const {
    auto row = static_cast<std::uint64_t>(first);
    const std::uint64_t tensor_rows = tensors_.front().bytes / row_bytes_;
    while (!to.empty()) {
      const StoredTensor& tensor = tensors_[row / tensor_rows];
      const std::uint64_t at = row % tensor_rows;
      const std::uint64_t end = is_transposed_ ? at - at % rows_ + rows_ : tensor_rows;
      const std::uint64_t count = std::min<std::uint64_t>(end - at, to.size() / row_bytes_);
      const auto part = to.first(count * row_bytes_);
      if (is_transposed_) {
        read_transposed(tensor, at, count, part);
      } else {
        tensor.read(at * row_bytes_, part);
      }
      to = to.subspan(part.size());
      row += count;
    }
  }

 private:
  // Rows of a matrix that is stored transposed: reads a range of each stored row.
  void read_transposed(const StoredTensor& tensor, std::uint64_t at, std::uint64_t count,
                       std::span<std::byte> to) const {
    const std::uint64_t matrix = at / rows_ * rows_ * row_bytes_;
    std::vector<std::byte> stored(to.size());
    if (count == rows_) {
      tensor.read(matrix, stored);
    } else {
      const std::size_t range_bytes = count * element_bytes_;
      for (std::uint64_t c = 0; c < cols_; ++c) {
        tensor.read(matrix + (c * rows_ + at % rows_) * element_bytes_,
                    std::span(stored).subspan(c * range_bytes, range_bytes));
      }
    }
    transpose(to.data(), stored.data(), count, cols_, element_bytes_);
  }

  std::vector<StoredTensor> tensors_;
  bool is_transposed_;
  std::uint64_t rows_, cols_, element_bytes_, row_bytes_;
};

}  // namespace

TensorPlan plan_tensors(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint) {
  return Planner(spec, arch, checkpoint).run();
}

void require_complete(const TensorPlan& plan, const Checkpoint& checkpoint) {
  constexpr std::size_t max_shown = 20;
  const std::vector<std::string>& problems = plan.problems;
  if (problems.empty()) return;
  std::string text = fmt::format("{}: {} tensor problem{}", checkpoint.config().origin(), problems.size(),
                                 problems.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(problems.size(), max_shown); ++i) text += "\n  " + problems[i];
  if (problems.size() > max_shown) text += fmt::format("\n  … and {} more", problems.size() - max_shown);
  fail(ErrorKind::corrupt, text,
       {.why = "the tensors do not match the configuration", .next = "download the model again"});
}

namespace {

// WeightSource::column_order of all experts.
std::vector<std::int32_t> column_order_of(const PlannedPart& part, int cols) {
  std::vector<std::int32_t> order;
  const bool has_order = std::ranges::any_of(
      part.tensors, [](const StoredTensor& tensor) { return tensor.column_order != nullptr; });
  if (!has_order) return order;
  for (const StoredTensor& tensor : part.tensors) {
    const std::size_t first = order.size();
    order.resize(first + static_cast<std::size_t>(cols));
    if (tensor.column_order != nullptr) {
      std::ranges::copy(*tensor.column_order, order.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      std::iota(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(), 0);
    }
  }
  return order;
}

// The same weight, rounded to `format` a few rows at a time.
WeightSource rounded_source(const WeightSource& from, WeightFormat format, const std::string& name) {
  WeightSource out = from;
  out.format = format;
  out.read = [from, format, name](std::int64_t first, std::span<std::byte> to) {
    constexpr std::size_t elements_at_once = 1 << 20;
    const auto cols = static_cast<std::size_t>(from.cols);
    const std::size_t row_bytes = bytes_for(format, cols);
    const std::size_t step = std::max<std::size_t>(1, elements_at_once / std::max<std::size_t>(cols, 1));
    std::vector<std::byte> stored;
    std::vector<float> values;
    for (std::size_t rows = to.size() / row_bytes; rows > 0;) {
      const std::size_t some = std::min(step, rows);
      stored.resize(some * from.row_bytes());
      values.resize(some * cols);
      from.read(first, stored);
      decode(from.format, stored, values);
      if (const auto bad = first_unfit(format, values)) {
        fail(ErrorKind::unsupported,
             fmt::format("{}: {} does not fit {}", name, values[*bad], inferno::name_of(format)),
             {.why = {}, .next = "leave --quantize out"});
      }
      quantize(format, values, to.first(some * row_bytes));
      to = to.subspan(some * row_bytes);
      first += static_cast<std::int64_t>(some);
      rows -= some;
    }
  };
  return out;
}

}  // namespace

WeightSource source_of(const PlannedPart& part, int cols) {
  WeightSource source = {.format = part.tensors.front().format,
                         .count = std::max(part.experts, 1),
                         .rows = part.rows,
                         .cols = cols,
                         .alternating = alternating_rows(part),
                         .column_order = column_order_of(part, cols),
                         .read = PartReader(part, cols)};
  return part.rounded ? rounded_source(source, *part.rounded, part.names.front()) : source;
}

std::vector<std::byte> read_part(const PlannedPart& part, int cols) {
  return read_weight(source_of(part, cols));
}

std::vector<float> read_biases(const PlannedSlot& slot) {
  const auto experts = static_cast<std::size_t>(std::max(slot.request.experts, 1));
  std::size_t width = 0;
  for (const PlannedPart& part : slot.parts) width += static_cast<std::size_t>(part.rows);
  std::vector<float> out(experts * width);
  std::size_t column = 0;
  for (const PlannedPart& part : slot.parts) {
    std::vector<float> values;
    for (const StoredTensor& bias : part.biases) {
      const std::vector<float> one = read_floats(bias);
      values.insert(values.end(), one.begin(), one.end());
    }
    const auto rows = static_cast<std::size_t>(part.rows);
    expects(values.size() == experts * rows, "the planned biases fill the part");
    for (std::size_t expert = 0; expert < experts; ++expert) {
      for (std::size_t row = 0; row < rows; ++row) {
        const auto to =
            static_cast<std::size_t>(decoder_row(static_cast<std::int64_t>(row), alternating_rows(part)));
        out[expert * width + column + to] = values[expert * rows + row];
      }
    }
    column += rows;
  }
  return out;
}

std::vector<float> read_floats(const StoredTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  tensor.read(0, bytes);
  const auto elements = static_cast<std::size_t>(std::accumulate(
      tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>()));
  std::vector<float> out(elements);
  decode(tensor.format, bytes, out);
  return out;
}

}  // namespace inferno
