#include "cli/commands/shared/argument_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace inferno {
namespace {

struct ForeignOption {
  std::string_view name, own;
};

constexpr std::array<ForeignOption, 21> foreign_options = {{{"-tb", "--threads"},
                                                            {"--n-threads", "--threads"},
                                                            {"-ngl", "--device"},
                                                            {"--gpu-layers", "--device"},
                                                            {"--n-gpu-layers", "--device"},
                                                            {"-dev", "--device"},
                                                            {"-mg", "--device"},
                                                            {"--main-gpu", "--device"},
                                                            {"-j", "--schema"},
                                                            {"--json-schema", "--schema"},
                                                            {"--json-schema-file", "--schema"},
                                                            {"--grammar-file", "--grammar"},
                                                            {"-hf", "--model"},
                                                            {"-hfr", "--model"},
                                                            {"--hf-repo", "--model"},
                                                            {"-sys", "--system"},
                                                            {"--system-prompt", "--system"},
                                                            {"-cnv", "--chat"},
                                                            {"--conversation", "--chat"},
                                                            {"--format", "--schema"},
                                                            {"--dtype", "--quantize"}}};

}  // namespace

std::string_view counterpart_of(std::string_view name) {
  const auto found = std::ranges::find(foreign_options, name, &ForeignOption::name);
  return found == foreign_options.end() ? std::string_view() : found->own;
}

std::string listed(std::span<const std::string> words, std::string_view last) {
  std::string text;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (at > 0) text += at + 1 == words.size() ? " " + std::string(last) + " " : ", ";
    text += words[at];
  }
  return text;
}

std::string question(const std::string& name) {
  return name.empty() ? "" : fmt::format("did you mean {}?", name);
}

std::string with_dashes(std::string name) {
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  return name;
}

std::string switch_problem(std::string_view value) {
  constexpr std::array<std::string_view, 10> known = {"true",  "on",  "yes", "enable",  "1",
                                                      "false", "off", "no",  "disable", "0"};
  if (std::ranges::find(known, lower_case(value)) != known.end()) return "";
  return fmt::format("expected true or false, found {}", quote(value));
}

std::string expected_arguments(const std::vector<std::string>& positionals) {
  constexpr std::array<std::string_view, 3> texts = {"PROMPT", "QUERY", "TEXT"};
  if (positionals.empty()) return "this command takes options only";
  if (std::ranges::find(texts, positionals.back()) != texts.end())
    return fmt::format("{} is one argument: quote a text with spaces", positionals.back());
  return fmt::format("expected {} only", listed(positionals, "and"));
}

}  // namespace inferno
