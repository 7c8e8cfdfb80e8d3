#include "cli/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/conversation.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/open_checkpoint.h"
#include "cli/builtin_model.h"
#include "cli/chat_format_loading.h"
#include "cli/load_progress.h"
#include "cli/load_report.h"
#include "cli/tokenizer_loading.h"
#include "model/load.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

// 32 bits, so that a seed survives every JSON reader and a person can type it.
std::uint64_t drawn_seed() {
  return std::random_device()();
}

std::vector<TokenId> end_tokens(const Tokenizer& tokenizer, const GenerationConfig& config) {
  std::vector<TokenId> tokens(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  for (const TokenId token : config.eos) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

Conversation conversation_of(const TextRequest& request) {
  Conversation conversation;
  conversation.messages = request.messages;
  conversation.tools = request.tools;
  conversation.reasoning_effort = request.reasoning_effort;
  // The name that the templates of Qwen, Granite and others read.
  if (request.think)
    conversation.variables = {{"enable_thinking", *request.think}, {"thinking", *request.think}};
  return conversation;
}

std::unique_ptr<Engine> start_engine(const fs::path& path, const std::string& name,
                                     const TextModelOptions& options, Tokenizer& tokenizer,
                                     std::string& architecture) {
  const EngineOptions engine = {.max_sequences = options.parallel, .deterministic = options.deterministic};
  auto backend = make_backend(options.device);
  auto meter = std::make_unique<LoadMeter>(name);
  const auto checkpoint = watched(open_checkpoint(path),
                                  [&](std::uint64_t done, std::uint64_t total) { meter->show(done, total); });
  architecture = checkpoint->architecture();
  const auto start = std::chrono::steady_clock::now();
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = engine.max_step_tokens,
                                  .max_logit_rows = engine.max_sequences,
                                  .context = options.context});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  meter.reset();
  if (options.verbose) print_load_report(model.report, took.count());
  for (const std::string& note : model.report.notes) fmt::print(stderr, "note: {}\n", printable(note));
  tokenizer.pad_to(model.decoder->spec().vocab);
  return std::make_unique<Engine>(std::move(backend), std::move(model.decoder), engine);
}

}  // namespace

void add_text_model_options(CLI::App& command, TextModelOptions& options) {
  add_device_options(command, options.device);
  command
      .add_option("-c,--context,--ctx-size", options.context,
                  "tokens of prompt and answer; 0: the model's own")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command.add_flag("--verbose", options.verbose,
                   "say on stderr how fast the model was read and what was converted, tensor by tensor");
  command.add_flag("--deterministic", options.deterministic,
                   "no bit of an answer depends on what else runs; the seed is 0 unless given");
}

TextModel::TextModel(const fs::path& path, std::string name, const TextModelOptions& options)
    : path_(path.empty() ? builtin_model(Environment::of_process()) : path),
      name_(std::move(name)),
      is_deterministic_(options.deterministic) {
  const auto start = std::chrono::steady_clock::now();
  // What is quick and may fail comes first: nobody waits for weights that cannot be used.
  tokenizer_ = open_tokenizer(path_);
  chat_ = load_chat_format(path_, *tokenizer_);
  const GenerationConfig config =
      fs::is_directory(path_) ? read_generation_config(path_) : GenerationConfig{};
  makers_settings_ = settings_of(config);
  end_tokens_ = end_tokens(*tokenizer_, config);
  engine_ = start_engine(path_, name_, options, *tokenizer_, architecture_);
  load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> TextModel::without_effect(const TextRequest& request) const {
  std::vector<std::string> notes;
  const auto check = [&](std::string_view option, const auto& reset) {
    if (request.prompt || !chat_) {
      notes.push_back(fmt::format("{} has no effect on a text that is completed: it is for conversations{}",
                                  option, chat_ ? " (--chat)" : ", which this model does not have"));
      return;
    }
    TextRequest without = request;
    reset(without);
    if (chat_->render(conversation_of(request)).text != chat_->render(conversation_of(without)).text) return;
    notes.push_back(
        fmt::format("{} has no effect: this model's chat format ({}) has no such setting, or it is "
                    "set so anyway",
                    option, chat_->name()));
  };
  if (request.think) {
    check(*request.think ? "--think" : "--no-think", [](TextRequest& without) { without.think.reset(); });
  }
  if (!request.reasoning_effort.empty()) {
    check("--reasoning-effort", [](TextRequest& without) { without.reasoning_effort.clear(); });
  }
  return notes;
}

PreparedRequest TextModel::prepare(const TextRequest& request) const {
  const SamplingSettings settings = merged(makers_settings_, request.settings);
  PreparedRequest prepared;
  prepared.generation.sampling = sampling_of(settings);
  auto& seed = prepared.generation.sampling.seed;
  if (!seed) seed = is_deterministic_ ? 0 : drawn_seed();
  prepared.generation.max_tokens = std::max(settings.max_tokens.value_or(0), 0);
  prepared.stops = settings.stop.value_or(std::vector<std::string>{});
  if (request.prompt) {
    auto tokens = request.parse_special ? tokenizer_->encode_prompt(*request.prompt)
                                        : tokenizer_->encode(*request.prompt);
    prepared.generation.prompt = tokenizer_->add_special(std::move(tokens));
    prepared.generation.stop_tokens = end_tokens_;
  } else {
    if (!chat_) throw no_chat_format(path_);
    const Conversation conversation = conversation_of(request);
    prepared.generation.prompt = chat_->render(conversation).tokens;
    prepared.generation.stop_tokens = chat_->stop_tokens();
    prepared.parser = chat_->parser(conversation);
  }
  if (settings.ignore_eos.value_or(false)) prepared.generation.stop_tokens.clear();
  if (prepared.generation.prompt.empty()) {
    fail(ErrorKind::invalid_request, "the prompt is empty",
         {.why = "this model has no token that begins a text, so there is nothing to continue",
          .next = "give a prompt of at least one character"});
  }
  return prepared;
}

}  // namespace inferno
