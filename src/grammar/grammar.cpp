#include "grammar/grammar.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t max_choices_bytes = std::size_t{1} << 20;

}  // namespace

Grammar::Grammar(Rules rules, Part root, Budget& budget)
    : rules_(std::move(rules)), root_(root), machine_(build_machine(rules_, root_, budget)) {}

std::shared_ptr<const Grammar> compile(Rules rules, Part root, const CompileOptions& options) {
  Budget budget(options.limits, options.cancel);
  return std::make_shared<const Grammar>(std::move(rules), root, budget);
}

std::shared_ptr<const Grammar> compile_choices(std::span<const std::string> choices,
                                               const CompileOptions& options) {
  Budget budget(options.limits, options.cancel);
  if (choices.empty()) refuse(RefusalKind::unsatisfiable, "the list of choices is empty");
  std::size_t bytes = 0;
  for (const std::string& choice : choices) {
    bytes += choice.size();
    if (const auto at = utf8::first_invalid(choice))
      refuse(RefusalKind::invalid, fmt::format("choice {} is not UTF-8 at byte {}", quote(choice), *at));
  }
  if (bytes > max_choices_bytes)
    refuse(RefusalKind::limit, fmt::format("choices of {} bytes (limit {})", bytes, max_choices_bytes));
  Rules rules;
  const Part root = rules.one_of({choices.begin(), choices.end()}, budget);
  return std::make_shared<const Grammar>(std::move(rules), root, budget);
}

}  // namespace inferno::grammar
