// The files of one model, opened once: a folder in Hugging Face's layout, or a GGUF file whose header is
// parsed once. What loads or converts a model asks here and need not know which of the two it is;
// open_checkpoint() itself is for weights alone, such as the headers that `plan` fetches from the hub.
#pragma once

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "chat/make_chat_format.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/generation_config.h"
#include "text/tokenizer.h"

namespace inferno {

class GgufMetadata;

class ModelFiles {
 public:
  // A model folder, a .gguf file, or a tokenizer.json, which has a tokenizer only. The architecture need not
  // be a supported one until checkpoint() is called.
  explicit ModelFiles(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  bool has_tokenizer() const;
  // In the folder: the file that export_vocabulary() reads.
  bool has_tokenizer_json() const { return has_tokenizer_json_; }
  std::unique_ptr<Tokenizer> tokenizer() const;

  // The model's own templates; all empty if it has none.
  ModelTemplates templates() const;

  // One template for conversations with or without tools: the model's own, or the default of its family,
  // which is recognised by its control tokens. This works for unsupported tokenizers, too.
  // Error{unsupported} if there is none.
  TemplateSource chat_template(bool with_tools) const;

  // Native Harmony, the model's template or the default of its family. `tokenizer` must outlive the result.
  // nullptr if the model has no chat format: it completes text. Error{corrupt} or Error{unsupported} for a
  // template that cannot be parsed.
  std::unique_ptr<ChatFormat> chat_format(const Tokenizer& tokenizer, const ChatOptions& options = {}) const;
  // The format of a template in a file of its own, instead of the model's. Error{not_found} without the file.
  std::unique_ptr<ChatFormat> chat_format(const Tokenizer& tokenizer,
                                          const std::filesystem::path& template_file) const;

  // From generation_config.json and config.json, or from the keys of a GGUF file.
  GenerationConfig generation_config() const;

  std::unique_ptr<Checkpoint> checkpoint() const;

 private:
  std::filesystem::path path_;
  bool is_folder_ = false;
  bool has_tokenizer_json_ = false;
  bool has_template_files_ = false;               // the folder, and not a GGUF file in it, has the template
  std::shared_ptr<const GgufMetadata> metadata_;  // nullptr unless the vocabulary is in a GGUF file
};

// The template of a .jinja or .j2 file. Error{invalid_request} for a file with another name.
TemplateSource read_template_file(const std::filesystem::path& file);

// The error for a conversation with a model that has no chat format.
Error no_chat_format(const std::filesystem::path& model);

}  // namespace inferno
