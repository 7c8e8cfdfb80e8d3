// The backends this program tests. One of cpu_backends.cpp and cuda_backends.cpp is linked.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "support/device.h"

namespace inferno {

// A name is the kernels, then '_' and the number of threads.
std::vector<std::string> backend_names();
std::unique_ptr<Backend> make_backend(const std::string& name);

// GoogleTest prints parameters and derives test names from them, so backends and formats are passed by name.
using BackendAndFormat = std::tuple<std::string, std::string>;
std::string backend_test_name(const testing::TestParamInfo<std::string>& info);
std::string backend_and_format_test_name(const testing::TestParamInfo<BackendAndFormat>& info);
std::vector<std::string> format_names();

// A test of one operation on one backend.
class BackendTest : public testing::TestWithParam<std::string> {
 protected:
  Device device{make_backend(GetParam())};
};

// A test of one operation on one backend with weights of one format.
class FormatTest : public testing::TestWithParam<BackendAndFormat> {
 protected:
  void SetUp() override;  // skips, with the reason, a format that the backend refuses to load

  // Distributes cases over the backends that differ only in the number of threads: each case runs on one.
  bool is_turn(int index) const;

  Device device{make_backend(std::get<0>(GetParam()))};
  const WeightFormat format = format_named(std::get<1>(GetParam())).value();
};

// One, three and seven blocks of a quantized format; odd tails of a plain format.
std::vector<int> column_counts(WeightFormat format);

}  // namespace inferno
