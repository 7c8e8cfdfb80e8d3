// GBNF, the grammar language of llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/utf8.h"
#include "grammar/grammar.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t max_bytes = 64 << 10;
constexpr std::size_t max_nesting = 64;

bool is_name_character(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
}

class Parser {
 public:
  Parser(Rules& rules, std::string_view text, const Tokenizer* tokenizer, Budget& budget)
      : rules_(rules), text_(text), tokenizer_(tokenizer), budget_(budget) {}

  Part run() {
    if (text_.size() > max_bytes)
      refuse(RefusalKind::limit, fmt::format("grammar of {} bytes (limit {})", text_.size(), max_bytes));
    if (const auto at = utf8::first_invalid(text_)) wrong("not UTF-8", *at);
    skip_blanks(Lines::cross);
    while (at_ < text_.size()) {
      read_rule();
      skip_blanks(Lines::cross);
    }
    for (const auto& [name, rule] : names_)
      if (!rule.defined) wrong(fmt::format("rule {} is not defined", quote(name)), rule.at);
    const auto root = names_.find("root");
    if (root == names_.end()) refuse(RefusalKind::invalid, "no rule is called \"root\"");
    return rules_.reference(root->second.rule);
  }

 private:
  enum class Lines { stay, cross };
  struct Name {
    Rule rule{};
    std::size_t at = 0;  // first use
    bool defined = false;
  };
  struct Group {
    std::vector<Part> alternatives;
    std::vector<Part> sequence;
    std::size_t at = 0;
  };

  [[noreturn]] void wrong(std::string_view what, std::size_t at,
                          RefusalKind kind = RefusalKind::invalid) const {
    const auto before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const auto begin = before.rfind('\n');
    const std::size_t column = begin == std::string_view::npos ? at + 1 : at - begin;
    refuse(kind, fmt::format("line {}, column {}: {}", line, column, what));
  }

