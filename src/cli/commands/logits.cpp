// `inferno logits`: the logits after each token, in a file for other tools.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "checkpoint/safetensors/writer.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "model/export/weight_types.h"
#include "model/load.h"
#include "model/runner.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

constexpr int chunk = 512, max_logit_rows = 64, max_sequences = chunk;

struct LogitsOptions {
  ResolvedModel model;
  std::string tokens, tokens_file, output;
  int last = 0;         // 0: all
  std::vector<int> at;  // positions; empty: the last ones
  bool lines = false;
  DeviceOptions device;
};

std::string read_tokens(const LogitsOptions& options) {
  constexpr std::uint64_t max_bytes = 64u << 20;
  return options.tokens_file.empty() ? options.tokens
                                     : read_file(options.tokens_file, max_bytes, Pipes::accept);
}

std::string origin_of(const LogitsOptions& options) {
  return options.tokens_file.empty() ? "--tokens" : options.tokens_file;
}

std::vector<TokenId> tokens_in(std::string_view text, const LogitsOptions& options) {
  std::vector<TokenId> tokens = parse_tokens(text, origin_of(options));
  if (tokens.empty()) fail(ErrorKind::invalid_request, fmt::format("{}: no tokens", origin_of(options)));
  return tokens;
}

std::vector<std::vector<TokenId>> read_lines(const LogitsOptions& options) {
  const std::string text = read_tokens(options);
  std::vector<std::vector<TokenId>> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      out.push_back(tokens_in(line, options));
    }
    at = end + 1;
  }
  if (out.empty()) fail(ErrorKind::invalid_request, fmt::format("{}: no tokens", origin_of(options)));
  if (out.size() > static_cast<std::size_t>(max_sequences)) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: {} lines, expected at most {}", origin_of(options), out.size(), max_sequences));
  }
  return out;
}

LoadedModel load(const LogitsOptions& options, Backend& backend, DecoderLimits limits) {
  limits.cache = options.device.cache;
  const auto checkpoint = ModelFiles(options.model.path).checkpoint();
  LoadedModel model = load_model(*checkpoint, backend, limits, parse_quantize(options.device.quantize));
  for (const std::string& note : model.report.notes) say(fmt::format("note: {}\n", note));
  return model;
}

void write(const LogitsOptions& options, const std::vector<float>& logits, int vocab) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / vocab;
  write_safetensors(options.output, {.name = "logits", .rows = rows, .cols = vocab, .values = logits});
  say(fmt::format("wrote logits [{}, {}] to {}\n", rows, vocab, options.output));
}

// Each line is a sequence; the last tokens of all are computed in one step.
void run_lines(const LogitsOptions& options) {
  const std::vector<std::vector<TokenId>> sequences = read_lines(options);
  std::size_t longest = 0;
  for (const std::vector<TokenId>& sequence : sequences) longest = std::max(longest, sequence.size());
  const auto backend = make_backend(options.device);
  const LoadedModel model = load(options, *backend,
                                 {.max_tokens = chunk,
                                  .max_logit_rows = static_cast<int>(sequences.size()),
                                  .context = static_cast<int>(longest)});
  write(options, last_logits(*model.decoder, *backend, sequences), model.decoder->spec().vocab);
}

// The ranges [first, second) of positions whose logits are written, in ascending order.
std::vector<std::pair<int, int>> stops(const LogitsOptions& options, int count) {
  if (options.at.empty()) {
    const int rows = options.last == 0 ? count : options.last;
    if (rows > count) {
      fail(ErrorKind::invalid_request, fmt::format("--last {}: only {} given", rows,
                                                   counted(static_cast<std::uint64_t>(count), "token")));
    }
    return {{count - rows, count}};
  }
  std::vector<std::pair<int, int>> out;
  for (const int position : options.at) {
    if (position < 0 || position >= count || (!out.empty() && position < out.back().second)) {
      fail(ErrorKind::invalid_request,
           fmt::format("--at {}: expected ascending positions from 0 to {}", position, count - 1));
    }
    out.emplace_back(position, position + 1);
  }
  return out;
}

void run(const LogitsOptions& options) {
  const std::vector<TokenId> tokens = tokens_in(read_tokens(options), options);
  const int count = static_cast<int>(tokens.size());
  const std::vector<std::pair<int, int>> wanted = stops(options, count);
  const int rows = wanted.back().second - wanted.back().first;
  const auto backend = make_backend(options.device);
  const LoadedModel model = load(options, *backend,
                                 {.max_tokens = std::min(count, chunk),
                                  .max_logit_rows = std::min(rows, max_logit_rows),
                                  .context = count});
  Runner runner(*model.decoder, *backend, count);
  std::vector<float> logits;
  for (const auto& [first, end] : wanted) {
    const auto start = static_cast<std::size_t>(runner.position());
    const std::vector<float> some =
        runner.feed(std::span(tokens).subspan(start, static_cast<std::size_t>(end) - start), end - first);
    logits.insert(logits.end(), some.begin(), some.end());
  }
  write(options, logits, model.decoder->spec().vocab);
}

}  // namespace

void logits(CommandLine app) {
  const Command command =
      app.command("logits", "Compute the logits of given tokens and write them to a file");
  const auto options = std::make_shared<LogitsOptions>();
  add_model_argument(command, options->model).required();
  const Option tokens = command.option("--tokens", options->tokens, "token ids: 1,2,3");
  const Option file =
      command.option("--tokens-file", options->tokens_file, "a file of token ids").excludes(tokens);
  const Option last =
      command.option("--last", options->last, "only the last N tokens; all tokens if not given")
          .range(1, 1 << 24);
  const Option at = command.option("--at", options->at, "only these positions, from 0: 1,127,4096")
                        .separated_by(',')
                        .excludes(last);
  command
      .flag("--lines", options->lines,
            "each line of the file is a sequence; their last tokens share a step, whose logits are written")
      .needs(file)
      .excludes(last)
      .excludes(at);
  command.option("-o,--output", options->output, "a safetensors file: tensor \"logits\", F32 [N, vocabulary]")
      .required();
  add_device_options(command, options->device);
  command.run([options] {
    if (options->tokens.empty() && options->tokens_file.empty()) {
      fail(ErrorKind::invalid_request, "no tokens given",
           {.why = {}, .next = "add --tokens 1,2,3 or --tokens-file FILE"});
    }
    options->lines ? run_lines(*options) : run(*options);
  });
}

}  // namespace inferno::command
