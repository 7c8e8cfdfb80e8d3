// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace inferno {

// Tensor name to file name. Every file name is a plain one inside the model's directory; anything that could
// lead elsewhere is Error{corrupt}.
std::map<std::string, std::string> parse_safetensors_index(std::string_view json, std::string_view origin);

}  // namespace inferno
