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
#include "chat/json.h"
#include "engine/engine.h"
#include "model/load.h"
#include "service/device.h"
#include "service/load_progress.h"
#include "service/sampling_settings.h"

namespace inferno {

class ModelFiles;

// A text to complete or a conversation to answer.
struct TextRequest {
  std::optional<std::string> prompt;  // to complete; nullopt: answer `messages`
  Json messages;                      // in OpenAI's form
  Json tools;                         // null or an array
  std::string reasoning_effort;       // empty: the model's default
  std::optional<bool> think;          // nullopt: the model's default
  bool parse_special = false;         // control tokens spelled in `prompt` become control tokens
  SamplingSettings settings;          // override the model's recommended ones
};

// Reasoning effort in the words of all families: none, minimal, low, medium, high, xhigh, max. A family uses
// the nearest one it has. Returns the problem with `text`, empty if there is none.
std::string effort_problem(const std::string& text);

// A conversation of a system prompt, unless it is empty, and the user's first message.
Json first_messages(const std::string& system, const std::string& user);

// A request in tokens, and how to read the reply.
struct PreparedRequest {
  GenerationRequest generation;
  std::vector<std::string> stops;       // stop strings
  std::unique_ptr<ReplyParser> parser;  // nullptr: the reply is plain text
};

struct TextModelOptions {
  DeviceOptions device = {};
  int context = 0;             // in tokens; 0: the model's own
  int parallel = 1;            // requests at once
  bool deterministic = false;  // an answer depends on its request alone; the seed is 0 unless it is set
};

// Called while a model is loaded. Each may be empty.
struct LoadCallbacks {
  std::function<void(const DeviceInfo& device)> device_opened = {};
  ReportProgress progress = {};
  std::function<void(const LoadReport& report, double seconds)> weights_loaded = {};
};

// Why a setting of a request changes nothing.
enum class NoEffect { completes_text, not_in_chat_format };
struct SettingWithoutEffect {
  std::string setting;  // "think" or "reasoning_effort"
  NoEffect reason = NoEffect::completes_text;
};

// May be used from several threads, as the engine may.
class TextModel {
 public:
  TextModel(ResolvedModel model, const TextModelOptions& options, const LoadCallbacks& callbacks = {});

  const std::string& name() const { return model_.name; }
  const std::filesystem::path& path() const { return model_.path; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatFormat* chat() const { return chat_.get(); }  // nullptr: the model completes text
  Engine& engine() const { return *engine_; }
  const SamplingSettings& recommended_settings() const { return recommended_; }
  const std::string& architecture() const { return architecture_; }
  double load_seconds() const { return load_seconds_; }

  // Error{unsupported} for a conversation with a model that has no chat format; else the errors of
  // ChatFormat::render().
  PreparedRequest prepare(const TextRequest& request) const;

  // Which of `think` and `reasoning_effort` are set and do not change the prompt.
  std::vector<SettingWithoutEffect> without_effect(const TextRequest& request) const;

 private:
  void start_engine(const TextModelOptions& options, const LoadCallbacks& callbacks, const ModelFiles& files);

  ResolvedModel model_;
  std::string architecture_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatFormat> chat_;
  std::vector<TokenId> end_tokens_;
  SamplingSettings recommended_;
  bool is_deterministic_ = false;
  double load_seconds_ = 0;
  std::unique_ptr<Engine> engine_;
};

}  // namespace inferno
