// A quantized checkpoint in a temporary directory, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors/open_safetensors.h"
#include "support/caught_error.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {

template <class Number>
SafetensorsData tensor_of(std::string name, std::string dtype, std::vector<std::int64_t> shape,
                          const std::vector<Number>& values) {
  SafetensorsData data = {std::move(name), std::move(dtype), std::move(shape), {}};
  data.bytes.resize(values.size() * sizeof(Number));
  std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
  return data;
}

class QuantizedScene : public testing::Test {
 protected:
  // `settings` is what "quantization_config" holds, without braces.
  void config(std::string_view settings) {
    directory.write("config.json",
                    R"({"model_type": "llama", "quantization_config": {)" + std::string(settings) + "}}");
  }
  void tensors(const std::vector<SafetensorsData>& all) {
    write_safetensors(directory.path() / "model.safetensors", all);
  }
  std::unique_ptr<Checkpoint> open() const { return open_safetensors(directory.path()); }
  Error refusal() const {
    Error error = caught_error([&] { open(); });
    EXPECT_THAT(error.what(), testing::HasSubstr(directory.path().string()));
    return error;
  }
  // The error of opening the checkpoint, or of reading its weight.
  Error reading_refusal() const {
    return caught_error([&] { values("x.weight"); });
  }
  std::vector<float> values(std::string_view name) const {
    const auto checkpoint = open();
    const StoredTensor tensor = checkpoint->find(name).value();
    std::vector<std::byte> bytes(tensor.bytes);
    tensor.read(0, bytes);
    std::vector<float> out(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
    decode(tensor.format, bytes, out);
    return out;
  }
  WeightFormat format(std::string_view name = "x.weight") const { return open()->find(name)->format; }

  TemporaryDirectory directory;
};

}  // namespace inferno
