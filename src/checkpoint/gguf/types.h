// ggml's numbering of tensor types, and which of them Inferno reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/format.h"

namespace inferno {

// nullopt when Inferno does not read the type.
std::optional<WeightFormat> ggml_format(std::uint32_t number);

// The other direction; nullopt for formats that GGUF has no number for.
std::optional<std::uint32_t> ggml_number(WeightFormat format);

// "IQ2_XXS", or "type 77" for a number nobody has given out.
std::string ggml_type_name(std::uint32_t number);

}  // namespace inferno
