#include "ops/backends.h"

#include <algorithm>

namespace inferno {

std::string backend_test_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

std::string backend_and_format_test_name(const testing::TestParamInfo<BackendAndFormat>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param);
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const WeightFormat format : all_formats) names.emplace_back(name_of(format));
  return names;
}

void FormatTest::SetUp() {
  const AttentionSpec attention = {.heads = 1, .kv_heads = 1, .head_dim = 64, .scale = 1.0f};
  const BlockSpec block = {.attention = attention, .mlp = DenseMlp{.hidden = 1, .activation = {}}};
  if (const auto reason = device.backend().refuses(block, format)) GTEST_SKIP() << *reason;
}

bool FormatTest::is_turn(int index) const {
  const auto kernels_of = [](const std::string& name) { return name.substr(0, name.rfind('_')); };
  const std::string& own = std::get<0>(GetParam());
  std::vector<std::string> peers = backend_names();
  std::erase_if(peers, [&](const std::string& name) { return kernels_of(name) != kernels_of(own); });
  const auto place = std::find(peers.begin(), peers.end(), own) - peers.begin();
  return (index + static_cast<int>(format)) % static_cast<int>(peers.size()) == place;
}

std::vector<int> column_counts(WeightFormat format) {
  const int block = block_elements(format);
  if (block == 1) return {1, 3, 17, 96, 257};
  if (block < 128) return {block, 3 * block, 384, 7 * block};  // 384: whole chunks of the tiles on a GPU
  return {block, 3 * block, 7 * block};
}

}  // namespace inferno
