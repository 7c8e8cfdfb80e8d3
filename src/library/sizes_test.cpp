// Structs of the caller: the field `size` decides what is read and written.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "library/misuse_scene.h"
#include "support/temporary_directory.h"

namespace inferno::library {
namespace {

// sizeof of each struct in every version of the interface. Numbers of a published interface never change.
const std::vector<std::size_t> error_sizes = {2064}, option_sizes = {120, 128, 136},
                               description_sizes = {640, 672, 680}, statistics_sizes = {80},
                               plan_sizes = {208, 240, 248}, part_sizes = {1184}, usage_sizes = {80};

template <class Struct>
bool has_changed_after(const Struct& now, const Struct& before, std::size_t size) {
  const auto* bytes = reinterpret_cast<const char*>(&now);
  return std::memcmp(bytes + size, reinterpret_cast<const char*>(&before) + size, sizeof now - size) != 0;
}

// Calls with `given` and every size up to 8 bytes more than the struct has: with those that are known the
// call succeeds and writes nothing after the struct, with others it fails and writes nothing.
template <class Struct>
void expect_size_checked(const std::vector<std::size_t>& known, Struct given,
                         const std::function<inferno_status(Struct*, inferno_error*)>& call) {
  ASSERT_EQ(known.back(), sizeof given);
  std::vector<std::size_t> sizes(sizeof given + 9);
  for (std::size_t size = 0; size < sizes.size(); ++size) sizes[size] = size;
  sizes.push_back(~std::size_t{0});
  for (const std::size_t size : sizes) {
    Struct used = given;
    used.size = size;
    Report report;
    if (std::ranges::find(known, size) != known.end()) {
      EXPECT_EQ(call(&used, &report), INFERNO_OK) << size << ": " << report.text();
      EXPECT_FALSE(has_changed_after(used, given, size)) << size;
    } else {
      EXPECT_EQ(call(&used, &report), INFERNO_INVALID_REQUEST) << size;
      EXPECT_NE(report.what().find(".size: expected"), std::string::npos) << report.text();
      EXPECT_FALSE(has_changed_after(used, given, sizeof used.size)) << size;
    }
    EXPECT_EQ(used.size, size);
  }
}

// A struct for results with bytes that no result has.
template <class Result>
Result filled() {
  Result result;
  std::memset(static_cast<void*>(&result), '#', sizeof result);
  return result;
}

TEST(Sizes, OptionsHaveASizeOfSomeVersion) {
  const TemporaryDirectory cache;
  const std::string folder = cache.path().string();
  inferno_load_options options = small_options();
  options.cache = folder.c_str();
  options.cache_type = "f16";
  expect_size_checked<inferno_load_options>(option_sizes, options, [](auto* given, auto* e) {
    inferno_model made = {0};
    const inferno_status status = inferno_model_load(tiny_model.c_str(), given, &made, e);
    EXPECT_EQ(inferno_model_unload(made, nullptr), status);
    return status;
  });
  expect_size_checked<inferno_load_options>(option_sizes, options, [](auto* given, auto* e) {
    return inferno_self_test(given, nullptr, 0, nullptr, e);
  });
  expect_size_checked<inferno_load_options>(option_sizes, options, [](auto* given, auto* e) {
    return inferno_list_models(given, nullptr, 0, nullptr, e);
  });
  expect_size_checked<inferno_load_options>(option_sizes, options, [](auto* given, auto* e) {
    auto plan = sized<inferno_plan_result>();
    return inferno_plan(tiny_model.c_str(), given, &plan, e);
  });
}

TEST(Sizes, ResultsHaveASizeOfSomeVersion) {
  const inferno_load_options options = small_options();
  const inferno_model model = load();
  const inferno_answer answer = ask(model, short_request);
  expect_size_checked<inferno_plan_result>(
      plan_sizes, filled<inferno_plan_result>(),
      [&](auto* given, auto* e) { return inferno_plan(tiny_model.c_str(), &options, given, e); });
  expect_size_checked<inferno_description>(
      description_sizes, filled<inferno_description>(),
      [=](auto* given, auto* e) { return inferno_model_describe(model, given, e); });
  expect_size_checked<inferno_statistics>(
      statistics_sizes, filled<inferno_statistics>(),
      [=](auto* given, auto* e) { return inferno_model_statistics(model, given, e); });
  expect_size_checked<inferno_part>(part_sizes, filled<inferno_part>(), [=](auto* given, auto* e) {
    return inferno_answer_next(answer, 0, given, e);
  });
  expect_size_checked<inferno_usage>(usage_sizes, filled<inferno_usage>(), [=](auto* given, auto* e) {
    return inferno_answer_usage(answer, given, e);
  });
  EXPECT_EQ(inferno_answer_free(answer, nullptr), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
}

// There is no struct to say it in: the call only returns the status.
TEST(Sizes, ACallWithAnErrorOfAnotherSizeDoesNothing) {
  const TemporaryDirectory cache;
  const inferno_model model = load();
  const inferno_request request = request_of(short_request);
  const inferno_answer answer = ask(model, short_request);
  Calls calls = calls_with({model, request, answer}, model, request);
  const Calls others = calls_without_handles(cache.path().string());
  calls.insert(calls.end(), others.begin(), others.end());
  for (const auto& [name, call] : calls) {
    for (std::size_t size = 0; size < error_sizes.front() + 9; ++size) {
      if (size == error_sizes.front()) continue;
      auto error = filled<inferno_error>();
      error.size = size;
      const inferno_error before = error;
      ASSERT_EQ(call(&error), INFERNO_INVALID_REQUEST) << name << ", size " << size;
      ASSERT_EQ(std::memcmp(&error, &before, sizeof error), 0) << name << ", size " << size;
    }
  }
  inferno_error error = {};
  error.size = error_sizes.front();
  EXPECT_EQ(inferno_answer_free(answer, &error), INFERNO_OK);
  EXPECT_EQ(inferno_request_free(request, &error), INFERNO_OK);
  EXPECT_EQ(inferno_model_unload(model, &error), INFERNO_OK);
}

// A program that was compiled with an earlier header knows no fields after its structs.
TEST(Sizes, FieldsAfterAStructAreNotRead) {
  for (const std::size_t size : option_sizes) {
    inferno_load_options options = small_options();
    options.size = size;
    options.cache_type = size > 120 ? "f16" : "beyond the struct";
    options.quantize = size > 128 ? "q8_0" : "beyond the struct";
    inferno_model model = {0};
    Report report;
    ASSERT_EQ(inferno_model_load(tiny_model.c_str(), &options, &model, &report), INFERNO_OK) << report.text();
    auto found = sized<inferno_description>();
    EXPECT_EQ(inferno_model_describe(model, &found, &report), INFERNO_OK) << report.text();
    EXPECT_STREQ(found.cache_type, size > 120 ? "f16" : "f32");
    EXPECT_EQ(inferno_model_unload(model, nullptr), INFERNO_OK);
  }
}

}  // namespace
}  // namespace inferno::library
