#include "cli/terminal/report_error.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(ReportError, SaysWhatWhyAndNext) {
  EXPECT_EQ(describe(Error(ErrorKind::not_found, "a.gguf: no such file")), "error: a.gguf: no such file\n");
  EXPECT_EQ(describe(Error(ErrorKind::corrupt, "what", {.why = "cause", .next = "remedy"})),
            "error: what\nwhy:   cause\nnext:  remedy\n");
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

}  // namespace
}  // namespace inferno
