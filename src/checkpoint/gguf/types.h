// The tensor types of ggml: their numbers, their names, and which of them Inferno reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/format.h"

namespace inferno {

// nullopt if Inferno does not read the type.
std::optional<WeightFormat> ggml_format(std::uint32_t number);

// nullopt for formats that GGUF does not have.
std::optional<std::uint32_t> ggml_number(WeightFormat format);

// "IQ2_XXS", or "type 77" for an unknown number.
std::string ggml_type_name(std::uint32_t number);

}  // namespace inferno
