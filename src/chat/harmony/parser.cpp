#include "chat/harmony/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "chat/reply/parts.h"

namespace inferno::harmony {
namespace {

enum class Destination { content, reasoning, tool_call };

struct Address {
  Destination destination = Destination::content;
  std::string function;    // for tool_call, without "functions."
  std::string unexpected;  // words that do not belong in a header, and hence are text
  std::string warning;     // empty if the header is valid
};

// The content of an unfinished header.
struct UnfinishedHeader {
  Destination destination = Destination::content;
  std::string text;
  std::string warning;
};

using IsOffered = std::function<bool(std::string_view)>;

// The header of a message while it is read: author, recipient, channel and content type, in the orders that
// gpt-oss writes them.
class Header {
 public:
  enum class Begin {
    after_author,   // the prompt ended with <|start|>assistant
    after_start,    // <|start|> was read
    without_start,  // a message ended, and no <|start|> follows
  };
  explicit Header(Begin begin) : begin_(begin) {}

  void byte(char value);
  // A second channel replaces the first if that is only a channel name; false if text would be lost.
  bool channel();
  void constrain() { constrained_ = true; }

  std::size_t size() const { return before_.size() + after_.size() + type_.size(); }  // in bytes
  bool is_empty() const { return before_.empty() && after_.empty() && type_.empty() && !has_channel_; }
  // False as soon as no valid header begins like this: then the bytes are text. Checked after every byte, so
  // that the result does not depend on how the text was cut into tokens.
  bool is_possible(const IsOffered& is_offered) const;

  // At <|message|>.
  Address address(const IsOffered& is_offered) const;
  // At the end of a message or a reply, or once is_possible() is false.
  UnfinishedHeader unfinished() const;

 private:
  Begin begin_;
  std::string before_;  // up to <|channel|>
  std::string after_;   // between <|channel|> and <|constrain|>
  std::string type_;    // after <|constrain|>
  bool has_channel_ = false;
  bool constrained_ = false;
};

// More than any header with a function name of legal length needs.
constexpr std::size_t max_header_bytes = 512;
constexpr std::string_view blanks = " \t";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::string_view without_blanks_in_front(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

bool is_channel(std::string_view word) {
  return word == "analysis" || word == "commentary" || word == "final";
}

bool names_function(std::string_view word, const IsOffered& is_offered) {
  return word.starts_with("functions.") || is_offered(word);
}

std::string_view first_word(std::string_view text) {
  const std::size_t end = text.find_first_of(blanks);
  return text.substr(0, end);
}

bool is_content_type(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '/' || byte == '+' ||
           byte == '-' || byte == '.';
  });
}

// The words that are neither the recipient nor a content type, which is a single word after the channel or
// recipient.
std::string unexpected_words(std::vector<std::string_view> words, std::string_view recipient,
                             bool has_channel) {
  std::erase_if(words, [&](std::string_view word) { return word == recipient || word.starts_with("to="); });
  const bool may_have_type = has_channel || !recipient.empty();
  if (may_have_type && words.size() == 1 && is_content_type(words.front())) return {};
  return fmt::format("{}", fmt::join(words, " "));
}

// Headers are bytes; names and warnings must be valid UTF-8.
std::string as_text(std::string_view bytes) {
  std::string copy(bytes);
  return utf8::take_all(copy, utf8::Replacement::per_character);
}

std::string_view recipient_in(const std::vector<std::string_view>& words, const IsOffered& is_offered) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("to=")) continue;
    if (words[i].size() > 3) return words[i].substr(3);
    if (i + 1 < words.size()) return words[i + 1];
  }
  for (const std::string_view word : words) {
    if (names_function(word, is_offered)) return word;
  }
  return {};
}

void Header::byte(char value) {
  (constrained_ ? type_ : has_channel_ ? after_ : before_) += value;
}

bool Header::channel() {
  if (has_channel_ && !after_.empty() && !is_channel(after_)) return false;
  has_channel_ = true;
  constrained_ = false;
  after_.clear();
  return true;
}

bool Header::is_possible(const IsOffered& is_offered) const {
  if (before_.size() + after_.size() + type_.size() > max_header_bytes) return false;
  for (const std::string* part : {&before_, &after_, &type_}) {
    if (part->find('\n') != std::string::npos) return false;
  }
  // The last word may still grow unless a blank or the channel token ended it.
  std::vector<std::string_view> front = words_of(before_);
  const bool open =
      !before_.empty() && !has_channel_ && blanks.find(before_.back()) == std::string_view::npos;
  if (open && !front.empty()) front.pop_back();
  for (std::size_t i = 0; i < front.size(); ++i) {
    const bool is_author = i == 0 && (begin_ != Begin::after_author || front[i] == "assistant");
    const bool addresses = front[i].starts_with("to=") || names_function(front[i], is_offered) ||
                           (i > 0 && front[i - 1] == "to=");
    if (!is_author && !addresses) return false;
  }
  std::size_t others = 0;
  const auto back = words_of(after_);
  for (std::size_t i = 1; i < back.size(); ++i) others += back[i].starts_with("to=") ? 0 : 1;
  return others <= 2;
}

