// The tiny models in ../shared/reference/quantized: one for each way in which quantized weights are
// published.
#pragma once

#include <string>
#include <vector>

namespace inferno::testing {

inline std::vector<std::string> published_quantizations() {
  return {"autoround_int4_g128",
          "awq_int4_g128",
          "awq_int4_g32",
          "awq_int4_g64_moe",
          "bnb_int8",
          "bnb_nf4",
          "ct_fp8_block",
          "ct_fp8_dynamic_moe",
          "ct_fp8_static_kv",
          "ct_mixed",
          "ct_mxfp4",
          "ct_mxfp8",
          "ct_nvfp4",
          "ct_nvfp4a16_moe",
          "ct_w4a16_actorder_g64",
          "ct_w4a16_asym_g32",
          "ct_w4a16_g128",
          "ct_w4a16_moe_g32",
          "ct_w8a16_channel",
          "ct_w8a8_int8",
          "fp8_autofp8",
          "fp8_block_moe",
          "fp8_block_ragged",
          "fp8_tensor_static",
          "gptq_dynamic",
          "gptq_int4_column",
          "gptq_int4_g128",
          "gptq_int4_g32_asym",
          "gptq_int4_g64_actorder",
          "gptq_int8_g32_head",
          "gptq_v2_int4_g32_asym_moe",
          "modelopt_fp8_kv",
          "modelopt_nvfp4"};
}

}  // namespace inferno::testing
