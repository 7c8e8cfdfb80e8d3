// `inferno tokenize`: the token ids of a text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/command.h"
#include "cli/commands/shared/arguments.h"
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

void tokenize(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Print the token ids of a text (--text, or standard input)");
  const auto options = std::make_shared<Options>();
  add_model_argument(*command, options->model, "a tokenizer.json")->required();
  CLI::Option* text = command->add_option("--text", options->text, "The text; standard input when absent");
  command->add_flag("--no-special", options->no_special, "Add no begin and end tokens");
  command->add_flag("--plain", options->plain, "Treat control tokens in the text as ordinary characters");
  command->add_flag("--json", options->json, "Print {\"ids\":[...]}");
  command->callback([options, text] {
    options->has_text = text->count() > 0;
    run(*options);
  });
}

}  // namespace inferno::command