Address Header::address(const IsOffered& is_offered) const {
  std::vector<std::string_view> words = words_of(before_);
  std::string_view author = "assistant";
  const bool repeats = !words.empty() && words.front() == "assistant";
  const bool addresses = !words.empty() && words.front().starts_with("to=");
  if (!words.empty() && !addresses && (begin_ != Begin::after_author || repeats)) {
    author = words.front();
    words.erase(words.begin());
  }
  const auto back = words_of(after_);
  const std::string_view channel = back.empty() ? std::string_view{} : back.front();
  if (!back.empty()) words.insert(words.end(), back.begin() + 1, back.end());
  std::string_view recipient = recipient_in(words, is_offered);

  const auto type = words_of(type_);
  if (type.size() > 1) words.insert(words.end(), type.begin() + 1, type.end());

  Address address;
  address.unexpected = unexpected_words(words, recipient, has_channel_);
  if (!address.unexpected.empty()) address.warning = "the model wrote text into a message header";
  if (author != "assistant" && !author.starts_with("assistant:")) {
    address.warning = fmt::format("the model wrote a message as \"{}\"", as_text(author));
    return address;
  }
  if (!recipient.empty() && recipient != "all" && recipient != "user" && recipient != "assistant") {
    if (recipient.starts_with("functions.")) recipient.remove_prefix(10);
    if (recipient.empty()) {
      address.warning = "the model called a function without naming it";
      return address;
    }
    address.destination = Destination::tool_call;
    address.function = as_text(recipient);
    if (!is_offered(recipient)) {
      address.warning = fmt::format("the model called \"{}\", which was not offered", address.function);
    }
    return address;
  }
  if (channel == "analysis") address.destination = Destination::reasoning;
  if (channel.empty()) address.warning = "the model wrote a message without a channel";
  if (!channel.empty() && !is_channel(channel)) {
    address.warning =
        fmt::format("the model wrote to the channel \"{}\", which does not exist", as_text(channel));
  }
  return address;
}

UnfinishedHeader Header::unfinished() const {
  UnfinishedHeader unfinished;
  std::string_view front = before_;
  // The author's name is part of the protocol only if a control token precedes or follows it.
  if (begin_ == Begin::after_start || has_channel_) {
    const std::string_view words = without_blanks_in_front(front);
    if (first_word(words) == "assistant") front = without_blanks_in_front(words.substr(9));
  }
  std::string_view back = after_;
  const std::string_view named = without_blanks_in_front(back);
  if (is_channel(first_word(named))) {
    if (first_word(named) == "analysis") unfinished.destination = Destination::reasoning;
    back = without_blanks_in_front(named.substr(first_word(named).size()));
  }
  unfinished.text = fmt::format("{}{}{}", front, back, type_);
  if (!is_empty()) unfinished.warning = "the model wrote a message without a valid header";
  return unfinished;
}

class HarmonyParser : public ReplyParser {
 public:
  HarmonyParser(const Tokenizer& tokenizer, const ParserSetup& setup)
      : tokenizer_(tokenizer),
        tokens_(ControlTokens::of(tokenizer)),
        stops_(stop_tokens(tokenizer)),
        replacement_(tokenizer.decode_style().replacement),
        header_(setup.opening ? Header::Begin::after_start : Header::Begin::after_author) {
    if (setup.conversation != nullptr) {
      ids_ = CallIds(*setup.conversation);
      functions_ = offered_functions(*setup.conversation);
    }
    if (!setup.opening) return;
    for (const TokenId token : *setup.opening) take(token);
    parts_ = {};  // the end of the prompt is not part of the reply, but a call that it began is
    if (in_body_ && destination_ == Destination::tool_call) announce_call();
  }

  std::vector<ReplyPart> push(TokenId token) override {
    take(token);
    return parts_.take();
  }

  std::vector<ReplyPart> finish() override {
    has_arguments_ = true;  // an unfinished call gets no made-up arguments
    end_message();
    return parts_.take();
  }

  bool is_text(TokenId token) const override {
    if (token < 0 || token >= tokenizer_.size() || tokenizer_.is_special(token)) return false;
    for (const auto& control :
         {tokens_.start, tokens_.channel, tokens_.message, tokens_.constrain, tokens_.end}) {
      if (token == control) return false;
    }
    return std::find(stops_.begin(), stops_.end(), token) == stops_.end();
  }

  std::size_t held() const override { return in_body_ ? held_.size() : header_.size(); }

 private:
  IsOffered is_offered() const {
    return [this](std::string_view name) { return functions_.contains(name); };
  }

