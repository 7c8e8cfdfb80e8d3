// Many threads render one template: only the tree is shared.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reference.h"

namespace inferno {
namespace {

TEST(JinjaThreads, RenderOneTemplateAtOnce) {
  const auto chat_template = jinja::Template::parse(
      "{% macro m(x) %}[{{ x }}]{% endmacro %}{% set ns = namespace(t='') %}"
      "{% for i in range(200) %}{% set ns.t = ns.t + m(i ~ name) %}{% endfor %}{{ ns.t|length }}{{ ns.t[:20] "
      "}}",
      "test");
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string name(static_cast<std::size_t>(thread), 'n');
      const std::string expected = chat_template.render({{"name", name}}).text;
      for (int i = 0; i < 20; ++i) right += chat_template.render({{"name", name}}).text == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
}

}  // namespace
}  // namespace inferno
