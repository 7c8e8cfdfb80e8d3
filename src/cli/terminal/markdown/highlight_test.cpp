#include "cli/terminal/markdown/highlight.h"

#include <gtest/gtest.h>

namespace inferno::terminal {
namespace {

// Styles by name, so that expectations can be read.
constexpr Theme names = {
    .plain = "</>", .keyword = "<key>", .string = "<string>", .comment = "<comment>", .number = "<number>"};

std::string coloured(std::string_view language, std::initializer_list<std::string_view> lines) {
  Highlighter highlighter(*find_language(language), names);
  std::string out;
  for (const std::string_view line : lines) out += highlighter.line(line) + "\n";
  return out;
}

TEST(Highlighter, KnowsLanguagesByTheirNames) {
  EXPECT_NE(find_language("C++"), nullptr);
  EXPECT_EQ(find_language("py"), find_language("python"));
  EXPECT_EQ(find_language("klingon"), nullptr);
  EXPECT_EQ(find_language("pytho"), nullptr);
  EXPECT_EQ(find_language(""), nullptr);
}

TEST(Highlighter, ColoursKeywordsStringsCommentsAndNumbers) {
  EXPECT_EQ(coloured("python", {"return x if y else 'it\\'s' # no", "returned = 1.5"}),
            "<key>return</> x <key>if</> y <key>else</> <string>'it\\'s'</> <comment># no</>\n"
            "returned = <number>1.5</>\n");
  EXPECT_EQ(coloured("sql", {"SELECT a -- b"}), "<key>SELECT</> a <comment>-- b</>\n");
  EXPECT_EQ(coloured("bash", {"echo $# it's"}), "echo $# it's\n");
}

TEST(Highlighter, RemembersACommentOverSeveralLines) {
  EXPECT_EQ(coloured("cpp", {"a /* b", "for", "c */ for"}),
            "a <comment>/* b</>\n<comment>for</>\n<comment>c */</> <key>for</>\n");
}

}  // namespace
}  // namespace inferno::terminal
