// A model that is ready to write text: engine, tokenizer, chat format and recommended sampling.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalogue/resolved_model.h"
#include "chat/chat_format.h"
#include "chat/constraint/reply_constraint.h"
#include "chat/json.h"
#include "engine/engine.h"
#include "model/load.h"
#include "service/constraint_store.h"
#include "service/loading/device.h"
#include "service/loading/load_progress.h"
#include "service/sampling_settings.h"

namespace inferno {

class ModelFiles;

// A text to complete or a conversation to answer.
struct TextRequest {
  std::optional<std::string> prompt;                  // to complete; nullopt: answer `messages`
  std::optional<std::vector<TokenId>> prompt_tokens;  // to complete exactly these tokens instead of `prompt`
  Json messages;                                      // in OpenAI's form
  Json tools;                                         // null or an array
  std::string reasoning_effort;                       // empty: the model's default
  std::optional<bool> think;                          // nullopt: the model's default
  Json template_variables;              // null or an object, for the chat template; overrides `think`
  bool add_generation_prompt = true;    // end the prompt with the start of the assistant's turn
  bool continue_final_message = false;  // the reply continues the last message, which must be the assistant's
  bool parse_special = false;           // control tokens spelled in `prompt` become control tokens
  int choices = 1;                      // answers to the same prompt
  std::string client;                   // clients take turns
  std::string cache_scope;              // cached prefixes are shared within a scope, never across
  bool reuse_prefix = true;             // false: compute the whole prompt, even if a prefix is cached
  std::optional<int> prompt_logprobs;   // of the prompt's tokens: Answer::prompt has them
  SamplingSettings settings;            // override the model's recommended ones
  // What the answer must satisfy. Functions that `tools` offers may be called, unless it says otherwise.
  ReplyConstraint constraint;
  // Whether replies keep to the form of the chat format, and arguments of calls to their schemas, even if
  // nothing else constrains them. nullopt: in Harmony, unless the model's options say otherwise.
  std::optional<bool> harmony_mask;
};

// Sets the constraint and the tools from the fields of read_constraint(), which throws. Tools that may not be
// called are not shown to the model.
void take_constraint(TextRequest& request, const Json& fields);

// Reasoning effort in the words of all families: none, minimal, low, medium, high, xhigh, max. A family uses
// the nearest one it has. Returns the problem with `text`, empty if there is none.
std::string effort_problem(const std::string& text);

// A conversation of a system prompt, unless it is empty, and the user's first message.
Json first_messages(const std::string& system, const std::string& user);

// A request in tokens, and how to read the reply.
struct PreparedRequest {
  GenerationRequest generation;
  std::vector<std::string> stops;                     // stop strings
  std::vector<TokenId> stop_token_ids;                // those of `settings`, part of generation.stop_tokens
  std::vector<std::unique_ptr<ReplyParser>> parsers;  // one per choice; empty: the reply is plain text
  std::vector<std::string> warnings;                  // what the requester should know about the prompt
  std::shared_ptr<const ConstraintNotes> notes;       // nullptr: no constraint
};

struct TextModelOptions {
  DeviceOptions device = {};
  int context = 0;             // in tokens; 0: the model's own
  int parallel = 1;            // requests at once
  bool deterministic = false;  // an answer depends on its request alone; the seed is 0 unless it is set
  // As in EngineOptions; 0: its defaults.
  int max_step_tokens = 0, max_waiting = 0;
  std::size_t cache_bytes = 0;
  std::filesystem::path chat_template_file = {};  // instead of the model's own; empty: the model's own
  // Whether replies in Harmony keep to its form.
  bool harmony_mask = true;
};

// Called while a model is loaded. Each may be empty.
struct LoadCallbacks {
  std::function<void(const DeviceInfo& device)> device_opened = {};
  ReportProgress progress = {};
  std::function<void(const LoadReport& report, double seconds)> weights_loaded = {};
};

// Why a setting of a request changes nothing.
enum class NoEffect { completes_text, not_in_chat_format, is_default };
struct SettingWithoutEffect {
  std::string setting;  // "think" or "reasoning_effort"
  NoEffect reason = NoEffect::completes_text;
};

// The error of a conversation with tools that the prompt would not have.
inline constexpr std::string_view tools_not_shown =
    "tools: the chat template of this model does not show tools to it, so it could never call one";

// May be used from several threads, as the engine may.
class TextModel {
 public:
  TextModel(ResolvedModel model, const TextModelOptions& options, const LoadCallbacks& callbacks = {});

  const std::string& name() const { return model_.name; }
  const std::filesystem::path& path() const { return model_.path; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatFormat* chat() const { return chat_.get(); }  // nullptr: the model completes text
  // The source of the chat template, for display; empty if the model has none.
  const std::string& chat_template() const { return chat_template_; }
  bool shows_tools() const { return shows_tools_; }  // prompts of conversations have the tools they offer
  Engine& engine() const { return *engine_; }
  const SamplingSettings& recommended_settings() const { return recommended_; }
  const std::string& architecture() const { return architecture_; }
  double load_seconds() const { return load_seconds_; }

  // Begins to compile the constraint; the engine waits for it. Its errors end the request, and
  // generation.constraint->get() throws them.
  // Error{unsupported} for a conversation with a model that has no chat format, PromptTooLong for a prompt
  // that leaves no room for an answer, Error{invalid_request} for tools that the prompt would not have; else
  // the errors of ChatFormat::render().
  PreparedRequest prepare(const TextRequest& request) const;

  // The conversation of `request` as a prompt, which may exceed the context. Prompt::is_too_long beyond
  // `max_tokens`. The same errors otherwise.
  Prompt render(const TextRequest& request, std::size_t max_tokens) const;

  // The logits after each of the last `rows` of these tokens, f32 [rows, vocab]. Waits for the engine, whose
  // answers wait meanwhile. PromptTooLong, or Error{invalid_request} for a token outside of the vocabulary or
  // more rows than tokens.
  std::vector<float> logits(const std::vector<TokenId>& tokens, int rows) const;

  // Which of `think` and `reasoning_effort` are set and do not change the prompt.
  std::vector<SettingWithoutEffect> without_effect(const TextRequest& request) const;

 private:
  void check_tools(const TextRequest& request) const;
  void prepare_prompt(PreparedRequest& prepared, const TextRequest& request) const;
  void constrain(PreparedRequest& prepared, const TextRequest& request, const ReplyShape& shape) const;
  void start_engine(const TextModelOptions& options, const LoadCallbacks& callbacks, const ModelFiles& files);

  ResolvedModel model_;
  std::string architecture_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatFormat> chat_;
  std::string chat_template_;
  std::vector<TokenId> end_tokens_;
  SamplingSettings recommended_;
  int vocab_ = 0;
  bool shows_tools_ = false;
  bool is_deterministic_ = false;
  bool masks_harmony_ = true;
  double load_seconds_ = 0;
  std::unique_ptr<ConstraintStore> constraints_;
  std::unique_ptr<Engine> engine_;  // after the constraints that its requests use
};

}  // namespace inferno
