#include "text/made_up_tokenizers.h"

#include <fmt/format.h>

#include "text/byte_alphabet.h"

namespace inferno {

std::string byte_level_model() {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string piece = byte_alphabet::write(std::string(1, static_cast<char>(byte)));
    if (piece == "\"" || piece == "\\") piece.insert(0, "\\");
    vocab += fmt::format("\"{}\":{},", piece, byte);
  }
  vocab += R"("he":256,"ll":257,"hell":258,"hello":259,"Ġhello":260)";
  return fmt::format(
      R"({{"type":"BPE","vocab":{{{}}},"merges":[["h","e"],["l","l"],["he","ll"],["hell","o"],["Ġ","hello"]]}})",
      vocab);
}

std::string made_up_json(const MadeUpParts& parts) {
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},)"
      R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{}}})",
      parts.added_tokens, parts.normalizer, parts.pre_tokenizer, parts.post_processor, parts.decoder,
      parts.model.empty() ? byte_level_model() : parts.model);
}

}  // namespace inferno
