#include "text/regex/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread_time.h"
#include "base/utf8.h"

namespace inferno {
namespace {

// Far above what ordinary patterns need, yet well under a second. Compiled code counts the alternatives and
// groups it tries; the interpreter counts every backtracking step, and a megabyte of one letter needs a
// million.
constexpr std::uint32_t compiled_match_limit = 1'000'000;
constexpr std::uint32_t interpreted_match_limit = 20'000'000;
constexpr std::uint32_t heap_limit_kib = 64 * 1024;
constexpr std::size_t jit_stack_start = 32 * 1024;
constexpr std::size_t jit_stack_most = 8 * 1024 * 1024;
constexpr std::size_t longest_pattern = 64 * 1024;
constexpr unsigned matches_between_checks = 64;
constexpr auto time_to_start_with = std::chrono::milliseconds(500);
constexpr auto time_per_byte = std::chrono::microseconds(4);

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

RegexScratch::RegexScratch()
    : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
  stack_ = pcre2_jit_stack_create(jit_stack_start, jit_stack_most, nullptr);
  if (data_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  if (stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, stack_);
  pcre2_set_heap_limit(context_, heap_limit_kib);
  started_ = std::chrono::steady_clock::now();
}

RegexScratch::~RegexScratch() {
  pcre2_jit_stack_free(stack_);
  pcre2_match_context_free(context_);
  pcre2_match_data_free(data_);
}

bool RegexScratch::has_time() {
  if (++matches_ % matches_between_checks != 0) return true;
  const auto allowed = time_to_start_with + time_per_byte * static_cast<std::int64_t>(budget_bytes_);
  if (std::chrono::steady_clock::now() - started_ < allowed) return true;
  // The wall clock also runs while this thread is descheduled, so CPU time decides. The thread may have done
  // other work before, so its CPU time is counted from here.
  const auto used = thread_time();
  if (thread_started_ == std::chrono::nanoseconds::zero()) thread_started_ = used;
  return used - thread_started_ <= allowed;
}

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Regex::Regex(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {
  if (pattern.size() > longest_pattern) {
    fail(ErrorKind::unsupported, fmt::format("{}: a pattern of {} bytes, at most {} are accepted", where,
                                             pattern.size(), longest_pattern));
  }
  std::string translated;
  try {
    translated = translate_pattern(pattern);
  } catch (const Error& error) {
    fail(error.kind(), fmt::format("{}: {}", where, error.what()));
  }
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Oniguruma's ^ and $ always match at line boundaries.
  constexpr std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options,
                            &error, &offset, context.get()));
  if (!code_) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: pattern {} is invalid near {}: {}", where, quote(pattern_),
                     quote(std::string_view(translated).substr(offset)), message_of(error)));
  }
  compiled_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

void Regex::give_up() const {
  fail(
      ErrorKind::unsupported,
      fmt::format("{}: pattern {} takes too long on this text", where_, quote(pattern_)),
      {.why =
           "the work per match and per byte of text is limited, so that a hostile pattern cannot run forever",
       .next = {}});
}

RegexScan::RegexScan(const Regex& regex, std::string_view text, RegexScratch& scratch)
    : regex_(regex), text_(text), scratch_(scratch) {
  scratch_.budget_bytes_ += text.size();
  pcre2_set_match_limit(scratch_.context_, regex.compiled_ ? compiled_match_limit : interpreted_match_limit);
}

std::optional<Match> RegexScan::search(std::size_t from) {
  if (!scratch_.has_time()) regex_.give_up();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const int found = regex_.compiled_ ? pcre2_jit_match(regex_.code_.get(), subject, text_.size(), from, 0,
                                                       scratch_.data_, scratch_.context_)
                                     : pcre2_match(regex_.code_.get(), subject, text_.size(), from,
                                                   PCRE2_NO_UTF_CHECK, scratch_.data_, scratch_.context_);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  if (found < 0) regex_.give_up();
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(scratch_.data_);
  // \K inside a lookahead can set the start after the end.
  if (offsets[0] > offsets[1]) return Match{.begin = offsets[1], .end = offsets[1]};
  return Match{.begin = offsets[0], .end = offsets[1]};
}

