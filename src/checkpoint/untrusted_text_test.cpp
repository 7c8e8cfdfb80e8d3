#include "checkpoint/untrusted_text.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(UntrustedText, KnowsUtf8) {
  for (const char* good :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x94\xA5", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << quote(good);
  }
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "a\xC3z"}) {
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
  }
}

TEST(UntrustedText, QuotesWhatWouldSteerATerminal) {
  EXPECT_EQ(quote("model.norm"), "\"model.norm\"");
  EXPECT_EQ(quote("\x1b[2J\n"), "\"\\x1b[2J\\x0a\"");
  EXPECT_EQ(quote("\xC2\x9B"), "\"\\xc2\\x9b\"");
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("\xFFz"), "\"\\xffz\"");
  EXPECT_EQ(quote("h\xC3\xA9"), "\"h\xC3\xA9\"");
}

TEST(UntrustedText, CutsLongQuotes) {
  const std::string cut = quote(std::string(100000, 'x'));
  EXPECT_LT(cut.size(), 110u);
  EXPECT_TRUE(cut.ends_with("...\""));
}

TEST(UntrustedText, LetsOnlyPlainFileNamesPass) {
  for (const char* good :
       {"model.safetensors", "a", "...", "model-00001-of-00002.safetensors", "h\xC3\xA9"}) {
    EXPECT_TRUE(is_plain_file_name(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("/etc/passwd"), std::string("../x"),
        std::string("a/b"), std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string(256, 'x'), std::string("\xFF")}) {
    EXPECT_FALSE(is_plain_file_name(bad)) << quote(bad);
  }
}

}  // namespace
}  // namespace inferno
