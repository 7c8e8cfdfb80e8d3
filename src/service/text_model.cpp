#include "service/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/seconds.h"
#include "catalogue/catalogue.h"
#include "chat/constraint/compile.h"
#include "chat/constraint/read_constraint.h"
#include "chat/conversation.h"
#include "chat/make_chat_format.h"
#include "chat/reply/shape.h"
#include "checkpoint/open_checkpoint.h"
#include "model/export/weight_types.h"
#include "model/load.h"
#include "model/runner.h"
#include "service/loading/model_files.h"

namespace inferno {
namespace {

// Each is looked up among the others.
constexpr std::size_t max_template_variables = 1024;

// 32 bits, so that a seed survives every JSON reader and can be typed.
std::uint64_t random_seed() {
  return std::random_device()();
}

std::uint64_t random_bits() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::vector<TokenId> end_tokens(const Tokenizer& tokenizer, const GenerationConfig& config) {
  std::vector<TokenId> tokens(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  for (const TokenId token : config.eos) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

// A token that neither the model nor the tokenizer has would never end an answer.
void check_end_tokens(std::span<const TokenId> tokens, const std::string& model, int vocab, int tokenizer) {
  for (const TokenId token : tokens) {
    if (token < std::max(vocab, tokenizer)) continue;
    fail(ErrorKind::corrupt,
         fmt::format("{}: eos_token_id {} is beyond the vocabulary of {} tokens", model, token, vocab),
         {.why = "no answer could end with this token",
          .next = "correct generation_config.json or config.json, or download the model again"});
  }
}

Conversation conversation_of(const TextRequest& request) {
  Conversation conversation;
  conversation.messages = request.messages;
  conversation.tools = request.tools;
  conversation.reasoning_effort = request.reasoning_effort;
  conversation.continue_final_message = request.continue_final_message;
  conversation.add_generation_prompt = request.add_generation_prompt && !request.continue_final_message;
  // The variables that the templates of Qwen, Granite and others read.
  if (request.think)
    conversation.variables = {{"enable_thinking", *request.think}, {"thinking", *request.think}};
  if (Json format = response_format_of(request.constraint); !format.is_null()) {
    if (conversation.variables.is_null()) conversation.variables = Json::object();
    conversation.variables["response_format"] = std::move(format);
  }
  if (request.template_variables.is_null()) return conversation;
  if (!request.template_variables.is_object()) {
    fail(ErrorKind::invalid_request, fmt::format("template variables: expected an object, found {}",
                                                 request.template_variables.type_name()));
  }
  if (const std::size_t count = request.template_variables.size(); count > max_template_variables) {
    fail(ErrorKind::invalid_request,
         fmt::format("template variables: expected at most {}, found {}", max_template_variables, count));
  }
  if (conversation.variables.is_null()) conversation.variables = Json::object();
  conversation.variables.update(request.template_variables);
  return conversation;
}

std::string template_of(const ModelFiles& files, const std::filesystem::path& chosen) {
  if (!chosen.empty()) return read_file(chosen, jinja::Budgets{}.source_bytes);
  try {
    return files.chat_template(/*with_tools=*/false).source;
  } catch (const Error&) {
    return {};
  }
}

std::size_t content_bytes(const Json& messages) {
  const auto size = [](const Json* text) {
    return text != nullptr && text->is_string() ? text->get_ref<const std::string&>().size() : 0;
  };
  std::size_t bytes = 0;
  for (const Json& message : messages) {
    const Json* content = find_member(message, "content");
    bytes += size(content);
    if (content == nullptr || !content->is_array()) continue;
    for (const Json& part : *content) bytes += size(find_member(part, "text"));
  }
  return bytes;
}

// Up to this length the tokens of a prompt that is too long are counted, for the error, because it takes a
// fraction of the time of computing a prompt that fits.
std::size_t max_counted_bytes(int context) {
  return std::max<std::size_t>(std::size_t{128} << 10, 6 * static_cast<std::size_t>(context));
}

std::string control_warning(std::string_view token) {
  return fmt::format(
      "the prompt spells the control token {}, which was read as ordinary text; set "
      "parse_special to make it a control token",
      token);
}

// Tools alone do not: the model may call them in any form that the parser of replies understands.
bool asks_for_form(const ReplyConstraint& constraint) {
  const auto is_strict = [](const OfferedFunction& function) { return function.strict; };
  return constraint.text || constraint.calls == CallMode::required ||
         std::ranges::any_of(constraint.functions, is_strict);
}

}  // namespace

void take_constraint(TextRequest& request, const Json& fields) {
  request.constraint = read_constraint(fields);
  const auto choice = fields.find("tool_choice");
  // Only some of the tools may be called.
  if (choice != fields.end() && choice->is_object()) request.harmony_mask = true;
  request.tools = nullptr;
  if (request.constraint.functions.empty()) return;
  request.tools = fields.at("tools");
}

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
  model_.path = folder_of_weights(model_.path);
  require_model(model_.path);  // or an error about a tokenizer would say what is wrong with another file
  const ModelFiles files(model_.path);
  // Quick steps that may fail come first, so that no one waits for weights that cannot be used.
  tokenizer_ = files.tokenizer();
  chat_ = options.chat_template_file.empty() ? files.chat_format(*tokenizer_)
                                             : files.chat_format(*tokenizer_, options.chat_template_file);
  chat_template_ = template_of(files, options.chat_template_file);
  shows_tools_ = chat_ && inferno::shows_tools(*chat_);
  const GenerationConfig config = files.generation_config();
  recommended_ = settings_of(config);
  end_tokens_ = end_tokens(*tokenizer_, config);
  start_engine(options, callbacks, files);
  load_seconds_ = seconds_since(start);
}

void TextModel::start_engine(const TextModelOptions& options, const LoadCallbacks& callbacks,
                             const ModelFiles& files) {
  EngineOptions engine = {.max_sequences = options.parallel,
                          .cache_bytes = options.cache_bytes,
                          .deterministic = options.deterministic};
  if (options.max_waiting > 0) engine.max_waiting = options.max_waiting;
  auto backend = open_device(options.device);
  engine.suit(backend->step_rows());
  // A step has at least one row for each running sequence, so fewer rows would be fewer sequences.
  engine.max_step_tokens = options.max_step_tokens > 0 ? options.max_step_tokens
                                                       : std::max(engine.max_step_tokens, options.parallel);
  if (callbacks.device_opened) callbacks.device_opened(backend->info());
  auto checkpoint = files.checkpoint();
  if (callbacks.progress) checkpoint = with_progress(std::move(checkpoint), callbacks.progress);
  architecture_ = checkpoint->architecture();
  check_end_tokens(end_tokens_, model_.path.string(), describe_model(*checkpoint).spec.vocab,
                   tokenizer_->size());
  masks_harmony_ = options.harmony_mask;
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded = load_model(*checkpoint, *backend,
                                  {.max_tokens = engine.max_step_tokens,
                                   .max_logit_rows = engine.max_sequences,
                                   .context = options.context,
                                   .cache = options.device.cache},
                                  parse_quantize(options.device.quantize));
  if (callbacks.weights_loaded) callbacks.weights_loaded(loaded.report, seconds_since(start));
  vocab_ = loaded.decoder->spec().vocab;
  tokenizer_->pad_to(vocab_);
  constraints_ = std::make_unique<ConstraintStore>(*tokenizer_);
  engine_ = std::make_unique<Engine>(std::move(backend), std::move(loaded.decoder), engine);
}

std::vector<SettingWithoutEffect> TextModel::without_effect(const TextRequest& request) const {
  std::vector<SettingWithoutEffect> found;
  // Renders the conversation with the field as it is without the setting, and with its other values.
  const auto check = [&](const char* setting, auto member, const auto& unset, const auto& others) {
    if (request.prompt || request.prompt_tokens || !chat_) {
      found.push_back({setting, NoEffect::completes_text});
      return;
    }
    const auto rendered = [&](const auto& value) {
      TextRequest changed = request;
      changed.*member = value;
      return chat_->render(conversation_of(changed)).text;
    };
    const std::string without = rendered(unset);
    if (rendered(request.*member) != without) return;
    const bool is_known =
        std::ranges::any_of(others, [&](const auto& other) { return rendered(other) != without; });
    found.push_back({setting, is_known ? NoEffect::is_default : NoEffect::not_in_chat_format});
  };
  if (request.think)
    check("think", &TextRequest::think, std::optional<bool>(), std::array{std::optional(!*request.think)});
  if (!request.reasoning_effort.empty()) {
    check("reasoning_effort", &TextRequest::reasoning_effort, std::string(),
          std::array<std::string, 3>{"low", "medium", "high"});
  }
  return found;
}

void TextModel::check_tools(const TextRequest& request) const {
  if (!request.tools.is_array() || request.tools.empty()) return;
  if (request.prompt || request.prompt_tokens) {
    fail(ErrorKind::invalid_request,
         "tools: expected a conversation: a prompt that is completed shows the model no tools");
  }
  if (chat_ && !shows_tools_) fail(ErrorKind::invalid_request, std::string(tools_not_shown));
}

// Fills the prompt, how the reply ends and how it is parsed.
void TextModel::prepare_prompt(PreparedRequest& prepared, const TextRequest& request) const {
  GenerationRequest& generation = prepared.generation;
  generation.stop_tokens = end_tokens_;
  check_tools(request);
  const RequestLimits limits = engine_->limits();
  const std::size_t max_tokens =
      static_cast<std::size_t>(limits.context) - 1;  // one must be left to generate
  if (request.prompt_tokens) {
    const std::size_t count = request.prompt_tokens->size();
    if (count > max_tokens) throw PromptTooLong(count, /*is_exact=*/true, limits);
    generation.prompt = *request.prompt_tokens;
    constrain(prepared, request, {});
    return;
  }
  const auto too_long = [&](std::size_t bytes, const auto& count) {
    const bool is_exact = bytes <= max_counted_bytes(limits.context);
    return PromptTooLong(is_exact ? count() : max_tokens + 1, is_exact, limits);
  };
  if (request.prompt) {
    const TextSpan span{*request.prompt, request.parse_special ? Origin::trusted : Origin::user};
    auto tokens = tokenizer_->encode_within({&span, 1}, max_tokens);
    if (!tokens) {
      throw too_long(span.text.size(),
                     [&] { return tokenizer_->add_special(tokenizer_->encode_spans({&span, 1})).size(); });
    }
    generation.prompt = tokenizer_->add_special(*std::move(tokens));
    const auto control = request.parse_special ? std::nullopt : tokenizer_->first_control(*request.prompt);
    if (control) prepared.warnings.push_back(control_warning(tokenizer_->bytes(*control)));
    constrain(prepared, request, {});
    return;
  }
  if (!chat_) throw no_chat_format(model_.path);
  // A template that renders megabytes would exceed its own limits first, with an error that helps less.
  const std::size_t longest = tokenizer_->max_token_bytes();
  const std::size_t content = content_bytes(request.messages);
  if (longest > 0 && content > max_counted_bytes(limits.context) && content / longest > max_tokens) {
    throw PromptTooLong(max_tokens + 1, /*is_exact=*/false, limits);
  }
  Conversation conversation = conversation_of(request);
  Prompt prompt = chat_->render(conversation, max_tokens);
  if (prompt.is_too_long) {
    throw too_long(prompt.text.size(), [&] { return chat_->render(conversation).tokens.size(); });
  }
  constrain(prepared, request, chat_->shape(conversation, prompt));
  generation.stop_tokens = chat_->stop_tokens();
  // Ids of calls are unique among all answers, unless answers are to be the same.
  const std::uint64_t seed = is_deterministic_ ? *generation.sampling.seed : random_bits();
  for (int i = 0; i < request.choices; ++i) {
    conversation.call_seed = seed + static_cast<std::uint64_t>(i);
    prepared.parsers.push_back(chat_->parser(conversation, prompt));
  }
  generation.prompt = std::move(prompt.tokens);
}

void TextModel::constrain(PreparedRequest& prepared, const TextRequest& request,
                          const ReplyShape& shape) const {
  ReplyConstraint constraint = request.constraint;
  const bool is_harmony = shape.kind == ReplyShape::Kind::channels;
  if (!asks_for_form(constraint) && !request.harmony_mask.value_or(is_harmony && masks_harmony_)) return;
  if (constraint.functions.empty() && !request.tools.is_null()) {
    constraint.functions = read_constraint({{"tools", request.tools}}).functions;
  }
  const bool opens_reply = request.add_generation_prompt || request.continue_final_message;
  if (is_harmony && (constraint.is_empty() || (!request.harmony_mask && !asks_for_form(constraint)))) {
    // An answer that ignores its end goes on after it, where Harmony has no form.
    const bool ignores_end = request.settings.ignore_eos.value_or(false);
    if (ignores_end || !opens_reply) return;
  }
  if (shape.kind != ReplyShape::Kind::completion && !opens_reply && restricts(constraint, shape)) {
    fail(ErrorKind::invalid_request,
         "add_generation_prompt: expected true, because the form of the reply is constrained");
  }
  const auto notes = std::make_shared<ConstraintNotes>();
  prepared.generation.constraint = constraints_->compile(constraint, shape, notes);
  if (prepared.generation.constraint) prepared.notes = notes;
}

Prompt TextModel::render(const TextRequest& request, std::size_t max_tokens) const {
  if (!chat_) throw no_chat_format(model_.path);
  return chat_->render(conversation_of(request), max_tokens);
}

std::vector<float> TextModel::logits(const std::vector<TokenId>& tokens, int rows) const {
  const RequestLimits limits = engine_->limits();
  if (tokens.size() > static_cast<std::size_t>(limits.context)) {
    throw PromptTooLong(tokens.size(), /*is_exact=*/true, limits);
  }
  const int count = static_cast<int>(tokens.size());
  if (rows < 1 || rows > count) {
    fail(ErrorKind::invalid_request, fmt::format("logits of {} tokens: only {} were given", rows, count));
  }
  std::vector<float> found;
  engine_->run_between_steps([&](Decoder& decoder, Backend& backend) {
    found = Runner(decoder, backend, count).feed(tokens, rows);
  });
  return found;
}

PreparedRequest TextModel::prepare(const TextRequest& request) const {
  const SamplingSettings settings = merged(recommended_, request.settings);
  PreparedRequest prepared;
  GenerationRequest& generation = prepared.generation;
  generation.sampling = sampling_of(settings);
  auto& seed = generation.sampling.seed;
  if (!seed) seed = is_deterministic_ ? 0 : random_seed();
  generation.max_tokens = std::max(settings.max_tokens.value_or(0), 0);
  generation.min_tokens = settings.min_tokens.value_or(0);
  generation.choices = request.choices;
  generation.client = request.client;
  generation.cache_scope = request.cache_scope;
  generation.reuse_prefix = request.reuse_prefix;
  generation.prompt_logprobs = request.prompt_logprobs;
  prepared.stops = settings.stop.value_or(std::vector<std::string>{});
  prepared.stop_token_ids = settings.stop_token_ids.value_or(std::vector<TokenId>{});
  for (const TokenId token : prepared.stop_token_ids) {
    if (token < vocab_) continue;
    fail(ErrorKind::invalid_request,
         fmt::format("stop_token_ids: expected token ids from 0 to {}, found {}", vocab_ - 1, token));
  }
  prepare_prompt(prepared, request);
  if (settings.ignore_eos.value_or(false)) generation.stop_tokens.clear();
  generation.stop_tokens.insert(generation.stop_tokens.end(), prepared.stop_token_ids.begin(),
                                prepared.stop_token_ids.end());
  if (generation.prompt.empty()) {
    fail(ErrorKind::invalid_request, "the prompt is empty",
         {.why = "this model has no beginning-of-text token, so there is nothing to continue",
          .next = "give a prompt of at least one character"});
  }
  return prepared;
}

}  // namespace inferno
