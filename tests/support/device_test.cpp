// The harness itself must notice unwritten and overwritten memory.
#include "support/device.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>

namespace inferno {
namespace {

TEST(Device, RoundsWhatItUploads) {
  Device device(make_cpu_backend(1));
  HostMatrix values(1, 1);
  values.values = {1.0 / 3.0};
  const Matrix matrix = device.upload(values, DType::bf16);
  EXPECT_EQ(values.values[0], 0.333984375);
  EXPECT_EQ(device.download(matrix).values, values.values);
}

TEST(Device, PoisonsWhatIsNotYetWritten) {
  Device device(make_cpu_backend(1));
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::f8_e4m3}) {
    for (const double value : device.download(device.poisoned(3, 32, type)).values) {
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

void write_one_row_too_many() {
  Device device(make_cpu_backend(1));
  const Matrix out = device.poisoned(2, 3, DType::f32);
  const Matrix longer = {out.data, out.dtype, out.rows + 1, out.cols};
  device.backend().upload(longer, std::vector<std::byte>(longer.bytes()));
  device.download(out);
}

TEST(Device, NoticesWritesPastTheEnd) {
  EXPECT_NONFATAL_FAILURE(write_one_row_too_many(), "past the end");
}

TEST(Device, KeepsAWeightsBytesAndNumbersTogether) {
  Device device(make_cpu_backend(1));
  const TestWeight& weight =
      device.weight({.format = WeightFormat::q8_0, .count = 3, .rows = 2, .cols = 64}, 1);
  ASSERT_EQ(weight.values.size(), 3u);
  EXPECT_NE(weight.values[0].values, weight.values[1].values);
  EXPECT_EQ(weight.packed.rows, 2);
}

}  // namespace
}  // namespace inferno
