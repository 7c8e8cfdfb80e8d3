#include "cli/commands/shared/argument_errors.h"

#include <algorithm>
#include <array>

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

}  // namespace inferno
