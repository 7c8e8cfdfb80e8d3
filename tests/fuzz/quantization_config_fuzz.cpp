// The description of quantized weights, and its rules for modules.
#include "checkpoint/quantized/quantization_config.h"
#include "fuzz/guard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  fuzz::guard([&] {
    const QuantizationConfig config = parse_quantization_config(fuzz::text(data, size), fuzz::origin);
    for (const char* module :
         {"lm_head", "model.layers.0.mlp.up_proj", "model.layers.10.mlp.experts.3.down_proj"}) {
      config.scheme_of(module);
    }
  });
  return 0;
}
