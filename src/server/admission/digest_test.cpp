#include "server/admission/digest.h"

#include <gtest/gtest.h>

namespace inferno::server {
namespace {

// RFC 4648, section 10.
TEST(Digest, EncodesAndDecodesBase64) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64(std::string_view(bytes)), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  for (const char* text : {"Zg=", "Zg", "====", "Z!==", "="}) EXPECT_EQ(from_base64(text), "") << text;
}

TEST(Digest, HashesWithSha256) {
  EXPECT_EQ(base64(sha256("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

}  // namespace
}  // namespace inferno::server
