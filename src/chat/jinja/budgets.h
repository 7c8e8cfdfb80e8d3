// How much a template may cost. A template is a program that came with a model file, so every resource it
// can spend has a limit from the start, and passing one is an ordinary error, quickly.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace inferno::jinja {

struct Budgets {
  std::size_t source_bytes = std::size_t{1} << 20;
  std::int64_t steps = 5'000'000;  // nodes evaluated, items visited, and one per 64 bytes of text touched
  int depth = 128;                 // nesting of source, of macro calls and of values
  std::int64_t range = 100'000;    // items of one range(), the limit of Jinja2's own sandbox
  std::size_t output_bytes = std::size_t{8} << 20;
  std::size_t heap_bytes = std::size_t{64} << 20;
  std::chrono::milliseconds wall{500};
};

}  // namespace inferno::jinja
