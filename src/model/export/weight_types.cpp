#include "model/export/weight_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/utf8.h"
#include "tensor/quantize.h"

namespace inferno {
namespace {

// Whether a GGUF file can hold the weights of a quantized checkpoint as they are: in a type that it has, with
// columns in the order of the input.
bool is_exact(const PlannedPart& part) {
  return std::ranges::all_of(part.tensors, [&](const StoredTensor& tensor) {
    const bool known = tensor.format == WeightFormat::q4_0 || tensor.format == WeightFormat::q8_0 ||
                       tensor.format == WeightFormat::mxfp4;
    return known && tensor.format == part.tensors.front().format && tensor.column_order == nullptr;
  });
}

bool is_quantized(const PlannedPart& part) {
  return block_elements(part.tensors.front().format) > 1;
}

constexpr std::array load_types = {WeightFormat::q8_0, WeightFormat::q6_k, WeightFormat::q4_k,
                                   WeightFormat::q4_0};

}  // namespace

void require_writable(WeightFormat format) {
  if (can_quantize(format)) return;
  std::vector<std::string_view> known;
  for (const WeightFormat one : all_formats) {
    if (can_quantize(one)) known.push_back(name_of(one));
  }
  fail(ErrorKind::invalid_request, fmt::format("cannot convert weights to {}", name_of(format)),
       {.why = "Inferno reads this type but cannot write it",
        .next = fmt::format("choose one of: {}", fmt::join(known, ", "))});
}

TypeChoice choose_type(const SlotRequest& request, const PlannedPart& part, const WeightTypes& types) {
  const WeightFormat stored = part.tensors.front().format;
  if (request.is_vector || request.slot == Slot::router || request.slot == Slot::positions) {
    return {.format = WeightFormat::f32};
  }
  WeightFormat wanted = types.type;
  std::string note;
  if (request.experts > 0) {
    if (!types.experts && stored == WeightFormat::mxfp4) return {.format = stored};
    wanted = types.experts.value_or(wanted);
  }
  if (part.tensors.front().is_joined && !(request.experts > 0 && types.experts)) {
    if (is_exact(part)) {
      return {.format = stored,
              .note = fmt::format("quantized weights kept bit for bit as {}", name_of(stored))};
    }
    note = fmt::format("quantized weights that GGUF cannot say exactly ({}), rounded to {}", name_of(stored),
                       name_of(wanted));
  }
  if (wanted == stored) return {.format = wanted, .note = note};
  require_writable(wanted);
  WeightFormat fitting = wanted;
  if (request.cols % block_elements(fitting) != 0) fitting = WeightFormat::q8_0;
  if (request.cols % block_elements(fitting) != 0) fitting = WeightFormat::f16;
  if (fitting != wanted) {
    note = fmt::format("rows of {} columns are not whole blocks of {}, stored as {}", request.cols,
                       name_of(wanted), name_of(fitting));
  }
  return {.format = fitting, .note = note};
}

void round_at_load(TensorPlan& plan, WeightFormat type, const Checkpoint& checkpoint,
                   std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (PlannedSlot& slot : plan.slots) {
    if (slot.request.is_vector) continue;
    for (PlannedPart& part : slot.parts) {
      const WeightFormat stored = part.tensors.front().format;
      const bool stays = slot.request.experts > 0 && stored == WeightFormat::mxfp4;
      if (is_quantized(part) && !stays) {
        fail(ErrorKind::invalid_request,
             fmt::format("--quantize {}: {} of {} is {} already", name_of(type), part.names.front(),
                         checkpoint.config().origin(), name_of(stored)),
             {.why = "rounding weights a second time loses accuracy for nothing",
              .next = "leave --quantize out, or use the original bf16 or f16 checkpoint"});
      }
      const TypeChoice choice = choose_type(slot.request, part, {.type = type, .experts = {}});
      if (!choice.note.empty()) reasons[choice.note].push_back(part.names.front());
      if (choice.format != stored) part.rounded = choice.format;
    }
  }
  for (const auto& [reason, names] : reasons) {
    notes.push_back(fmt::format("--quantize: {}: {} tensor{}, the first {}", reason, names.size(),
                                names.size() == 1 ? "" : "s", names.front()));
  }
}

std::optional<WeightFormat> parse_quantize(std::string_view name, std::string_view origin) {
  if (name.empty()) return std::nullopt;
  const auto found = std::ranges::find(load_types, name, [](WeightFormat format) { return name_of(format); });
  if (found != load_types.end()) return *found;
  fail(ErrorKind::invalid_request,
       fmt::format("{} {}: expected q8_0, q6_k, q4_k or q4_0", origin, quote(name)));
}

}  // namespace inferno
