// Which type a weight gets when it is rounded: the rules that `convert --type` and `--quantize` share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensor_plan.h"

namespace inferno {

struct WeightTypes {
  WeightFormat type = WeightFormat::bf16;  // of matrices; vectors, routers and positions are f32
  std::optional<WeightFormat> experts;     // of experts; without: MXFP4 stays as it is, the rest is `type`
};

struct TypeChoice {
  WeightFormat format = WeightFormat::f32;
  std::string note = {};  // why it is not the type that was asked for, or what happens to quantized weights
};

// Error{invalid_request} for a type that cannot be written.
void require_writable(WeightFormat format);

// The same error.
TypeChoice choose_type(const SlotRequest& request, const PlannedPart& part, const WeightTypes& wanted);

// Rounds the float weights of a plan to `type` while they are read: the blocks are those that
// `convert --type` writes. Adds notes for weights of other types. Error{invalid_request} if the weights are
// quantized already, except for experts in MXFP4, which stay as they are.
void round_at_load(TensorPlan& plan, WeightFormat type, const Checkpoint& checkpoint,
                   std::vector<std::string>& notes);

// What --quantize means; nullopt if it is empty. Error{invalid_request} naming `origin` for another name than
// those of round_at_load().
std::optional<WeightFormat> parse_quantize(std::string_view name, std::string_view origin = "--quantize");

}  // namespace inferno
