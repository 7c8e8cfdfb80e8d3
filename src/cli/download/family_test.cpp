#include "cli/download/family.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace inferno {
namespace {

template <class Number>
std::string bytes(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string text(std::string_view value) {
  return bytes(std::uint64_t{value.size()}) + std::string(value);
}

std::string header() {
  return "GGUF" + bytes(std::uint32_t{3}) + bytes(std::uint64_t{9}) + bytes(std::uint64_t{2});
}

TEST(Family, IsReadFromTheStartOfAGgufFile) {
  const std::string number = text("general.quantization_version") + bytes(std::uint32_t{4}) + "....";
  const std::string type = text("general.architecture") + bytes(std::uint32_t{8}) + text("gemma3");
  EXPECT_EQ(architecture_in_gguf(header() + number + type), "gemma3");
  EXPECT_EQ(architecture_in_gguf(header() + type), "gemma3");
  // Any shorter file says nothing, and is read within its bounds.
  const std::string whole = header() + number + type;
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(architecture_in_gguf(whole.substr(0, length)), "") << length;
}

TEST(Family, OfAnythingElseIsUnknown) {
  const std::string array = text("tokens") + bytes(std::uint32_t{9});
  EXPECT_EQ(architecture_in_gguf(header() + array), "");
  EXPECT_EQ(architecture_in_gguf(header() + text("x") + bytes(std::uint32_t{99})), "");
  EXPECT_EQ(architecture_in_gguf(header() + bytes(UINT64_MAX)), "");
  EXPECT_EQ(architecture_in_gguf("<html>not found"), "");
}

TEST(Family, IsSupportedByItsNameInThatFormat) {
  EXPECT_TRUE((Family{"qwen3_moe", Container::safetensors}.is_supported()));
  EXPECT_TRUE((Family{"qwen3moe", Container::gguf}.is_supported()));
  EXPECT_FALSE((Family{"gemma3", Container::safetensors}.is_supported()));
}

}  // namespace
}  // namespace inferno
