#include "checkpoint/gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "checkpoint/gguf/open_gguf.h"
#include "support/caught_error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

OutgoingTensor counting(const std::string& name, std::vector<std::int64_t> shape) {
  OutgoingTensor tensor = {.name = name, .format = WeightFormat::f32, .shape = std::move(shape), .write = {}};
  const std::uint64_t count = tensor.bytes() / sizeof(float);
  tensor.write = [count](const ByteSink& sink) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      sink(std::as_bytes(std::span(&value, 1)));
    }
  };
  return tensor;
}

OutgoingGguf small_file() {
  OutgoingGguf file;
  file.keys = {{"general.architecture", std::string("llama")},
               {"llama.block_count", std::uint32_t{7}},
               {"general.sampling.top_k", std::int32_t{-1}},
               {"llama.rope.freq_base", 0.5f},
               {"tokenizer.ggml.add_bos_token", true},
               {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "", "ü"}},
               {"tokenizer.ggml.scores", std::vector<float>{-1.0f, 0.0f, 2.5f}},
               {"tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 3, 6}}};
  file.tensors = {counting("first.weight", {3}), counting("second.weight", {2, 5})};
  return file;
}

TEST(WriteGguf, WritesWhatTheReaderReads) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "small.gguf";
  std::vector<std::size_t> seen;
  write_gguf(path, small_file(), [&](std::size_t index) { seen.push_back(index); });
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1}));

  const auto checkpoint = open_gguf(path);
  const GgufMetadata& metadata = *gguf_metadata(*checkpoint);
  EXPECT_EQ(metadata.integer("llama.block_count"), 7);
  EXPECT_EQ(metadata.integer("general.sampling.top_k"), -1);
  EXPECT_EQ(metadata.number("llama.rope.freq_base"), 0.5);
  EXPECT_EQ(metadata.flag("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(metadata.strings("tokenizer.ggml.tokens"), (std::vector<std::string_view>{"a", "", "ü"}));
  EXPECT_EQ(metadata.numbers("tokenizer.ggml.scores"), (std::vector<double>{-1.0, 0.0, 2.5}));
  EXPECT_EQ(metadata.integers("tokenizer.ggml.token_type"), (std::vector<std::int64_t>{1, 3, 6}));

  const auto second = checkpoint->find("second.weight");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->shape, (std::vector<std::int64_t>{2, 5}));
  std::vector<float> values(10);
  second->read(0, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(second->offset % 32, 0u);
}

TEST(WriteGguf, LeavesNoFileIfATensorFails) {
  const TemporaryDirectory folder;
  const fs::path path = folder.write("model.gguf", "what was there before");
  OutgoingGguf file = small_file();
  file.tensors[1].write = [](const ByteSink&) { fail(ErrorKind::corrupt, "second.weight: not a number"); };
  const Error error = caught_error([&] { write_gguf(path, file); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  std::ifstream old(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "what was there before");
}

TEST(WriteGguf, ReportsAMissingFolder) {
  const Error error = caught_error([] { write_gguf("/nowhere/at/all/model.gguf", small_file()); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_NE(std::string(error.what()).find("/nowhere/at/all/model.gguf: cannot create the file"),
            std::string::npos);
}

TEST(WriteGguf, ReportsAFullDisk) {
  const TemporaryDirectory folder;
  OutgoingGguf file = small_file();
  // More than the disk of any test machine has; no byte is written.
  file.tensors.push_back({.name = "huge.weight",
                          .format = WeightFormat::f32,
                          .shape = {1 << 20, 1 << 20, 1 << 10},
                          .write = {}});
  file.tensors.back().write = [](const ByteSink&) {
    throw std::logic_error("there was room for four petabytes");
  };
  const Error error = caught_error([&] { write_gguf(folder.path() / "model.gguf", file); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_NE(std::string(error.what()).find("reserve"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(WriteGguf, CountsBeyondFourGigabytes) {
  OutgoingGguf file;
  for (const char* name : {"a", "b", "c"}) {
    file.tensors.push_back(
        {.name = name, .format = WeightFormat::q8_0, .shape = {201'088, 32'768}, .write = {}});
  }
  const std::uint64_t each = 201'088ull * 32'768 / 32 * 34;
  EXPECT_EQ(gguf_offsets(file), (std::vector<std::uint64_t>{0, each, 2 * each, 3 * each}));
}

}  // namespace
}  // namespace inferno