  bool next_is(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool skip(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }

  void skip_blanks(Lines lines) {
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (letter == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (letter == ' ' || letter == '\t' ||
                 (lines == Lines::cross && (letter == '\n' || letter == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == begin) wrong("the name of a rule is expected", at_);
    return std::string(text_.substr(begin, at_ - begin));
  }

  Name& rule_called(const std::string& name, std::size_t at) {
    const auto [found, is_new] = names_.try_emplace(name);
    if (is_new) found->second = {rules_.declare(name), at, false};
    return found->second;
  }

  void read_rule() {
    const std::size_t at = at_;
    const std::string name = read_name();
    skip_blanks(Lines::stay);
    if (!skip("::=")) wrong("::= is expected", at_);
    skip_blanks(Lines::cross);
    Name& rule = rule_called(name, at);
    rule.defined = true;  // a second definition replaces the first, as in llama.cpp
    rules_.define(rule.rule, read_body());
  }

  Part read_body() {
    open_.assign(1, {});
    repeatable_.reset();
    for (;;) {
      skip_blanks(open_.size() > 1 ? Lines::cross : Lines::stay);
      if (at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r') break;
      read_next();
    }
    if (open_.size() > 1) wrong("group without end", open_.back().at);
    return finish_group();
  }

  Part finish_group() {
    Group& group = open_.back();
    group.alternatives.push_back(rules_.sequence(std::move(group.sequence)));
    return rules_.either(std::move(group.alternatives));
  }

  void add(Part part) {
    open_.back().sequence.push_back(part);
    repeatable_ = open_.back().sequence.size();
    budget_.spend(sizeof(Part));
  }

  void read_next() {
    const std::size_t at = at_;
    const char letter = text_[at_];
    if (is_name_character(letter)) return add(rules_.reference(rule_called(read_name(), at).rule));
    ++at_;
    switch (letter) {
      case '"': return add(read_literal(at));
      case '[': return add(read_class(at));
      case '.': return add(rules_.characters(CharacterSet::all()));
      case '(':
        if (open_.size() > max_nesting)
          wrong(fmt::format("groups nested {} deep (limit {})", open_.size(), max_nesting), at,
                RefusalKind::limit);
        open_.push_back({});
        open_.back().at = at;
        repeatable_.reset();
        return;
      case ')': {
        if (open_.size() == 1) wrong("nothing is open before )", at);
        const Part part = finish_group();
        open_.pop_back();
        return add(part);
      }
      case '|':
        open_.back().alternatives.push_back(rules_.sequence(std::move(open_.back().sequence)));
        open_.back().sequence.clear();
        repeatable_.reset();
        return skip_blanks(Lines::cross);
      case '*': return repeat({0, Counts::unbounded}, at);
      case '+': return repeat({1, Counts::unbounded}, at);
      case '?': return repeat({0, 1}, at);
      case '{': return repeat(read_counts(at), at);
      case '<': return add(rules_.token({read_token(at)}));
      case '!':
        if (!skip("<")) wrong("a token is expected after !", at);
        return add(rules_.token_except({read_token(at)}));
      default: wrong(fmt::format("unexpected {}", quote(text_.substr(at, 1))), at);
    }
  }

  void repeat(Counts counts, std::size_t at) {
    if (repeatable_ != open_.back().sequence.size() || open_.back().sequence.empty())
      wrong("nothing to repeat", at);
    Part& part = open_.back().sequence.back();
    part = rules_.repeat(part, counts);
  }

  std::uint32_t read_number(std::size_t at) {
    std::uint64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(text_[at_] - '0'), 1ULL << 40);
    if (at_ == begin) wrong("a number is expected", at_);
    if (value >= Counts::unbounded)
      wrong(fmt::format("the number is too large (limit {})", Counts::unbounded - 1), at, RefusalKind::limit);
    return static_cast<std::uint32_t>(value);
  }

  Counts read_counts(std::size_t at) {
    skip_blanks(Lines::stay);
    Counts counts;
    counts.min = counts.max = read_number(at);
    skip_blanks(Lines::stay);
    if (skip(",")) {
      skip_blanks(Lines::stay);
      counts.max = next_is("}") ? Counts::unbounded : read_number(at);
      skip_blanks(Lines::stay);
    }
    if (!skip("}")) wrong("} is expected", at_);
    if (counts.min > counts.max) wrong("bounds of a repeat the wrong way round", at);
    return counts;
  }

  // <[id]> or <name>, after the first bracket.
  TokenId read_token(std::size_t at) {
    if (skip("[")) {
      const std::uint32_t id = read_number(at);
      if (!skip("]>")) wrong("]> is expected", at_);
      if (id > 0x7FFFFFFF) wrong("no such token", at);
      if (tokenizer_ != nullptr && id >= static_cast<std::uint32_t>(tokenizer_->size()))
        wrong(fmt::format("the model has no token {}", id), at);
      return static_cast<TokenId>(id);
    }
    const auto end = text_.find('>', at_);
    if (end == std::string_view::npos) wrong("token without end", at);
    const std::string name = fmt::format("<{}>", text_.substr(at_, end - at_));
    at_ = end + 1;
    if (tokenizer_ == nullptr) wrong(fmt::format("{} needs a model with this token", quote(name)), at);
    const auto id = tokenizer_->special(name);
    if (!id) wrong(fmt::format("the model has no token {}", quote(name)), at);
    return *id;
  }

  char32_t read_hex(int count) {
    char32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const char digit = at_ < text_.size() ? text_[at_] : ' ';
      const auto place = std::string_view("0123456789abcdef").find(lower_case({&digit, 1}));
      if (place == std::string_view::npos) wrong("hexadecimal digit expected", at_);
      value = value * 16 + static_cast<char32_t>(place);
    }
    if (value > last_code_point || (value >= 0xD800 && value <= 0xDFFF)) wrong("no such character", at_);
    return value;
  }

  char32_t read_character() {
    if (!skip("\\")) {
      const auto character = utf8::decode(text_, at_);
      at_ += static_cast<std::size_t>(character.length);
      return character.code;
    }
    const char letter = at_ < text_.size() ? text_[at_] : ' ';
    ++at_;
    switch (letter) {
      case 'x': return read_hex(2);
      case 'u': return read_hex(4);
      case 'U': return read_hex(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '^':
      case '-': return static_cast<char32_t>(letter);
      default: wrong("unknown escape", at_ - 1);
    }
  }

  void expect_more(std::string_view what, std::size_t at) const {
    if (at_ >= text_.size()) wrong(what, at);
  }

  Part read_literal(std::size_t at) {
    std::string literal;
    while (!skip("\"")) {
      expect_more("text without end", at);
      utf8::append(literal, read_character());
    }
    return rules_.literal(literal);
  }

  Part read_class(std::size_t at) {
    const bool negated = skip("^");
    CharacterSet set;
    while (!skip("]")) {
      expect_more("class without end", at);
      budget_.spend(16);
      const char32_t first = read_character();
      if (next_is("-") && !next_is("-]")) {
        ++at_;
        expect_more("class without end", at);
        const char32_t last = read_character();
        if (first > last) wrong("range the wrong way round", at);
        set.add(first, last);
      } else {
        set.add(first, first);
      }
    }
    return rules_.characters(negated ? set.inverted() : set);
  }

  Rules& rules_;
  std::string_view text_;
  const Tokenizer* tokenizer_;
  Budget& budget_;
  std::size_t at_ = 0;
  std::map<std::string, Name> names_;
  std::vector<Group> open_;
  std::optional<std::size_t> repeatable_;  // the size of the sequence whose last part may be repeated
};

}  // namespace

std::shared_ptr<const Grammar> compile_gbnf(std::string_view text, const Tokenizer* tokenizer,
                                            const CompileOptions& options) {
  Budget budget(options.limits, options.cancel);
  Rules rules;
  const Part root = Parser(rules, text, tokenizer, budget).run();
  return std::make_shared<const Grammar>(std::move(rules), root, budget);
}

}  // namespace inferno::grammar