std::optional<Match> RegexScan::next() {
  while (from_ <= text_.size()) {
    const auto match = search(from_);
    if (!match) return std::nullopt;
    const bool repeats = match->begin == match->end && last_end_ == match->end;
    // An empty match right after the previous match would be found forever.
    if (!repeats && (!last_end_ || match->begin >= *last_end_)) {
      from_ = match->end;
      last_end_ = match->end;
      return match;
    }
    from_ += from_ < text_.size() ? utf8::length_from_first_byte(text_[from_]) : 1;
  }
  return std::nullopt;
}

namespace {

// Inside brackets. PCRE2's own \s would add U+180E, its \w lacks marks.
constexpr std::string_view space_class =
    "\\t-\\r\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view not_space_class =
    "\\x00-\\x08\\x0E-\\x1F\\x21-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{"
    "2027}"
    "\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{10FFFF}";
constexpr std::string_view word_class = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}";
constexpr std::string_view hex_class = "0-9a-fA-F";

// Long names of general categories, which PCRE2 knows only by their abbreviations.
constexpr std::array<std::pair<std::string_view, std::string_view>, 37> categories{{
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
}};

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF,
                                   &error, &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

std::string property_name(std::string_view name) {
  const std::string key = folded(name);
  for (const auto& [long_name, letters] : categories) {
    if (long_name == key) return std::string(letters);
  }
  // PCRE2 reads a bare script name as "script extensions", Oniguruma as the script itself.
  if (key.size() > 2 && compiles(fmt::format("\\p{{sc:{}}}", name))) return fmt::format("sc:{}", name);
  return std::string(name);
}

