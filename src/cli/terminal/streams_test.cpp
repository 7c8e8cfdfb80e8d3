#include "cli/terminal/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace inferno::terminal {
namespace {

std::string read_all(int file, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t size = 0;
  while (size < bytes) {
    const ssize_t count = ::read(file, text.data() + size, bytes - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

TEST(LineWriter, DropsLinesThatNothingReadsAndSaysHowMany) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  LineWriter writer(ends[1]);
  const std::string line = std::string(4095, 'x') + '\n';
  for (int i = 0; i < 20; ++i) writer.write(line);  // a pipe has room for 16
  EXPECT_EQ(read_all(ends[0], 16 * line.size()).size(), 16 * line.size());
  writer.write("next\n");
  ::close(ends[1]);
  EXPECT_EQ(read_all(ends[0], 4096), "4 lines of the log were dropped\nnext\n");
  ::close(ends[0]);
}

}  // namespace
}  // namespace inferno::terminal
