// embed, add_positions and take_rows: rows of a table, in any format, by index.
#include <gtest/gtest.h>

#include "ops/backends.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class Embed : public FormatTest {};
class AddPositions : public FormatTest {};
class TakeRows : public BackendTest {};

constexpr int table_rows = 33;

// The first row, the last, the same row twice, then rows all over the table.
std::vector<std::int32_t> row_numbers(int count) {
  std::vector<std::int32_t> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back(i == 0 ? table_rows - 1 : i == 1 ? 0 : (i / 2 * 7) % table_rows);
  return rows;
}

TEST_P(Embed, ScalesTheRowsOfItsTokens) {
  for (const int cols : column_counts(format)) {
    const TestWeight& table = device.weight({.format = format, .rows = table_rows, .cols = cols}, 21);
    for (const int count : {1, 2, 7, 40}) {
      const std::vector<std::int32_t> tokens = row_numbers(count);
      const float scale = count == 7 ? 1.0f : 12.5f;
      HostMatrix expected(count, cols);
      for (int r = 0; r < count; ++r) {
        const auto row = table.values[0].row(tokens[static_cast<std::size_t>(r)]);
        for (std::size_t c = 0; c < row.size(); ++c) expected.row(r)[c] = scale * row[c];
      }
      const Matrix out = device.poisoned(count, cols, device.activations());
      device.backend().embed(out, table.packed, device.upload(tokens), scale);
      EXPECT_TRUE(agrees(device.download(out), expected, relative_tolerance(device.activations())))
          << "cols " << cols << ", tokens " << count;
    }
  }
}

TEST_P(AddPositions, AddsTheRowsOfItsPositions) {
  for (const int cols : column_counts(format)) {
    const TestWeight& table = device.weight({.format = format, .rows = table_rows, .cols = cols}, 22);
    for (const int count : {1, 7, 40}) {
      const std::vector<std::int32_t> positions = row_numbers(count);
      HostMatrix expected = random_matrix(count, cols, 1.0, 23);
      const Matrix x = device.upload(expected, device.activations());
      for (int r = 0; r < count; ++r) {
        const auto row = table.values[0].row(positions[static_cast<std::size_t>(r)]);
        for (std::size_t c = 0; c < row.size(); ++c) expected.row(r)[c] += row[c];
      }
      device.backend().add_positions(x, table.packed, device.upload(positions));
      EXPECT_TRUE(agrees(device.download(x), expected, relative_tolerance(device.activations())))
          << "cols " << cols << ", tokens " << count;
    }
  }
}

TEST_P(TakeRows, CopiesThemExactly) {
  for (const int cols : {1, 3, 17, 96, 257}) {
    HostMatrix input = random_matrix(table_rows, cols, 1.0, 24);
    const Matrix in = device.upload(input, device.activations());
    for (const int count : {0, 1, 2, 7, 40}) {
      const std::vector<std::int32_t> rows = row_numbers(count);
      HostMatrix expected(count, cols);
      for (int r = 0; r < count; ++r) {
        const auto row = input.row(rows[static_cast<std::size_t>(r)]);
        std::copy(row.begin(), row.end(), expected.row(r).begin());
      }
      const Matrix out = device.poisoned(count, cols, device.activations());
      device.backend().take_rows(out, in, device.upload(rows));
      EXPECT_EQ(device.download(out).values, expected.values) << "cols " << cols << ", rows " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Embed,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, AddPositions,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, TakeRows, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
