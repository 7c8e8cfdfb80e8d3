#include "cli/terminal/report_error.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(ReportError, SaysWhatWhyAndNext) {
  EXPECT_EQ(describe(Error(ErrorKind::not_found, "a.gguf: no such file")), "error: a.gguf: no such file\n");
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "one two three", {.why = {}, .next = "four five"}),
                     Detail::brief, 16),
            "error: one two\n       three\nnext:  four five\n");
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "what", {.why = "cause", .next = "remedy"})),
            "error: what\nwhy:   cause\nnext:  remedy\n");
}

TEST(ReportError, LeavesCommandsInOnePiece) {
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "one two three", {.why = {}, .next = "inferno download a/b"}),
                     Detail::brief, 16),
            "error: one two\n       three\nnext:  inferno download a/b\n");
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "one", {.why = {}, .next = "inferno list shows the models"}),
                     Detail::brief, 20),
            "error: one\nnext:  inferno list\n       shows the\n       models\n");
}

TEST(ReportError, EscapesWhatAFileSmuggledIn) {
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "tensor \x1b[31m")), "error: tensor \\x1b[31m\n");
}

TEST(ReportError, GivesEachKindItsExitCode) {
  EXPECT_EQ(exit_code(ErrorKind::internal), 1);
  EXPECT_EQ(exit_code(ErrorKind::invalid_request), 2);
  EXPECT_EQ(exit_code(ErrorKind::not_found), 3);
  EXPECT_EQ(exit_code(ErrorKind::unsupported), 4);
  EXPECT_EQ(exit_code(ErrorKind::corrupt), 4);
  EXPECT_EQ(exit_code(ErrorKind::network), 5);
  EXPECT_EQ(exit_code(ErrorKind::io), 6);
  EXPECT_EQ(exit_code(ErrorKind::device), 7);
}

TEST(ReportError, CutsAnEndlessList) {
  std::string names;
  while (names.size() < 5000) names += "model.layers.0.weight, ";
  const std::string text = describe(Error(ErrorKind::corrupt, "missing: " + names));
  EXPECT_LT(text.size(), 260u);
  EXPECT_NE(text.find(" more characters\n"), std::string::npos);
  const std::string whole = describe(Error(ErrorKind::corrupt, "missing: " + names), Detail::full);
  EXPECT_GT(whole.size(), names.size());
}

TEST(ReportError, TakesThreeLinesWhateverItIsTold) {
  const Error error(ErrorKind::corrupt, "a\n  b\n", {.why = "c\nd", .next = "e\nf"});
  for (const Detail detail : {Detail::brief, Detail::full})
    EXPECT_EQ(describe(error, detail), "error: a b\nwhy:   c d\nnext:  e f\n");
}

TEST(ReportError, CutsBetweenCharacters) {
  std::string umlauts = "x";
  while (umlauts.size() < 1000) umlauts += "ä";
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, umlauts)).find("\\x"), std::string::npos);
}

}  // namespace
}  // namespace inferno
