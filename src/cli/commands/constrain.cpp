// `inferno constrain`: compiles a constraint, says what it cost, and where texts stop being right, byte by
// byte and token by token through the masks that sampling would use.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/file.h"
#include "catalogue/catalogue.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/constrain/cases.h"
#include "cli/environment.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{64} << 20;

struct Options {
  std::string model, schema, regex, regex_file, grammar, choices, conversation, cases, check;
  std::string whitespace = "flexible";
  bool verify_masks = false;
};

std::string read_whole(const std::string& path) {
  return read_file(path, max_file_bytes, Pipes::accept);
}

constrain::Case case_of(const Options& options) {
  constrain::Case one;
  if (!options.schema.empty()) {
    one.kind = constrain::Kind::schema;
    one.source = read_whole(options.schema);
  } else if (!options.grammar.empty()) {
    one.kind = constrain::Kind::grammar;
    one.source = read_whole(options.grammar);
  } else if (!options.choices.empty()) {
    one.kind = constrain::Kind::choices;
    one.source = read_whole(options.choices);
  } else if (!options.conversation.empty()) {
    one.kind = constrain::Kind::request;
    one.source = read_whole(options.conversation);
  } else if (!options.regex_file.empty()) {
    one.kind = constrain::Kind::regex;
    one.source = read_whole(options.regex_file);
  } else {
    one.kind = constrain::Kind::regex;
    one.source = options.regex;
  }
  return one;
}

void run(const Options& options) {
  const Catalogue catalogue(catalogue_settings(Environment::of_process()));
  const ResolvedModel model = options.model.empty() ? catalogue.builtin() : catalogue.resolve(options.model);
  const ModelFiles files(model.path);
  const auto tokenizer = files.tokenizer();
  const auto chat = files.chat_format(*tokenizer);
  const constrain::Settings settings = {.tokenizer = *tokenizer,
                                        .chat = chat.get(),
                                        .vocabulary = grammar::make_vocabulary(*tokenizer),
                                        .compact_whitespace = options.whitespace == "compact",
                                        .verify_masks = options.verify_masks};
  if (!options.cases.empty()) {
    constrain::run_cases(settings, read_whole(options.cases),
                         [](const std::string& line) { fmt::print("{}\n", line); });
    return;
  }
  constrain::Case one = case_of(options);
  if (!options.check.empty()) one.texts = constrain::read_texts(read_whole(options.check));
  try {
    fmt::print("{}\n", constrain::run_case(settings, one));
  } catch (const grammar::RefusedError& error) {
    fmt::print("{}\n", constrain::describe(one, error.refusal()));
    throw;
  }
}

}  // namespace

void constrain(CommandLine app) {
  const Command command =
      app.command("constrain", "Compile a constraint on the output and check texts against it");
  const auto options = std::make_shared<Options>();
  command.option("-m,--model", options->model, "a tokenizer.json, " + std::string(model_help));
  const Option schema = command.option("--schema", options->schema, "a file with a JSON schema");
  const Option regex =
      command.option("--regex", options->regex, "a regular expression that the whole text matches");
  const Option regex_file =
      command.option("--regex-file", options->regex_file, "a file with such an expression");
  const Option grammar = command.option("--grammar", options->grammar, "a file with a GBNF grammar");
  const Option choices = command.option("--choices", options->choices, "a file with a JSON list of texts");
  const Option conversation =
      command.option("--conversation", options->conversation, "a file with the body of a chat completion");
  const Option cases =
      command.option("--cases", options->cases, "a file with a constraint and texts on each line");
  command.option("--check", options->check, "a file of texts, {\"text\": …} on each line, to check")
      .excludes(cases);
  command.flag("--verify-masks", options->verify_masks, "compare every mask with trying every token");
  command.option("--whitespace", options->whitespace, "blanks in JSON: flexible, compact")
      .one_of({"flexible", "compact"});
  const std::vector<Option> kinds = {schema, regex, regex_file, grammar, choices, conversation, cases};
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) kinds[i].excludes(kinds[j]);
  command.run([options, kinds] {
    bool any = false;
    for (const Option& kind : kinds) any = any || kind.was_given();
    if (!any)
      fail(ErrorKind::invalid_request,
           "one of --schema, --regex, --regex-file, --grammar, --choices, --conversation or --cases is "
           "needed");
    run(*options);
  });
}

}  // namespace inferno::command
