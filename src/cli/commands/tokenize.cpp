// `inferno tokenize`: the token ids of a text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "service/model_files.h"

namespace inferno::command {
namespace {

struct Options {
  ResolvedModel model;
  std::string text;
  bool has_text = false;
  bool no_special = false;
  bool plain = false;
  bool json = false;
};

void run(const Options& options) {
  const auto tokenizer = ModelFiles(options.model.path).tokenizer();
  const std::string text = options.has_text ? options.text : read_standard_input();
  std::vector<TokenId> ids = options.plain ? tokenizer->encode(text) : tokenizer->encode_prompt(text);
  if (!options.no_special) ids = tokenizer->add_special(std::move(ids));
  if (options.json) {
    fmt::print("{{\"ids\":[{}]}}\n", fmt::join(ids, ","));
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
}

}  // namespace

void tokenize(CommandLine app) {
  const Command command =
      app.command("tokenize", "Print the token ids of a text (--text, or standard input)");
  const auto options = std::make_shared<Options>();
  add_model_argument(command, options->model, "a tokenizer.json").required();
  const Option text = command.option("--text", options->text, "the text; standard input if not given");
  command.flag("--no-special", options->no_special, "do not add begin and end tokens");
  command.flag("--plain", options->plain, "treat control tokens in the text as ordinary characters");
  command.flag("--json", options->json, "print {\"ids\":[...]}");
  command.run([options, text] {
    options->has_text = text.was_given();
    run(*options);
  });
}

}  // namespace inferno::command
