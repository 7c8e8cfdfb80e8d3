// `inferno logits`: what the model thinks comes after each token, as numbers for other tools.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/write_safetensors.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/read_file.h"
#include "cli/token_list.h"
#include "model/load.h"
#include "model/runner.h"

namespace inferno::command {
namespace {

struct LogitsOptions {
  std::string model, tokens, tokens_file, output;
  int last = 0;  // 0: all
  DeviceOptions device;
};

void run(const LogitsOptions& options) {
  constexpr std::uint64_t most_bytes = 64u << 20;
  const std::vector<TokenId> tokens =
      options.tokens_file.empty()
          ? parse_tokens(options.tokens, "--tokens")
          : parse_tokens(read_file(options.tokens_file, most_bytes), options.tokens_file);
  const int count = static_cast<int>(tokens.size());
  const int rows = options.last == 0 ? count : options.last;
  if (rows > count) {
    fail(ErrorKind::invalid_request, fmt::format("--last {}: there are only {} tokens", rows, count));
  }
  const auto checkpoint = open_checkpoint(options.model);
  const auto backend = make_backend(options.device);
  constexpr int chunk = 512, most_logit_rows = 64;
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = std::min(count, chunk),
                                  .max_logit_rows = std::min(rows, most_logit_rows),
                                  .context = count});
  for (const std::string& note : model.report.notes) fmt::print(stderr, "note: {}\n", note);
  Runner runner(*model.decoder, *backend, count);
  const std::vector<float> logits = runner.feed(tokens, rows);
  write_safetensors(options.output,
                    {.name = "logits", .rows = rows, .cols = model.decoder->spec().vocab, .values = logits});
  fmt::print(stderr, "wrote logits [{}, {}] to {}\n", rows, model.decoder->spec().vocab, options.output);
}

}  // namespace

void logits(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("logits", "Compute the logits of given tokens and write them to a file");
  const auto options = std::make_shared<LogitsOptions>();
  add_model_argument(*command, options->model)->required();
  CLI::Option* tokens = command->add_option("--tokens", options->tokens, "token ids: 1,2,3");
  command->add_option("--tokens-file", options->tokens_file, "a file of token ids")->excludes(tokens);
  command->add_option("--last", options->last, "only the last N tokens; all of them when not given")
      ->check(CLI::Range(1, 1 << 24));
  command
      ->add_option("-o,--output", options->output,
                   "a safetensors file: tensor \"logits\", F32 [N, vocabulary]")
      ->required();
  add_device_options(*command, options->device);
  command->callback([options] {
    if (options->tokens.empty() && options->tokens_file.empty()) {
      fail(ErrorKind::invalid_request, "no tokens given",
           {.why = {}, .next = "add --tokens 1,2,3 or --tokens-file FILE"});
    }
    run(*options);
  });
}

}  // namespace inferno::command
