// A model that is ready to write text: engine, tokenizer, chat format and what its makers recommend.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "cli/model_options.h"
#include "cli/text_request.h"
#include "engine/engine.h"

namespace inferno {

struct TextModelOptions {
  DeviceOptions device;
  int context = 0;       // 0: the model's own
  int parallel = 1;      // requests at once
  bool verbose = false;  // says how long loading took and what was converted
  bool deterministic =
      false;  // an answer depends on its request alone, also on its seed: 0 where none is given
};

// --device, --threads, --context, --deterministic, --verbose.
void add_text_model_options(CLI::App& command, TextModelOptions& options);

// A request in tokens, and how to read the reply.
struct PreparedRequest {
  GenerationRequest generation;
  std::vector<std::string> stops;       // texts
  std::unique_ptr<ReplyParser> parser;  // nullptr: the reply is text as it comes
};

// May be used from several threads, as the engine may.
class TextModel {
 public:
  // Says on stderr how loading goes and what the loader noted. An empty path is the built-in model.
  TextModel(const std::filesystem::path& path, std::string name, const TextModelOptions& options);

  const std::string& name() const { return name_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatFormat* chat() const { return chat_.get(); }  // nullptr: it completes text
  Engine& engine() const { return *engine_; }
  const SamplingSettings& makers_settings() const { return makers_settings_; }
  std::string architecture() const { return architecture_; }
  double load_seconds() const { return load_seconds_; }

  // Error{unsupported} for a conversation with a model that has no chat format; Error{invalid_request} and
  // Error{unsupported} as ChatFormat::render.
  PreparedRequest prepare(const TextRequest& request) const;
  // A sentence for each of `think` and `reasoning_effort` that was asked for and changes nothing: the request
  // is no conversation, or the model's chat format does not know it.
  std::vector<std::string> without_effect(const TextRequest& request) const;

 private:
  std::filesystem::path path_;
  std::string name_, architecture_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatFormat> chat_;
  std::vector<TokenId> end_tokens_;
  SamplingSettings makers_settings_;
  bool is_deterministic_ = false;
  double load_seconds_ = 0;
  std::unique_ptr<Engine> engine_;
};

}  // namespace inferno
