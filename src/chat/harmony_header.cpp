#include "chat/harmony_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace inferno::harmony {
namespace {

// Longer than every header that names a function of a legal length.
constexpr std::size_t longest_header = 512;
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

bool names_function(std::string_view word, const KnowsFunction& knows) {
  return word.starts_with("functions.") || knows(word);
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

// What is neither the recipient nor a content type, which stands alone and behind one of them.
std::string stray_words(std::vector<std::string_view> words, std::string_view recipient, bool has_channel) {
  std::erase_if(words, [&](std::string_view word) { return word == recipient || word.starts_with("to="); });
  const bool may_have_type = has_channel || !recipient.empty();
  if (may_have_type && words.size() == 1 && is_content_type(words.front())) return {};
  return fmt::format("{}", fmt::join(words, " "));
}

// Headers are bytes; names and warnings must be text.
std::string as_text(std::string_view bytes) {
  std::string copy(bytes);
  return utf8::take_all(copy, utf8::Replacement::per_character);
}

std::string_view recipient_in(const std::vector<std::string_view>& words, const KnowsFunction& knows) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("to=")) continue;
    if (words[i].size() > 3) return words[i].substr(3);
    if (i + 1 < words.size()) return words[i + 1];
  }
  for (const std::string_view word : words) {
    if (names_function(word, knows)) return word;
  }
  return {};
}

}  // namespace

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

bool Header::is_possible(const KnowsFunction& knows) const {
  if (before_.size() + after_.size() + type_.size() > longest_header) return false;
  for (const std::string* part : {&before_, &after_, &type_}) {
    if (part->find('\n') != std::string::npos) return false;
  }
  // The last word may still grow unless a blank or the channel's token ended it.
  std::vector<std::string_view> front = words_of(before_);
  const bool open =
      !before_.empty() && !has_channel_ && blanks.find(before_.back()) == std::string_view::npos;
  if (open && !front.empty()) front.pop_back();
  for (std::size_t i = 0; i < front.size(); ++i) {
    const bool is_author = i == 0 && (begin_ != Begin::after_author || front[i] == "assistant");
    const bool addresses =
        front[i].starts_with("to=") || names_function(front[i], knows) || (i > 0 && front[i - 1] == "to=");
    if (!is_author && !addresses) return false;
  }
  std::size_t others = 0;
  const auto back = words_of(after_);
  for (std::size_t i = 1; i < back.size(); ++i) others += back[i].starts_with("to=") ? 0 : 1;
  return others <= 2;
}

Address Header::address(const KnowsFunction& knows) const {
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
  std::string_view recipient = recipient_in(words, knows);

  const auto type = words_of(type_);
  if (type.size() > 1) words.insert(words.end(), type.begin() + 1, type.end());

  Address address;
  address.stray = stray_words(words, recipient, has_channel_);
  if (!address.stray.empty()) address.warning = "the model wrote text into a message's header";
  if (author != "assistant" && !author.starts_with("assistant:")) {
    address.warning = fmt::format("the model wrote a message of \"{}\"", as_text(author));
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
    if (!knows(recipient)) {
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

Remains Header::remains() const {
  Remains remains;
  std::string_view front = before_;
  // A name is protocol only where a control token beside it says so.
  if (begin_ == Begin::after_start || has_channel_) {
    const std::string_view words = without_blanks_in_front(front);
    if (first_word(words) == "assistant") front = without_blanks_in_front(words.substr(9));
  }
  std::string_view back = after_;
  const std::string_view named = without_blanks_in_front(back);
  if (is_channel(first_word(named))) {
    if (first_word(named) == "analysis") remains.destination = Destination::reasoning;
    back = without_blanks_in_front(named.substr(first_word(named).size()));
  }
  remains.text = fmt::format("{}{}{}", front, back, type_);
  if (!is_empty()) remains.warning = "the model wrote a message without a proper header";
  return remains;
}

}  // namespace inferno::harmony
