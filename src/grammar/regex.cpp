#include "grammar/regex.h"

#include <fmt/format.h>

#include <array>

#include "base/utf8.h"
#include "grammar/grammar.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t max_bytes = 64 << 10;
constexpr std::size_t max_nesting = 64;

// What an expression matches, by what it says about the place of the match: bit 0 of the index, nothing is
// before it; bit 1, nothing is after it.
struct Piece {
  std::array<Part, 4> ways{};  // never() where there is none
  std::array<bool, 4> may_be_empty{};
  bool is_anchored() const { return ways[1] != Part{} || ways[2] != Part{} || ways[3] != Part{}; }
};

const CharacterSet digits = {{'0', '9'}};
const CharacterSet word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

class Parser {
 public:
  Parser(Rules& rules, std::string_view text, RegexDialect dialect, TextForm form, Budget& budget)
      : rules_(rules), text_(text), dialect_(dialect), form_(form), budget_(budget) {}

  Part run() {
    if (text_.size() > max_bytes)
      refuse(RefusalKind::limit, fmt::format("expression of {} bytes (limit {})", text_.size(), max_bytes));
    if (const auto at = utf8::first_invalid(text_)) wrong("not UTF-8", *at);
    open_.push_back({});
    while (at_ < text_.size()) read_next();
    if (open_.size() > 1) wrong("group without end", open_.back().at);
    const Piece piece = finish_group();
    std::vector<Part> ways;
    for (std::size_t i = 0; i < 4; ++i) {
      if (piece.ways[i] == rules_.never()) continue;
      const Part before = (i & 1) != 0 ? rules_.empty() : anything();
      const Part after = (i & 2) != 0 ? rules_.empty() : anything();
      ways.push_back(rules_.sequence({before, piece.ways[i], after}));
    }
    return rules_.either(std::move(ways));
  }

 private:
  // A group that is being read: finished alternatives, and the sequence after the last bar.
  struct Group {
    std::vector<Piece> alternatives;
    std::vector<Piece> sequence;
    bool may_repeat = false;  // the last piece of the sequence
    std::size_t at = 0;
  };

  [[noreturn]] void wrong(std::string_view what, std::size_t at) const {
    refuse(RefusalKind::invalid, fmt::format("{} at byte {} of {}", what, at, quote(text_)));
  }
  [[noreturn]] void unsupported(std::string_view what, std::size_t at) const {
    refuse(RefusalKind::unsupported,
           fmt::format("{} at byte {} of {}: only what is regular can be enforced", what, at, quote(text_)));
  }

