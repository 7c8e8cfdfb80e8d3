// Memory, and what a backend says about itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/backends.h"

namespace inferno {
namespace {

class Memory : public BackendTest {};

TEST_P(Memory, IsZeroedWhenAllocated) {
  for (const std::size_t size : {std::size_t{4}, std::size_t{68}, std::size_t{100'000}}) {
    const Buffer buffer = device.backend().allocate(size, "test");
    EXPECT_EQ(buffer.size(), size);
    std::vector<std::byte> content(size, std::byte{1});
    device.backend().download(content, {buffer.data(), DType::i32, 1, static_cast<std::int32_t>(size / 4)});
    EXPECT_TRUE(std::all_of(content.begin(), content.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_P(Memory, GivesBackWhatWasUploaded) {
  std::vector<std::int32_t> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i * 7919 - 12345);
  const Matrix matrix = device.upload(values, 8);
  EXPECT_EQ(matrix.rows, 125);
  const auto expected = std::as_bytes(std::span(values));
  EXPECT_TRUE(std::ranges::equal(device.bytes(matrix), expected));
}

TEST_P(Memory, NamesTheDeviceAndAKernelForEveryFormat) {
  EXPECT_FALSE(device.backend().info().name.empty());
  EXPECT_FALSE(device.backend().info().kernels.empty());
  EXPECT_GT(device.backend().info().total_bytes, 0u);
  for (const WeightFormat format : all_formats) {
    for (const int tokens : {1, 7, 512}) EXPECT_FALSE(device.backend().kernel_for(format, tokens).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Memory, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
