// `inferno detokenize`: the text of token ids, byte for byte.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_input = std::uint64_t{1} << 30;

struct Options {
  ResolvedModel model;
  std::vector<std::string> ids;
  bool no_special = false;
};

void run(const Options& options) {
  const auto tokenizer = ModelFiles(options.model.path).tokenizer();
  std::vector<TokenId> ids;
  for (const std::string& text : options.ids)
    std::ranges::copy(parse_tokens(text, "ids"), std::back_inserter(ids));
  if (options.ids.empty()) ids = parse_tokens(read_standard_input(max_input), "standard input");
  const std::string text =
      tokenizer->decode(ids, options.no_special ? SpecialTokens::skip : SpecialTokens::keep);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void detokenize(CommandLine app) {
  const Command command = app.command("detokenize", "Print the text of token ids");
  const auto options = std::make_shared<Options>();
  add_model_argument(command, options->model, "a tokenizer.json").required();
  command.option("ids", options->ids, "token ids; standard input if not given");
  command.flag("--no-special", options->no_special, "omit special tokens");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
