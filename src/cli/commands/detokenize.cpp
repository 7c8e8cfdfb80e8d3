// inferno detokenize: the text of token ids, byte for byte and with nothing added.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/terminal/streams.h"
#include "cli/tokenizer_loading.h"

namespace inferno::command {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> ids;
  bool no_special = false;
};

// Ids separated by spaces or commas, with or without the brackets of a JSON list.
void read_ids(std::vector<TokenId>& ids, std::string_view text) {
  constexpr std::string_view between = " \t\r\n,[]";
  std::size_t at = text.find_first_not_of(between);
  while (at != std::string_view::npos) {
    const std::string_view word = text.substr(at, text.find_first_of(between, at) - at);
    TokenId id = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size()) {
      fail(ErrorKind::invalid_request, fmt::format("ids: expected a number, found `{}`", word));
    }
    ids.push_back(id);
    at = text.find_first_not_of(between, at + word.size());
  }
}

void run(const Options& options) {
  const auto tokenizer = open_tokenizer(options.model);
  std::vector<TokenId> ids;
  for (const std::string& text : options.ids) read_ids(ids, text);
  if (options.ids.empty()) read_ids(ids, read_standard_input());
  const std::string text =
      tokenizer->decode(ids, options.no_special ? SpecialTokens::skip : SpecialTokens::keep);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void detokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("detokenize", "Print the text of token ids");
  const auto options = std::make_shared<Options>();
  takes_model(command->add_option("model", options->model, fmt::format("a tokenizer.json, {}", model_help)))
      ->required();
  command->add_option("ids", options->ids, "Token ids; standard input when absent");
  command->add_flag("--no-special", options->no_special, "Leave special tokens out");
  command->callback([options] { run(*options); });
}

}  // namespace inferno::command