  void take(TokenId token) {
    if (token < 0 || token >= tokenizer_.size()) {
      parts_.warning(fmt::format("token {} is not in the vocabulary", token));
    } else if (token == tokens_.start) {
      take_start();
    } else if (token == tokens_.channel) {
      take_channel();
    } else if (token == tokens_.message) {
      take_message();
    } else if (token == tokens_.constrain) {
      take_constrain();
    } else if (token == tokens_.end || std::find(stops_.begin(), stops_.end(), token) != stops_.end()) {
      end_message();
    } else if (tokenizer_.is_special(token)) {
      parts_.warning(
          fmt::format("the model wrote the control token {} in its reply", tokenizer_.bytes(token)));
    } else {
      take_text(tokenizer_.bytes(token));
    }
  }

  void take_start() {
    if (in_body_) parts_.warning("the model began a message inside another message");
    if (in_body_ || !header_.is_empty()) end_message();
    header_ = Header(Header::Begin::after_start);
  }

  void take_channel() {
    if (in_body_) {
      parts_.warning("the model began a message inside another message");
      end_message();
    }
    if (header_.channel()) return;
    end_message();
    header_.channel();
  }

  void take_constrain() {
    if (in_body_) {
      parts_.warning("the model wrote <|constrain|> inside a message");
    } else {
      header_.constrain();
    }
  }

  void take_message() {
    if (in_body_) {
      parts_.warning("the model wrote <|message|> inside a message");
      return;
    }
    const Address address = header_.address(is_offered());
    if (!address.warning.empty()) parts_.warning(address.warning);
    open_body(Destination::content);
    write(address.unexpected);
    send(utf8::take_all(held_, replacement_));
    held_.clear();
    open_body(address.destination);
    if (destination_ != Destination::tool_call) return;
    ++call_;
    has_arguments_ = false;
    function_ = address.function;
    announce_call();
  }

  void announce_call() { parts_.open_call(call_, ids_.make(call_), function_); }

  void open_body(Destination destination) {
    in_body_ = true;
    destination_ = destination;
  }

  void take_text(std::string_view bytes) {
    while (!in_body_ && !bytes.empty()) {
      header_.byte(bytes.front());
      bytes.remove_prefix(1);
      if (!header_.is_possible(is_offered())) abandon_header();
    }
    if (in_body_) write(bytes);
  }

  // The header is invalid: its content is text, and so is everything after it.
  void abandon_header() {
    const UnfinishedHeader unfinished = header_.unfinished();
    if (!unfinished.warning.empty()) parts_.warning(unfinished.warning);
    open_body(unfinished.destination);
    write(unfinished.text);
  }

  void write(std::string_view bytes) {
    held_ += bytes;
    send(utf8::take_decided(held_, replacement_));
  }

  void send(std::string_view text) {
    if (text.empty()) return;
    switch (destination_) {
      case Destination::content: parts_.content(text); break;
      case Destination::reasoning: parts_.reasoning(text); break;
      case Destination::tool_call:
        has_arguments_ = true;
        parts_.arguments(call_, text);
        break;
    }
  }

  void end_message() {
    if (!in_body_) abandon_header();
    send(utf8::take_all(held_, replacement_));
    held_.clear();
    if (destination_ == Destination::tool_call && !has_arguments_) parts_.arguments(call_, "{}");
    in_body_ = false;
    destination_ = Destination::content;
    header_ = Header(Header::Begin::without_start);
  }

  const Tokenizer& tokenizer_;
  ControlTokens tokens_;
  std::vector<TokenId> stops_;
  utf8::Replacement replacement_;
  CallIds ids_;
  std::set<std::string, std::less<>> functions_;

  ReplyParts parts_;
  Header header_;
  bool in_body_ = false;
  Destination destination_ = Destination::content;  // of the body
  std::string held_;                                // bytes of an incomplete character
  int call_ = -1;
  std::string function_;
  bool has_arguments_ = false;
};

}  // namespace

ControlTokens ControlTokens::of(const Tokenizer& tokenizer) {
  return {.start = tokenizer.special("<|start|>"),
          .channel = tokenizer.special("<|channel|>"),
          .message = tokenizer.special("<|message|>"),
          .constrain = tokenizer.special("<|constrain|>"),
          .end = tokenizer.special("<|end|>"),
          .finish = tokenizer.special("<|return|>"),
          .call = tokenizer.special("<|call|>")};
}

std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer) {
  const ControlTokens tokens = ControlTokens::of(tokenizer);
  std::vector<TokenId> stops;
  if (tokens.finish) stops.push_back(*tokens.finish);
  if (tokens.call) stops.push_back(*tokens.call);
  if (const auto end_of_text = tokenizer.special("<|endoftext|>")) stops.push_back(*end_of_text);
  for (const TokenId token : tokenizer.end_tokens()) {
    if (token == tokens.end && tokens.finish) continue;
    if (std::find(stops.begin(), stops.end(), token) == stops.end()) stops.push_back(token);
  }
  return stops;
}

std::unique_ptr<ReplyParser> make_parser(const Tokenizer& tokenizer, const ParserSetup& setup) {
  return std::make_unique<HarmonyParser>(tokenizer, setup);
}

}  // namespace inferno::harmony
