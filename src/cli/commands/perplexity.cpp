// `inferno perplexity`: how well a model predicts a text. The number that shows a broken quantization or
// kernel.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "model/export/weight_types.h"
#include "model/load.h"
#include "model/runner.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

struct PerplexityOptions {
  ResolvedModel model;
  std::string file;
  int window = 512;
  int tokens = 0;  // 0: all
  bool json = false;
  DeviceOptions device;
};

struct Score {
  double surprise = 0.0;  // sum of -log p over the scored tokens
  long long scored = 0;
  int windows = 0;
  double perplexity() const { return std::exp(surprise / static_cast<double>(scored)); }
};

// -log softmax(logits)[token], in double: the sum runs over many thousand terms.
double surprise_of(std::span<const float> logits, TokenId token) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return std::log(sum) + top - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

// Windows follow each other without overlap, each from an empty cache; all but its first token are scored.
Score score(Runner& runner, std::span<const TokenId> tokens, int window, int vocab) {
  Score out;
  const auto size = static_cast<std::size_t>(window);
  for (std::size_t start = 0; start + size <= tokens.size(); start += size) {
    const std::span<const TokenId> inputs = tokens.subspan(start, size);
    runner.reset();
    const std::vector<float> logits = runner.feed(inputs.first(size - 1), window - 1);
    for (std::size_t i = 0; i + 1 < size; ++i) {
      const auto row =
          std::span(logits).subspan(i * static_cast<std::size_t>(vocab), static_cast<std::size_t>(vocab));
      out.surprise += surprise_of(row, inputs[i + 1]);
      if (!std::isfinite(out.surprise)) {
        fail(ErrorKind::corrupt, fmt::format("the model's logits at token {} are not finite", start + i),
             {.why = "a weight holds NaN or infinity, or overflowed",
              .next = "check the model with `inferno inspect`"});
      }
      ++out.scored;
    }
    ++out.windows;
  }
  return out;
}

std::vector<TokenId> tokens_of(const PerplexityOptions& options, const ModelFiles& files) {
  constexpr std::uint64_t max_bytes = 1u << 30;
  const auto tokenizer = files.tokenizer();
  std::vector<TokenId> tokens =
      tokenizer->encode_with_special(read_file(options.file, max_bytes, Pipes::accept));
  if (options.tokens > 0 && tokens.size() > static_cast<std::size_t>(options.tokens)) {
    tokens.resize(static_cast<std::size_t>(options.tokens));
  }
  if (tokens.size() < static_cast<std::size_t>(options.window)) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: {} tokens do not fill one window of {}", options.file, tokens.size(),
                     options.window),
         {.why = {}, .next = "give a longer text or a smaller --window"});
  }
  return tokens;
}

void run(const PerplexityOptions& options) {
  const ModelFiles files(options.model.path);
  const auto checkpoint = files.checkpoint();
  const std::vector<TokenId> tokens = tokens_of(options, files);
  const auto backend = make_backend(options.device);
  constexpr int max_logit_rows = 128;
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = std::min(options.window, 512),
                                  .max_logit_rows = std::min(options.window, max_logit_rows),
                                  .context = options.window,
                                  .cache = options.device.cache},
                                 parse_quantize(options.device.quantize));
  for (const std::string& note : model.report.notes) say(fmt::format("note: {}\n", note));
  Runner runner(*model.decoder, *backend, options.window);
  const auto start = std::chrono::steady_clock::now();
  const Score result = score(runner, tokens, options.window, model.decoder->spec().vocab);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) {
    const Json out = {{"perplexity", result.perplexity()}, {"tokens", tokens.size()},
                      {"windows", result.windows},         {"window", options.window},
                      {"scored", result.scored},           {"seconds", seconds}};
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("perplexity {:.4f}  ({} tokens scored in {} windows of {}, {:.1f} s)\n", result.perplexity(),
             result.scored, result.windows, options.window, seconds);
}

}  // namespace

void perplexity(CommandLine app) {
  const Command command = app.command("perplexity", "Measure how well a model predicts a text");
  const auto options = std::make_shared<PerplexityOptions>();
  add_model_argument(command, options->model).required();
  command.option("FILE", options->file, "a text file, UTF-8").required();
  command
      .option("--window", options->window, "tokens of each independent window; all but the first are scored")
      .range(2, 1 << 20)
      .shows_default();
  command.option("--tokens", options->tokens, "only the first N tokens of the text").range(2, 1 << 30);
  command.flag("--json", options->json, "print JSON");
  add_device_options(command, options->device);
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