// Translates Oniguruma's dialect to PCRE2's.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        atom_ = out_.size();
        escape(/*in_class=*/false);
      } else if (c == '[') {
        atom_ = out_.size();
        class_body();
      } else if (c == '(') {
        groups_.push_back(out_.size());
        group();
      } else if (c == ')') {
        close();
      } else if (c == '{') {
        interval();
      } else {
        literal(c);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::unsupported,
         fmt::format("pattern {}: {} at offset {} is not supported", quote(in_), what, at_));
  }

  // In Ruby's dialect (?m) lets the dot match line ends; in PCRE2 that is (?s).
  void group() {
    out_.push_back(in_[at_++]);
    if (at_ + 1 >= in_.size() || in_[at_] != '?') return;
    std::size_t end = at_ + 1;
    while (end < in_.size() && std::string_view("imx-").find(in_[end]) != std::string_view::npos) ++end;
    if (end == at_ + 1 || end == in_.size() || (in_[end] != ')' && in_[end] != ':')) return;
    for (; at_ < end; ++at_) out_.push_back(in_[at_] == 'm' ? 's' : in_[at_]);
  }

  void close() {
    if (!groups_.empty()) {
      atom_ = groups_.back();
      groups_.pop_back();
    }
    out_.push_back(in_[at_++]);
  }

  void literal(char c) {
    const bool continues = utf8::is_continuation(c);
    const bool quantifies = c == '*' || c == '+' || c == '?';
    if (!continues && !quantifies) atom_ = out_.size();
    out_.push_back(c);
    ++at_;
  }

  // {n,m}. A `+` after it repeats the whole instead of making it possessive, and a `?` after {n} makes it
  // optional; {,m} begins at 0.
  void interval() {
    std::size_t end = at_ + 1;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < in_.size() && in_[end] >= '0' && in_[end] <= '9') ++end;
      return in_.substr(begin, end - begin);
    };
    const std::string_view minimum = digits();
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) ++end;
    const std::string_view maximum = comma ? digits() : std::string_view{};
    if (end >= in_.size() || in_[end] != '}' || (minimum.empty() && maximum.empty())) return literal('{');
    const std::string count =
        fmt::format("{{{}{}{}}}", minimum.empty() ? "0" : minimum, comma ? "," : "", maximum);
    at_ = end + 1;
    const char following = at_ < in_.size() ? in_[at_] : '\0';
    if (following != '+' && (following != '?' || comma)) {
      out_ += count;
      return;
    }
    out_.insert(atom_, "(?:");
    out_ += fmt::format("{}){}", count, following);
    ++at_;
  }

  // From '[' to the matching ']'. A nested class is a union, so its brackets are dropped.
  void class_body() {
    ++depth_;
    const bool nested = depth_ > 1;
    ++at_;
    if (nested && at_ < in_.size() && in_[at_] == '^') refuse("a negated class inside a class");
    if (!nested) {
      out_.push_back('[');
      if (at_ < in_.size() && in_[at_] == '^') out_.push_back(in_[at_++]);
    }
    bool first = true;
    while (at_ < in_.size() && (in_[at_] != ']' || first)) {
      class_item(first);
      first = false;
    }
    if (at_ == in_.size()) refuse("a class without an end");
    ++at_;
    if (!nested) out_.push_back(']');
    --depth_;
  }

  void class_item(bool first) {
    const char c = in_[at_];
    if (c == '\\') {
      escape(/*in_class=*/true);
    } else if (c == '[' && at_ + 1 < in_.size() && in_[at_ + 1] == ':') {
      const std::size_t end = in_.find(":]", at_ + 2);
      if (end == std::string_view::npos) refuse("a POSIX class without an end");
      out_ += in_.substr(at_, end + 2 - at_);
      at_ = end + 2;
    } else if (c == '[') {
      if (depth_ > 8) refuse("a class nested this deep");
      class_body();
    } else if (c == '&' && at_ + 1 < in_.size() && in_[at_ + 1] == '&') {
      refuse("an intersection of classes");
    } else if (c == ']' && first) {
      out_ += "\\]";
      ++at_;
    } else {
      out_.push_back(c);
      ++at_;
    }
  }

  void put_class(std::string_view content, bool in_class) {
    if (in_class) {
      out_ += content;
    } else {
      out_ += '[';
      out_ += content;
      out_ += ']';
    }
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse("a backslash at the end");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's': at_ += 2; return put_class(space_class, in_class);
      case 'S': at_ += 2; return put_class(not_space_class, in_class);
      case 'w': at_ += 2; return put_class(word_class, in_class);
      case 'h': at_ += 2; return put_class(hex_class, in_class);
      case 'b':
      case 'B':
        if (in_class) break;
        at_ += 2;
        out_ += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", word_class,
                            c == 'b' ? "!" : "=", c == 'b' ? "=" : "!");
        return;
      case 'W':
        if (in_class) refuse("\\W in a class");
        at_ += 2;
        out_ += fmt::format("[^{}]", word_class);
        return;
      case 'p':
      case 'P': return property(c);
      case 'u': return unicode();
      case 'H':
      case 'R':
      case 'X':
      case 'y':
      case 'Y':
      case 'O':
      case 'C': refuse(fmt::format("\\{}", c));
      default: out_ += in_.substr(at_, 2); at_ += 2;
    }
  }

  // \uHHHH
  void unicode() {
    const std::string_view digits = in_.substr(at_ + 2, 4);
    const bool hexadecimal =
        digits.size() == 4 && std::ranges::all_of(digits, [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        });
    if (!hexadecimal) refuse("\\u without four hexadecimal digits");
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ += 6;
  }

  void property(char letter) {
    const std::size_t end = in_.substr(at_).starts_with(std::string{'\\', letter, '{'})
                                ? in_.find('}', at_)
                                : std::string_view::npos;
    if (end == std::string_view::npos) {  // \pL, or malformed, which PCRE2 reports
      out_ += in_.substr(at_, 2);
      at_ += 2;
      return;
    }
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    at_ = end + 1;
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    out_ += fmt::format("\\{}{{{}{}}}", letter, negated ? "^" : "", property_name(name));
  }

  std::string_view in_;
  std::size_t at_ = 0;
  int depth_ = 0;                    // nested classes
  std::size_t atom_ = 0;             // where in out_ the atom begins that a quantifier would repeat
  std::vector<std::size_t> groups_;  // where in out_ the open groups begin
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) {
  return Translation(pattern).run();
}

}  // namespace inferno
