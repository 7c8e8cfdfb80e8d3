#include "engine/constrained_answer.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace inferno {
namespace {

constexpr int word_bits = 32;

std::uint32_t& word_of(std::span<std::uint32_t> mask, TokenId token) {
  return mask[static_cast<std::size_t>(token / word_bits)];
}

std::uint32_t bit_of(TokenId token) {
  return std::uint32_t{1} << (token % word_bits);
}

}  // namespace

Failed failure_of_constraint() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.kind()};
  } catch (const std::exception& problem) {
    return {problem.what()};
  } catch (...) {
    return {"the constraint failed"};
  }
}

ConstrainedAnswer::ConstrainedAnswer(std::unique_ptr<Constraint> constraint,
                                     std::span<const TokenId> stop_tokens, int min_end, int vocab)
    : constraint_(std::move(constraint)), min_end_(min_end), vocab_(vocab) {
  for (const TokenId token : stop_tokens) {
    if (token >= 0 && token < vocab) stop_tokens_.push_back({token, constraint_->names(token)});
  }
}

void ConstrainedAnswer::fill(std::span<std::uint32_t> mask, int position) {
  try {
    if (!failure_) {
      constraint_->fill(mask);
      if (vocab_ % word_bits != 0) mask.back() &= bit_of(vocab_) - 1;  // no token has the other bits
      fill_stop_tokens(mask, position);
      return;
    }
  } catch (...) {
    failure_ = failure_of_constraint();
  }
  std::ranges::fill(mask, 0u);
}

void ConstrainedAnswer::fill_stop_tokens(std::span<std::uint32_t> mask, int position) {
  if (stop_tokens_.empty()) return;
  const bool may_end = constraint_->may_end();
  std::vector<TokenId> allowed;
  for (const StopToken& stop : stop_tokens_) {
    std::uint32_t& word = word_of(mask, stop.token);
    if (stop.is_named ? (word & bit_of(stop.token)) != 0 : may_end) allowed.push_back(stop.token);
    word &= ~bit_of(stop.token);
  }
  const bool is_early = position < min_end_;
  if (is_early && std::ranges::any_of(mask, [](std::uint32_t word) { return word != 0; })) return;
  for (const TokenId token : allowed) word_of(mask, token) |= bit_of(token);
}

bool ConstrainedAnswer::take(TokenId token) {
  if (failure_) return false;
  try {
    constraint_->take(token);
    return constraint_->is_finished();
  } catch (...) {
    failure_ = failure_of_constraint();
    return false;
  }
}

}  // namespace inferno
