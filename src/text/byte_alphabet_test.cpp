#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(ByteAlphabet, WritesTheCharactersOfGpt2) {
  EXPECT_EQ(byte_alphabet::write(" a\n\x7F\xA0\xAD\xFF"), "ĠaĊġłŃÿ");
}

TEST(ByteAlphabet, ReadsBackEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(byte_alphabet::read(byte_alphabet::write(all)), all);
}

TEST(ByteAlphabet, RefusesCharactersOutsideIt) {
  for (const char* outside : {" ", "\n", "日", "▁", "\xC2\xA0", "\xC5\x84", "\xC4", "a\x80"}) {
    EXPECT_EQ(byte_alphabet::read(outside), std::nullopt) << outside;
  }
}

}  // namespace
}  // namespace inferno
