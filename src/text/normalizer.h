// Normalization: converts text to the form the vocabulary was trained on (Unicode normal forms, replacements,
// prefixes).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex/regex.h"

namespace inferno {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

namespace normalize {

struct ToForm {
  UnicodeForm form;
};
struct Prepend {  // unless the text is empty
  std::string prefix;
};
struct ReplaceText {
  std::string pattern;
  std::string content;
};
struct ReplacePattern {
  std::shared_ptr<const Regex> pattern;
  std::string content;
};
struct Lowercase {};
struct StripAccents {};
struct Strip {
  bool left = false;
  bool right = false;
};
struct WriteBytes {};  // into GPT-2's byte alphabet

}  // namespace normalize

using NormalizerStep =
    std::variant<normalize::ToForm, normalize::Prepend, normalize::ReplaceText, normalize::ReplacePattern,
                 normalize::Lowercase, normalize::StripAccents, normalize::Strip, normalize::WriteBytes>;

class Normalizer {
 public:
  Normalizer() = default;
  // `where` names the field in error messages.
  explicit Normalizer(std::vector<NormalizerStep> steps, std::string where = "normalizer")
      : steps_(std::move(steps)), where_(std::move(where)) {}
  bool changes_nothing() const { return steps_.empty(); }
  // Text of n bytes has at least n / max_shrinkage() bytes after normalization; 0: it may vanish.
  std::size_t max_shrinkage() const;
  // Error{unsupported} if a step would make the text unreasonably long.
  std::string apply(std::string_view text, RegexScratch& scratch) const;

 private:
  std::vector<NormalizerStep> steps_;
  std::string where_;
};

// UTF-8 in, UTF-8 out.
std::string to_form(std::string_view text, UnicodeForm form);

}  // namespace inferno
