// Any text as a regular expression: it compiles or is refused in bounded time, and every mask is what trying
// every token gives.
#include "fuzz/constraint_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  const auto [expression, choices] = fuzz::split_input(data, size);
  fuzz::compile_and_walk([&] { return grammar::compile_regex(expression, fuzz::quick()); }, choices);
  return 0;
}
