// The tensors of a safetensors checkpoint while it is opened.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "checkpoint/safetensors/header.h"
#include "tensor/stored_tensor.h"

namespace inferno {

struct SafetensorsEntry {
  std::string file;  // in the model's directory
  const SafetensorsType* type = nullptr;
  StoredTensor tensor;
};
using SafetensorsEntries = std::map<std::string, SafetensorsEntry, std::less<>>;

}  // namespace inferno
