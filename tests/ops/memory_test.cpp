// Allocation, and the properties that a backend reports.
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

// A GPU has different paths for small and large uploads and for unaligned addresses.
TEST_P(Memory, GivesBackUploadsOfAnySizeAnywhere) {
  constexpr std::int32_t all = 4096;
  for (const int bytes : {2, 4, 6, 1020, 1024, 1028, 4000, 4004, 8000}) {
    for (const int offset : {0, 2, 4, 64}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at " << offset);
      const Buffer buffer = device.backend().allocate(2 * all, "test");
      std::vector<std::byte> values(static_cast<std::size_t>(bytes)), found(2 * all), expected(2 * all);
      for (int i = 0; i < bytes; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<std::byte>(i * 37 + 1);
      std::ranges::copy(values, expected.begin() + offset);
      device.backend().upload({buffer.data() + offset, DType::bf16, 1, bytes / 2}, values);
      device.backend().download(found, {buffer.data(), DType::bf16, 1, all});
      EXPECT_EQ(found, expected);
    }
  }
}

TEST_P(Memory, OfTheHostHasResultsOnceTheirMarkIsReached) {
  Backend& backend = device.backend();
  HostMatrix rows = random_matrix(3, 64, 1.0, 7);
  const Matrix in = device.upload(rows, DType::f32);
  const Matrix order = device.upload(std::vector<std::int32_t>{2, 0});
  Matrix out = {nullptr, DType::f32, 2, 64};
  const Buffer buffers[] = {backend.allocate_for_host(out.bytes(), "test"),
                            backend.allocate_for_host(out.bytes(), "test")};
  std::vector<std::uint64_t> marks;
  for (int step = 0; step < 6; ++step) {  // two steps are queued at a time
    out.data = buffers[step % 2].data();
    backend.take_rows(out, in, order);
    marks.push_back(backend.mark());
    if (step == 0) continue;
    backend.wait_for(marks[static_cast<std::size_t>(step - 1)]);
    const auto* found = reinterpret_cast<const float*>(buffers[(step - 1) % 2].data());
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(found[i], static_cast<float>(rows.row(2)[static_cast<std::size_t>(i)]));
      EXPECT_EQ(found[64 + i], static_cast<float>(rows.row(0)[static_cast<std::size_t>(i)]));
    }
  }
  backend.wait_for(marks.back());
}

TEST_P(Memory, NamesTheDeviceAndAKernelForEveryFormat) {
  EXPECT_FALSE(device.backend().info().name.empty());
  EXPECT_FALSE(device.backend().info().kernels.empty());
  EXPECT_GT(device.backend().info().total_bytes, 0u);
  const Backend& backend = device.backend();
  const std::string level = backend.info().kernels;
  for (const WeightFormat format : all_formats) {
    const Weight weight = backend.weight_without_memory({format, 1, 256, 256});
    const Linear weights = {.parts = {&weight}, .bias = {}};
    for (const int tokens : {1, 7, 512}) {
      const std::string name = backend.kernel_for(LinearOperation{weights}, tokens);
      SCOPED_TRACE(testing::Message() << tokens << " tokens: '" << name << "'");
      EXPECT_FALSE(name.empty());
      if (!level.starts_with("sm_")) {
        EXPECT_TRUE(name.starts_with(level));
      } else if (device.activations() == DType::f32) {
        EXPECT_EQ(name, "linear_generic");
      } else if (tokens == 512) {
        EXPECT_NE(name.find("gemm"), std::string::npos);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Memory, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
