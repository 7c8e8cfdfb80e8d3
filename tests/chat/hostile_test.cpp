// Templates that try to cost too much. Each must be refused because of the budget it exceeds, quickly, and
// with the same message the second time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "base/error.h"
#include "chat/json.h"
#include "hostile_templates.h"
#include "reference.h"

namespace inferno {
namespace {

using jinja::Budgets;

struct Refusal {
  std::string message;
  std::chrono::milliseconds took{};
};

Refusal refusal_of(const std::string& source, const Budgets& budgets) {
  const auto start = std::chrono::steady_clock::now();
  Refusal refusal;
  try {
    jinja::RenderOptions options;
    options.budgets = budgets;
    const Json variables = {{"text", std::string(100'000, 'u')},
                            {"messages", Json::array({{{"role", "user"}}})}};
    jinja::Template::parse(source, "hostile", budgets).render(variables, options);
    refusal.message = "rendered";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    refusal.message = error.what();
  }
  const auto took = std::chrono::steady_clock::now() - start;
  refusal.took = std::chrono::duration_cast<std::chrono::milliseconds>(took);
  return refusal;
}

void expect_refused(const hostile::Seed& seed, const Budgets& budgets, std::string_view budget) {
  SCOPED_TRACE(seed.source.substr(0, 200));
  const Refusal first = refusal_of(seed.source, budgets);
  EXPECT_NE(first.message.find(budget), std::string::npos) << first.message;
  EXPECT_NE(first.message.find("hostile"), std::string::npos) << first.message;
  // The budget is half a second; a debug build with sanitizers on a busy machine takes longer.
  EXPECT_LT(first.took, std::chrono::seconds(10));
  EXPECT_EQ(refusal_of(seed.source, budgets).message.find(budget) != std::string::npos, true);
}

// Budgets for time and steps that are never exceeded, so that another budget ends the rendering.
Budgets unhurried() {
  Budgets budgets;
  budgets.cpu_time = std::chrono::seconds(60);
  budgets.steps = 1'000'000'000;
  return budgets;
}

TEST(HostileTemplates, BeyondTheSourceBudgetAreRefused) {
  for (const auto& seed : hostile::large_sources()) expect_refused(seed, {}, "the limit is 1048576");
}

TEST(HostileTemplates, BeyondTheStepBudgetAreRefused) {
  Budgets budgets = unhurried();
  budgets.steps = 100'000;
  for (const auto& seed : hostile::many_steps()) expect_refused(seed, budgets, "100000 steps");
}

TEST(HostileTemplates, BeyondTheDepthBudgetAreRefused) {
  for (const auto& seed : hostile::deep()) expect_refused(seed, unhurried(), "depth limit of 128");
}

TEST(HostileTemplates, BeyondTheRangeBudgetAreRefused) {
  for (const auto& seed : hostile::long_ranges())
    expect_refused(seed, unhurried(), "limit of 100000 items in a range");
}

TEST(HostileTemplates, BeyondTheOutputBudgetAreRefused) {
  Budgets budgets = unhurried();
  budgets.output_bytes = 1'000'000;
  for (const auto& seed : hostile::long_outputs()) expect_refused(seed, budgets, "output limit of 1000000");
}

TEST(HostileTemplates, BeyondTheMemoryBudgetAreRefused) {
  Budgets budgets = unhurried();
  budgets.heap_bytes = 8'000'000;
  for (const auto& seed : hostile::large_values()) expect_refused(seed, budgets, "memory limit of 8000000");
}

TEST(HostileTemplates, BeyondTheWallBudgetAreRefused) {
  Budgets budgets;
  budgets.steps = INT64_MAX / 2;
  budgets.cpu_time = std::chrono::milliseconds(50);
  for (const auto& seed : hostile::many_steps()) expect_refused(seed, budgets, "50 ms");
}

// Peak memory of this process; 0 with sanitizers, which keep more than a program asks for.
std::int64_t peak_memory() {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::int64_t{used.ru_maxrss} << 10;
#endif
}

TEST(HostileTemplates, WithEveryBudgetAtItsDefaultEndSoonAndSmall) {
  for (const auto* seeds :
       {&hostile::many_steps(), &hostile::deep(), &hostile::long_outputs(), &hostile::large_values()}) {
    for (const hostile::Seed& seed : *seeds) {
      const Refusal refusal = refusal_of(seed.source, {});
      EXPECT_NE(refusal.message, "rendered") << seed.source.substr(0, 200);
      EXPECT_LT(refusal.took, std::chrono::seconds(5)) << seed.source.substr(0, 200);
      ASSERT_LT(peak_memory(), std::int64_t{512} << 20) << seed.source.substr(0, 200);
    }
  }
}

TEST(HostileTemplates, AreToldFromHarmlessOnes) {
  jinja::RenderOptions options;
  options.budgets.cpu_time = std::chrono::seconds(60);
  for (const auto& [source, expected] : hostile::harmless_templates()) {
    SCOPED_TRACE(source.substr(0, 200));
    try {
      const std::string text =
          jinja::Template::parse(source, "harmless").render(Json::object(), options).text;
      EXPECT_EQ(text.size() > 100 ? std::to_string(text.size()) : text, expected);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(HostileTemplates, BuildingATextPieceByPieceIsLinear) {
  const auto chat_template = jinja::Template::parse(
      "{% set ns = namespace(t='') %}{% for i in range(100000) %}{% set ns.t = ns.t + 'abcdefgh' %}{% endfor "
      "%}"
      "{{ ns.t|length }}",
      "test");
  jinja::RenderOptions options;
  options.budgets.cpu_time = std::chrono::seconds(60);
  EXPECT_EQ(chat_template.render(Json::object(), options).text, "800000");
}

TEST(HostileTemplates, AValueBeyondTheDepthBudgetIsRefused) {
  Json nested = 1;
  for (int i = 0; i < 200; ++i) nested = Json::array({nested});
  const auto chat_template = jinja::Template::parse("{{ x }}", "hostile");
  EXPECT_THROW(chat_template.render({{"x", nested}}), Error);
}

}  // namespace
}  // namespace inferno
