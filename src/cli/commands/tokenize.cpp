// `inferno tokenize`: the token ids of a text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "service/loading/model_files.h"
#include "text/tokenizer.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_input = std::uint64_t{1} << 30;
constexpr std::size_t max_piece = 4096;

struct Options {
  ResolvedModel model;
  std::string text;
  bool has_text = false;
  bool no_special = false;
  bool plain = false;
  bool json = false;
  std::optional<bool> pieces;
};

// The bytes of each token; a part of a character is shown as \\xNN.
void print_pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool json) {
  if (!json) {
    for (const TokenId id : ids) fmt::print("{:>8}  {}\n", id, quote(tokenizer.bytes(id), max_piece));
    return;
  }
  Json pieces = Json::array();
  for (const TokenId id : ids) pieces.push_back(tokenizer.bytes(id));
  fmt::print("{}\n", Json{{"ids", ids}, {"pieces", std::move(pieces)}}.dump(-1, ' ', false,
                                                                            Json::error_handler_t::replace));
}

void run(const Options& options) {
  const auto tokenizer = ModelFiles(options.model.path).tokenizer();
  const std::string text = options.has_text ? options.text : read_standard_input(max_input);
  std::vector<TokenId> ids = options.plain ? tokenizer->encode(text) : tokenizer->encode_prompt(text);
  if (!options.no_special) ids = tokenizer->add_special(std::move(ids));
  const bool is_read_by_a_person = terminal::is_terminal(STDOUT_FILENO) && !options.json;
  if (options.pieces.value_or(is_read_by_a_person)) return print_pieces(*tokenizer, ids, options.json);
  if (options.json) {
    fmt::print("{{\"ids\":[{}]}}\n", fmt::join(ids, ","));
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
}

}  // namespace

void tokenize(CommandLine app) {
  const Command command = app.command("tokenize", "Print the tokens of a text or of standard input");
  const auto options = std::make_shared<Options>();
  add_model_argument(command, options->model, "a tokenizer.json").required();
  const Option text = command.option("TEXT,--text", options->text, "the text; standard input if not given");
  command.flag("--no-special", options->no_special, "do not add begin and end tokens");
  command.flag("--plain", options->plain, "treat control tokens in the text as ordinary characters");
  command.flag("--pieces,!--no-pieces", options->pieces,
               "print a line for each token: its id and its text; the default on a terminal");
  command.flag("--json", options->json, "print {\"ids\":[...]}, with --pieces also \"pieces\"");
  command.run([options, text] {
    options->has_text = text.was_given();
    run(*options);
  });
}

}  // namespace inferno::command
