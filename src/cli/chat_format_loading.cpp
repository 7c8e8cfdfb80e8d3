#include "cli/chat_format_loading.h"

namespace inferno {

std::unique_ptr<ChatFormat> load_chat_format(const std::filesystem::path& model, const Tokenizer& tokenizer,
                                             const ChatOptions& options) {
  // gpt-oss's own template is not even read: Harmony is written natively.
  if (is_o200k_harmony(tokenizer)) return make_chat_format(tokenizer, {}, options);
  return make_chat_format(tokenizer, find_templates(model), options);
}

}  // namespace inferno
