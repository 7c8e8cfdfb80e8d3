// The shape of a dispatch table: rows in order of preference, of which the first that takes a problem runs
// it. Tables are plain C++ and part of every build, so that a choice can be printed and tested without a GPU.
// The CUDA build has a table of RunRow with the same kernels; is_in_order() compares both at compile time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace inferno::cuda {

template <class Kernel, class Problem>
struct Row {
  Kernel kernel;
  std::string_view name;
  bool (*takes)(const Problem&);
};

template <class Kernel, class Run>
struct RunRow {
  Kernel kernel;
  Run run;
};

template <class Kernel, class Problem, std::size_t Count>
using Table = std::array<Row<Kernel, Problem>, Count>;

// Whether the rows are in the order of the enumerators, which makes a kernel's number its row.
template <class Rows>
constexpr bool is_in_order(const Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].kernel) != i) return false;
  }
  return true;
}

// The last row of a table takes everything.
template <class Kernel, class Problem, std::size_t Count>
constexpr const Row<Kernel, Problem>& first_that_takes(const Table<Kernel, Problem, Count>& table,
                                                       const Problem& problem) {
  std::size_t i = 0;
  while (i + 1 < Count && !table[i].takes(problem)) ++i;
  return table[i];
}

template <class Problem>
constexpr bool takes_everything(const Problem&) {
  return true;
}

}  // namespace inferno::cuda
