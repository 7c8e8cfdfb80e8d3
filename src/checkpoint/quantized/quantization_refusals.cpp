#include "checkpoint/quantized/quantization_refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::string_view instead =
    "use a GGUF file, the original bf16 repository, or an FP8, AWQ, GPTQ or compressed-tensors checkpoint of "
    "this "
    "model";

struct UnreadMethod {
  std::string_view name, why;
};
constexpr std::array unread = {
    UnreadMethod{"quark", "AMD Quark's layouts are not read"},
    UnreadMethod{"torchao", "torchao stores PyTorch objects, not plain tensors"},
    UnreadMethod{"hqq", "HQQ's packing is not read"},
    UnreadMethod{"aqlm", "AQLM's codebooks are not read"},
    UnreadMethod{"eetq", "EETQ lays its weights out for one library's kernels"},
    UnreadMethod{"quanto", "quanto's packing is not read"},
    UnreadMethod{"vptq", "VPTQ's vector codebooks are not read"},
    UnreadMethod{"spqr", "SpQR's sparse outliers are not read"},
    UnreadMethod{"higgs", "HIGGS rotates activations while the model runs, which Inferno does not do"},
    UnreadMethod{"fp_quant", "FP-Quant rotates activations while the model runs, which Inferno does not do"},
    UnreadMethod{"bitnet", "BitNet's ternary packing is not read from safetensors"},
};

}  // namespace

void refuse_quantization(const RefusedField& refused) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: {}{}{} is not supported", refused.origin, quote(refused.field),
                   refused.value.empty() ? "" : " = ", refused.value),
       {.why = refused.why, .next = std::string(instead)});
}

void refuse_method(std::string_view origin, std::string_view field, std::string_view method) {
  const auto known = std::ranges::find(unread, method, &UnreadMethod::name);
  refuse_quantization({.origin = std::string(origin),
                       .field = std::string(field),
                       .value = method.empty() ? "nothing" : quote(method),
                       .why = known != unread.end() ? std::string(known->why)
                                                    : "no quantization of this name is known to Inferno"});
}

std::string activation_note(std::string_view origin, std::string_view type) {
  return fmt::format("{}: the config rounds activations to {}; Inferno does not", origin, type);
}

std::string cache_note(std::string_view origin) {
  return fmt::format("{}: the config wants an FP8 KV cache, which --cache-type fp8 gives", origin);
}

}  // namespace inferno
