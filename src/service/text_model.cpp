#include "service/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/error.h"
#include "chat/conversation.h"
#include "service/model_files.h"

namespace inferno {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// 32 bits, so that a seed survives every JSON reader and can be typed.
std::uint64_t random_seed() {
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
  // The variables that the templates of Qwen, Granite and others read.
  if (request.think)
    conversation.variables = {{"enable_thinking", *request.think}, {"thinking", *request.think}};
  return conversation;
}

}  // namespace

std::string effort_problem(const std::string& text) {
  for (const char* known : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (text == known) return {};
  }
  return fmt::format("reasoning effort: expected low, medium or high, found \"{}\"", text);
}

Json first_messages(const std::string& system, const std::string& user) {
  Json messages = Json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", user}});
  return messages;
}

TextModel::TextModel(ResolvedModel model, const TextModelOptions& options, const LoadCallbacks& callbacks)
    : model_(std::move(model)), is_deterministic_(options.deterministic) {
  const auto start = std::chrono::steady_clock::now();
  const ModelFiles files(model_.path);
  // Quick steps that may fail come first, so that no one waits for weights that cannot be used.
  tokenizer_ = files.tokenizer();
  chat_ = files.chat_format(*tokenizer_);
  const GenerationConfig config = files.generation_config();
  recommended_ = settings_of(config);
  end_tokens_ = end_tokens(*tokenizer_, config);
  start_engine(options, callbacks, files);
  load_seconds_ = seconds_since(start);
}

void TextModel::start_engine(const TextModelOptions& options, const LoadCallbacks& callbacks,
                             const ModelFiles& files) {
  const EngineOptions engine = {.max_sequences = options.parallel, .deterministic = options.deterministic};
  auto backend = open_device(options.device);
  if (callbacks.device_opened) callbacks.device_opened(backend->info());
  auto checkpoint = files.checkpoint();
  if (callbacks.progress) checkpoint = with_progress(std::move(checkpoint), callbacks.progress);
  architecture_ = checkpoint->architecture();
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded = load_model(*checkpoint, *backend,
                                  {.max_tokens = engine.max_step_tokens,
                                   .max_logit_rows = engine.max_sequences,
                                   .context = options.context});
  if (callbacks.weights_loaded) callbacks.weights_loaded(loaded.report, seconds_since(start));
  tokenizer_->pad_to(loaded.decoder->spec().vocab);
  engine_ = std::make_unique<Engine>(std::move(backend), std::move(loaded.decoder), engine);
}

std::vector<SettingWithoutEffect> TextModel::without_effect(const TextRequest& request) const {
  std::vector<SettingWithoutEffect> found;
  const auto check = [&](const char* setting, const auto& reset) {
    if (request.prompt || !chat_) {
      found.push_back({setting, NoEffect::completes_text});
      return;
    }
    TextRequest without = request;
    reset(without);
    if (chat_->render(conversation_of(request)).text != chat_->render(conversation_of(without)).text) return;
    found.push_back({setting, NoEffect::not_in_chat_format});
  };
  if (request.think) check("think", [](TextRequest& without) { without.think.reset(); });
  if (!request.reasoning_effort.empty()) {
    check("reasoning_effort", [](TextRequest& without) { without.reasoning_effort.clear(); });
  }
  return found;
}

PreparedRequest TextModel::prepare(const TextRequest& request) const {
  const SamplingSettings settings = merged(recommended_, request.settings);
  PreparedRequest prepared;
  prepared.generation.sampling = sampling_of(settings);
  auto& seed = prepared.generation.sampling.seed;
  if (!seed) seed = is_deterministic_ ? 0 : random_seed();
  prepared.generation.max_tokens = std::max(settings.max_tokens.value_or(0), 0);
  prepared.stops = settings.stop.value_or(std::vector<std::string>{});
  if (request.prompt) {
    auto tokens = request.parse_special ? tokenizer_->encode_prompt(*request.prompt)
                                        : tokenizer_->encode(*request.prompt);
    prepared.generation.prompt = tokenizer_->add_special(std::move(tokens));
    prepared.generation.stop_tokens = end_tokens_;
  } else {
    if (!chat_) throw no_chat_format(model_.path);
    const Conversation conversation = conversation_of(request);
    prepared.generation.prompt = chat_->render(conversation).tokens;
    prepared.generation.stop_tokens = chat_->stop_tokens();
    prepared.parser = chat_->parser(conversation);
  }
  if (settings.ignore_eos.value_or(false)) prepared.generation.stop_tokens.clear();
  if (prepared.generation.prompt.empty()) {
    fail(ErrorKind::invalid_request, "the prompt is empty",
         {.why = "this model has no beginning-of-text token, so there is nothing to continue",
          .next = "give a prompt of at least one character"});
  }
  return prepared;
}

}  // namespace inferno
