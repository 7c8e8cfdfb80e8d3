#include "service/token_trace.h"

#include <algorithm>

namespace inferno {
namespace {

const std::string* text_of(const ReplyPart& part) {
  if (const auto* content = std::get_if<ContentDelta>(&part)) return &content->text;
  if (const auto* reasoning = std::get_if<ReasoningDelta>(&part)) return &reasoning->text;
  return nullptr;
}

}  // namespace

void TokenTrace::Traced::append(const Traced& other, std::size_t count) {
  count = std::min(count, other.bytes.size());
  bytes.append(other.bytes, 0, count);
  tokens.insert(tokens.end(), other.tokens.begin(),
                other.tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void TokenTrace::Traced::erase_front(std::size_t count) {
  count = std::min(count, bytes.size());
  bytes.erase(0, count);
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void TokenTrace::push(std::size_t token, std::string_view bytes) {
  pending_.bytes += bytes;
  pending_.tokens.resize(pending_.bytes.size(), token);
  last_token_ = token;
}

void TokenTrace::settle(std::span<const ReplyPart> parts, std::size_t held) {
  const std::size_t decided = pending_.bytes.size() - std::min(held, pending_.bytes.size());
  // From the last part to the first: markup that is dropped precedes the text that it introduces.
  std::size_t end = decided;
  std::vector<Traced> found(parts.size());
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (const std::string* text = text_of(parts[i])) found[i] = find(*text, end);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (std::holds_alternative<ContentDelta>(parts[i])) content_.append(found[i], found[i].bytes.size());
    if (std::holds_alternative<ReasoningDelta>(parts[i])) count_reasoning(found[i]);
  }
  pending_.erase_front(decided);
}

TokenTrace::Traced TokenTrace::find(std::string_view text, std::size_t& end) const {
  const std::size_t at = std::string_view(pending_.bytes).substr(0, end).rfind(text);
  if (at == std::string_view::npos) return approximate(text, end);
  const auto first = pending_.tokens.begin() + static_cast<std::ptrdiff_t>(at);
  end = at;
  return {.bytes = std::string(text), .tokens = {first, first + static_cast<std::ptrdiff_t>(text.size())}};
}

// A parser changed the text: it dropped something in its middle, or replaced invalid UTF-8. Each byte belongs
// to the nearest equal byte before it, and a byte that was never pushed to the token at that place.
TokenTrace::Traced TokenTrace::approximate(std::string_view text, std::size_t& end) const {
  constexpr std::size_t max_dropped = 1024;
  Traced found{.bytes = std::string(text), .tokens = std::vector<std::size_t>(text.size())};
  const std::string_view bytes = pending_.bytes;
  for (std::size_t i = text.size(); i-- > 0;) {
    const std::size_t from = end - std::min(end, max_dropped);
    const std::size_t at = bytes.substr(from, end - from).rfind(text[i]);
    if (at != std::string_view::npos) end = from + at;
    const std::size_t place = at != std::string_view::npos || end == 0 ? end : end - 1;
    found.tokens[i] = place < bytes.size() ? pending_.tokens[place] : last_token_;
  }
  return found;
}

void TokenTrace::count_reasoning(const Traced& text) {
  for (const std::size_t token : text.tokens) {
    if (token < counted_) continue;
    ++reasoning_tokens_;
    counted_ = token + 1;
  }
}

void TokenTrace::show(std::size_t bytes) {
  shown_.append(content_, bytes);
  content_.erase_front(bytes);
}

void TokenTrace::add_complete(std::vector<ContentToken>& to, std::span<const Sampled> tokens) {
  if (shown_.bytes.empty()) return;
  Traced rest;
  for (const Traced* outstanding : {&content_, &pending_}) {
    const bool is_same = !outstanding->tokens.empty() && outstanding->tokens.front() == shown_.tokens.back();
    if (!is_same) continue;
    const auto first = std::ranges::lower_bound(shown_.tokens, shown_.tokens.back());
    rest.tokens.assign(first, shown_.tokens.end());
    rest.bytes = shown_.bytes.substr(shown_.bytes.size() - rest.tokens.size());
    shown_.bytes.resize(shown_.bytes.size() - rest.bytes.size());
    shown_.tokens.resize(shown_.bytes.size());
    break;
  }
  add_rest(to, tokens);
  shown_ = std::move(rest);
}

void TokenTrace::add_rest(std::vector<ContentToken>& to, std::span<const Sampled> tokens) {
  for (std::size_t begin = 0; begin < shown_.bytes.size();) {
    std::size_t end = begin + 1;
    while (end < shown_.bytes.size() && shown_.tokens[end] == shown_.tokens[begin]) ++end;
    to.push_back({tokens[shown_.tokens[begin]], shown_.bytes.substr(begin, end - begin)});
    begin = end;
  }
  shown_ = {};
}

}  // namespace inferno