  bool next_is(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool skip(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }

  Part anything() {
    if (dialect_ == RegexDialect::whole_text) return rules_.empty();
    return rules_.repeat(rules_.characters(CharacterSet::all(), form_), {});
  }

  Piece plain(Part part, bool may_be_empty = false) const {
    Piece piece;
    piece.ways[0] = part;
    piece.may_be_empty[0] = may_be_empty;
    return piece;
  }
  Piece anchor(std::size_t way) const {
    Piece piece;
    piece.ways[way] = rules_.empty();
    piece.may_be_empty[way] = true;
    return piece;
  }
  void add(Piece piece, bool may_repeat = true) {
    open_.back().sequence.push_back(piece);
    open_.back().may_repeat = may_repeat;
    budget_.spend(sizeof(Piece));
  }
  void add(const CharacterSet& set) { add(plain(rules_.characters(set, form_))); }

  void read_next() {
    const std::size_t at = at_;
    const char letter = text_[at_];
    switch (letter) {
      case '(': ++at_; return open_group(at);
      case ')': {
        if (open_.size() == 1) wrong("nothing is open before )", at);
        ++at_;
        const Piece piece = finish_group();
        open_.pop_back();
        return add(piece);
      }
      case '|':
        ++at_;
        open_.back().alternatives.push_back(join(open_.back().sequence));
        open_.back().sequence.clear();
        open_.back().may_repeat = false;
        return;
      case '^': ++at_; return add(anchor(1), /*may_repeat=*/false);
      case '$': ++at_; return add(anchor(2), /*may_repeat=*/false);
      case '*': ++at_; return repeat({0, Counts::unbounded}, at);
      case '+': ++at_; return repeat({1, Counts::unbounded}, at);
      case '?': ++at_; return repeat({0, 1}, at);
      case '{':
        if (const auto counts = read_counts()) return repeat(*counts, at);
        ++at_;
        return add(CharacterSet{{'{', '{'}});
      case '.': ++at_; return add(any_character());
      case '[': ++at_; return add(read_class(at));
      case '\\': ++at_; return add(read_escape(at, /*in_class=*/false));
      default: break;
    }
    const auto character = utf8::decode(text_, at_);
    at_ += static_cast<std::size_t>(character.length);
    add(CharacterSet{{character.code, character.code}});
  }

  void open_group(std::size_t at) {
    if (open_.size() > max_nesting)
      refuse(RefusalKind::limit, fmt::format("groups nested deeper than {} (limit {}) at byte {}",
                                             open_.size(), max_nesting, at));
    if (skip("?")) {
      if (at_ >= text_.size()) wrong("group without end", at);
      if (next_is("=") || next_is("!") || next_is("<=") || next_is("<!"))
        unsupported("a look ahead or behind", at);
      if (skip("P<") || skip("<")) {
        const auto end = text_.find('>', at_);
        if (end == std::string_view::npos || end == at_) wrong("group name without end", at);
        at_ = end + 1;
      } else if (!skip(":")) {
        unsupported("a flag or an unknown kind of group", at);
      }
    }
    open_.push_back({});
    open_.back().at = at;
  }

  Piece finish_group() {
    Group& group = open_.back();
    group.alternatives.push_back(join(group.sequence));
    Piece result;
    for (std::size_t i = 0; i < 4; ++i) {
      std::vector<Part> parts;
      for (const Piece& piece : group.alternatives) {
        parts.push_back(piece.ways[i]);
        result.may_be_empty[i] = result.may_be_empty[i] || piece.may_be_empty[i];
      }
      result.ways[i] = rules_.either(std::move(parts));
    }
    return result;
  }

  // Pieces without anchors, which are nearly all, become one flat sequence.
  Piece join(const std::vector<Piece>& pieces) {
    Piece result = plain(rules_.empty(), true);
    for (std::size_t i = 0; i < pieces.size();) {
      std::vector<Part> parts;
      bool may_be_empty = true;
      for (; i < pieces.size() && !pieces[i].is_anchored(); ++i) {
        parts.push_back(pieces[i].ways[0]);
        may_be_empty = may_be_empty && pieces[i].may_be_empty[0];
      }
      if (!parts.empty()) result = join(result, plain(rules_.sequence(std::move(parts)), may_be_empty));
      if (i < pieces.size()) result = join(result, pieces[i++]);
    }
    return result;
  }

  Piece join(const Piece& a, const Piece& b) {
    std::array<std::vector<Part>, 4> ways;
    Piece result;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        if (a.ways[i] == rules_.never() || b.ways[j] == rules_.never()) continue;
        const bool end_first = (i & 2) != 0;    // the text ends after a: b must be empty
        const bool begin_later = (j & 1) != 0;  // the text begins before b: a must be empty
        if ((end_first && !b.may_be_empty[j]) || (begin_later && !a.may_be_empty[i])) continue;
        const std::size_t way = i | j;
        result.may_be_empty[way] = result.may_be_empty[way] || (a.may_be_empty[i] && b.may_be_empty[j]);
        const Part first = begin_later ? rules_.empty() : a.ways[i];
        const Part second = end_first ? rules_.empty() : b.ways[j];
        ways[way].push_back(rules_.sequence({first, second}));
      }
    }
    for (std::size_t i = 0; i < 4; ++i) result.ways[i] = rules_.either(std::move(ways[i]));
    return result;
  }

  void repeat(Counts counts, std::size_t at) {
    if (!open_.back().may_repeat) wrong("nothing to repeat", at);
    skip("?");  // lazy or not, the same texts match
    if (at_ < text_.size() && text_[at_] == '+' && dialect_ == RegexDialect::whole_text)
      unsupported("a possessive repeat", at);
    Piece& piece = open_.back().sequence.back();
    open_.back().may_repeat = false;
    if (piece.is_anchored()) {
      if (counts.min != 0 || counts.max != 1) unsupported("a repeat of an anchor", at);
      piece.ways[0] = rules_.optional(rules_.either({piece.ways[0], rules_.empty()}));
      piece.may_be_empty[0] = true;
      return;
    }
    piece.may_be_empty[0] = piece.may_be_empty[0] || counts.min == 0;
    piece.ways[0] = rules_.repeat(piece.ways[0], counts);
  }

  std::optional<std::uint64_t> read_number() {
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(text_[at_] - '0'), 1ULL << 40);
    return value;
  }

  // Not a count: the brace is an ordinary character.
  std::optional<Counts> read_counts() {
    const std::size_t at = at_++;
    const auto min = read_number();
    std::optional<std::uint64_t> max = min;
    const bool open_below = !min && dialect_ == RegexDialect::whole_text && next_is(",");
    bool endless = false;
    if ((min || open_below) && skip(",")) {
      max = read_number();
      endless = !max;
    }
    if ((!min && !(open_below && !endless)) || !skip("}")) {
      at_ = at;
      return std::nullopt;
    }
    if (!endless && min.value_or(0) > *max) wrong("bounds of a repeat the wrong way round", at);
    constexpr std::uint64_t most = Counts::unbounded - 1;
    if (min.value_or(0) > most || (!endless && *max > most))
      refuse(RefusalKind::limit, fmt::format("repeat at byte {} beyond {}", at, most));
    return Counts{static_cast<std::uint32_t>(min.value_or(0)),
                  endless ? Counts::unbounded : static_cast<std::uint32_t>(*max)};
  }

  CharacterSet any_character() const {
    CharacterSet ends = {{'\n', '\n'}};
    if (dialect_ == RegexDialect::pattern) ends.add(CharacterSet{{'\r', '\r'}, {0x2028, 0x2029}});
    return ends.inverted();
  }
  CharacterSet spaces() const {
    CharacterSet set = {{'\t', '\r'}, {' ', ' '}};
    if (dialect_ == RegexDialect::pattern)
      set.add(CharacterSet{{0xA0, 0xA0},
                           {0x1680, 0x1680},
                           {0x2000, 0x200A},
                           {0x2028, 0x2029},
                           {0x202F, 0x202F},
                           {0x205F, 0x205F},
                           {0x3000, 0x3000},
                           {0xFEFF, 0xFEFF}});
    return set;
  }

  char32_t read_hex(std::size_t count, std::size_t at) {
    char32_t value = 0;
    for (std::size_t i = 0; i < count; ++i, ++at_) {
      const char digit = at_ < text_.size() ? text_[at_] : ' ';
      const auto place = std::string_view("0123456789abcdef").find(lower_case({&digit, 1}));
      if (place == std::string_view::npos) wrong("hexadecimal digit expected in the escape", at);
      value = value * 16 + static_cast<char32_t>(place);
    }
    return value;
  }

  char32_t read_unicode(std::size_t at) {
    if (skip("{")) {
      const auto end = text_.find('}', at_);
      if (end == std::string_view::npos || end == at_ || end - at_ > 6) wrong("escape without end", at);
      const char32_t code = read_hex(end - at_, at);
      skip("}");
      if (code > last_code_point) wrong("no such character", at);
      return code;
    }
    const char32_t code = read_hex(4, at);
    if (code < 0xD800 || code > 0xDFFF) return code;
    if (code > 0xDBFF || !skip("\\u")) unsupported("half a character", at);
    const char32_t low = read_hex(4, at);
    if (low < 0xDC00 || low > 0xDFFF) unsupported("half a character", at);
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }

  bool is_letter_at(std::size_t at) const {
    const char lower = at < text_.size() ? static_cast<char>(text_[at] | 0x20) : ' ';
    return lower >= 'a' && lower <= 'z';
  }

  // Behind the backslash.
  CharacterSet read_escape(std::size_t at, bool in_class) {
    if (at_ >= text_.size()) wrong("escape without end", at);
    const char letter = text_[at_];
    const auto one = [](char32_t code) { return CharacterSet{{code, code}}; };
    if (static_cast<unsigned char>(letter) >= 0x80) {
      const auto character = utf8::decode(text_, at_);
      at_ += static_cast<std::size_t>(character.length);
      return one(character.code);
    }
    ++at_;
    switch (letter) {
      case 'd': return digits;
      case 'D': return digits.inverted();
      case 'w': return word;
      case 'W': return word.inverted();
      case 's': return spaces();
      case 'S': return spaces().inverted();
      case 't': return one('\t');
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0':
        if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') unsupported("an octal escape", at);
        return one(0);
      case 'c':
        if (dialect_ == RegexDialect::pattern && is_letter_at(at_)) return one(text_[at_++] & 0x1F);
        wrong("unknown escape", at);
      case 'x': return one(read_hex(2, at));
      case 'u': return one(read_unicode(at));
      case 'b':
        if (in_class) return one('\b');
        unsupported("a word boundary", at);
      case 'B': unsupported("a word boundary", at);
      case 'p':
      case 'P': unsupported("a class by Unicode property", at);
      case 'k': unsupported("a back reference", at);
      default: break;
    }
    if (letter >= '1' && letter <= '9') unsupported("a back reference", at);
    if (is_letter_at(at_ - 1)) wrong("unknown escape", at);
    return one(static_cast<char32_t>(letter));
  }

  // One character or one class of a class; `code` is set if it is one character.
  CharacterSet read_member(std::size_t at, std::optional<char32_t>& code) {
    CharacterSet set;
    if (skip("\\")) {
      set = read_escape(at, /*in_class=*/true);
    } else {
      const auto character = utf8::decode(text_, at_);
      at_ += static_cast<std::size_t>(character.length);
      set.add(character.code, character.code);
    }
    const auto& ranges = set.ranges();
    code.reset();
    if (ranges.size() == 1 && ranges[0].first == ranges[0].last) code = ranges[0].first;
    return set;
  }

  CharacterSet read_class(std::size_t at) {
    const bool negated = skip("^");
    CharacterSet set;
    for (bool is_first = true;; is_first = false) {
      if (at_ >= text_.size()) wrong("class without end", at);
      // Python reads a bracket in the first place as a character, ECMAScript as the end.
      const bool literal = is_first && dialect_ == RegexDialect::whole_text;
      if (text_[at_] == ']' && !literal) break;
      budget_.spend(32);
      const std::size_t place = at_;
      std::optional<char32_t> first;
      const CharacterSet member = read_member(place, first);
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        std::optional<char32_t> last;
        const CharacterSet other = read_member(place, last);
        if (first && last) {
          if (*first > *last) wrong("range the wrong way round", place);
          set.add(*first, *last);
          continue;
        }
        if (dialect_ == RegexDialect::whole_text) wrong("range between classes", place);
        set.add(other);  // ECMAScript: both, and a hyphen
        set.add('-', '-');
      }
      set.add(member);
    }
    ++at_;
    return negated ? set.inverted() : set;
  }

  Rules& rules_;
  std::string_view text_;
  RegexDialect dialect_;
  TextForm form_;
  Budget& budget_;
  std::size_t at_ = 0;
  std::vector<Group> open_;
};

}  // namespace

Part parse_regex(Rules& rules, std::string_view expression, RegexDialect dialect, TextForm form,
                 Budget& budget) {
  return Parser(rules, expression, dialect, form, budget).run();
}

std::shared_ptr<const Grammar> compile_regex(std::string_view expression, const CompileOptions& options) {
  Budget budget(options.limits, options.cancel);
  Rules rules;
  const Part root = parse_regex(rules, expression, RegexDialect::whole_text, TextForm::plain, budget);
  return std::make_shared<const Grammar>(std::move(rules), root, budget);
}

}  // namespace inferno::grammar
