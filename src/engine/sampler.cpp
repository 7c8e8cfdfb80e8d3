#include "engine/sampler.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace inferno {
namespace {

// Below this temperature sampling is greedy: other tokens vanish in rounding, and dividing by it would
// overflow.
constexpr float min_temperature = 1e-4f;

std::vector<ListEntry> bias_of(const Sampling& sampling) {
  std::map<TokenId, float> values;
  for (const auto& [token, bias] : sampling.logit_bias) values[token] += bias;
  for (const TokenId token : sampling.banned) values[token] = -std::numeric_limits<float>::infinity();
  std::vector<ListEntry> out;
  for (const auto& [token, value] : values) out.push_back({token, value});
  return out;
}

std::vector<ListEntry> allowed_of(const Sampling& sampling) {
  std::vector<TokenId> tokens = sampling.allowed;
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::vector<ListEntry> out;
  for (const TokenId token : tokens) out.push_back({token, 0.0f});
  return out;
}

}  // namespace

SamplingState::SamplingState(const Sampling& sampling, std::uint64_t seed, std::span<const TokenId> prompt)
    : bias_(bias_of(sampling)), allowed_(allowed_of(sampling)) {
  row_.temperature = sampling.temperature < min_temperature ? 0.0f : sampling.temperature;
  row_.top_k = sampling.top_k;
  row_.top_p = sampling.top_p;
  row_.min_p = sampling.min_p;
  row_.typical_p = sampling.typical_p;
  row_.repetition = sampling.repetition_penalty;
  row_.presence = sampling.presence_penalty;
  row_.frequency = sampling.frequency_penalty;
  row_.seed_low = static_cast<std::uint32_t>(seed);
  row_.seed_high = static_cast<std::uint32_t>(seed >> 32);
  row_.alternatives = sampling.logprobs.value_or(-1);
  penalizes_ = row_.repetition != 1.0f || row_.presence != 0.0f || row_.frequency != 0.0f;
  if (row_.repetition == 1.0f) return;  // the other penalties concern the answer alone
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const TokenId token : tokens) history_.push_back({token, 0.0f});
}

void SamplingState::ban_before(int end, std::span<const TokenId> tokens, int vocab) {
  std::map<TokenId, float> values;
  for (const ListEntry& entry : bias_) values[entry.token] = entry.value;
  for (const TokenId token : tokens) {
    if (token >= 0 && token < vocab) values[token] = -std::numeric_limits<float>::infinity();
  }
  early_bias_.clear();
  for (const auto& [token, value] : values) early_bias_.push_back({token, value});
  early_end_ = end;
}

void SamplingState::add(TokenId token) {
  if (!penalizes_) return;
  const auto at = std::ranges::lower_bound(history_, token, {}, &ListEntry::token);
  if (at != history_.end() && at->token == token) {
    at->value += 1.0f;
  } else {
    history_.insert(at, {token, 1.0f});
  }
}

Sampler::Sampler(Backend& backend, const SamplerLimits& limits) : backend_(backend) {
  const auto matrix = [&](int count, int cols, auto allocate) {
    Matrix m = {nullptr, DType::i32, count, cols};
    m.data = memory_.emplace_back((backend.*allocate)(m.bytes(), "sampling")).data();
    return m;
  };
  rows_ = matrix(limits.rows, sizeof(SamplingRow) / 4, &Backend::allocate);
  lists_ = matrix(std::max(1, limits.list_entries), sizeof(ListEntry) / 4, &Backend::allocate);
  masks_ = matrix(limits.rows, mask_words(limits.vocab), &Backend::allocate);
  mask_values_.resize(masks_.bytes() / sizeof(std::uint32_t));
  for (Matrix& results : results_) {
    results = matrix(limits.rows, sample_columns(limits.max_alternatives), &Backend::allocate_for_host);
  }
}

void Sampler::clear() {
  row_values_.clear();
  list_values_.clear();
  mask_count_ = 0;
}

ListRange Sampler::append(std::span<const ListEntry> list) {
  const auto begin = static_cast<std::int32_t>(list_values_.size());
  list_values_.insert(list_values_.end(), list.begin(), list.end());
  return {begin, static_cast<std::int32_t>(list_values_.size())};
}

void Sampler::add(const SamplingState& state, int position) {
  SamplingRow& row = row_values_.emplace_back(state.row());
  row.position = position;
  row.history = append(state.history());
  row.bias = append(state.bias(position));
  row.allowed = append(state.allowed());
}

std::span<std::uint32_t> Sampler::add_mask() {
  expects(mask_count_ < masks_.rows, "the step's masks fit");
  const auto words = static_cast<std::size_t>(masks_.cols);
  row_values_.back().mask = mask_count_;
  return std::span(mask_values_).subspan(static_cast<std::size_t>(mask_count_++) * words, words);
}

void Sampler::add_unread() {
  row_values_.emplace_back();  // greedy, without lists
}

void Sampler::add_given(TokenId token, int alternatives) {
  SamplingRow& row = row_values_.emplace_back();
  row.temperature = 0.0f;
  row.alternatives = alternatives;
  row.history = row.bias = append({});
  const ListEntry only = {token, 0.0f};
  row.allowed = append({&only, 1});
}

Draws Sampler::draw(Matrix logits, Matrix tokens) {
  const auto rows = static_cast<std::int32_t>(row_values_.size());
  expects(rows <= rows_.rows && list_values_.size() <= static_cast<std::size_t>(lists_.rows),
          "the step's sampling fits");
  expects(logits.rows == rows, "one row of logits for each row of settings");
  const SamplingInputs inputs = {.rows = rows_.top(rows),
                                 .lists = lists_.top(static_cast<std::int32_t>(list_values_.size())),
                                 .tokens = tokens,
                                 .masks = mask_count_ == 0 ? Matrix{} : masks_.top(mask_count_)};
  backend_.upload(inputs.rows, std::as_bytes(std::span(row_values_)));
  if (!list_values_.empty()) backend_.upload(inputs.lists, std::as_bytes(std::span(list_values_)));
  if (mask_count_ > 0) {
    const std::span<const std::uint32_t> values(mask_values_);
    backend_.upload(inputs.masks, std::as_bytes(values).first(inputs.masks.bytes()));
  }
  const Matrix out = results_[turn_++ % std::size(results_)].top(rows);
  backend_.sample(out, logits, inputs);
  return {.results = out, .mark = backend_.mark()};
}

std::vector<Drawn> Sampler::read(const Draws& draws) {
  if (draws.results.rows == 0) return {};
  backend_.wait_for(draws.mark);
  std::vector<Drawn> drawn;
  for (std::int32_t r = 0; r < draws.results.rows; ++r) {
    const std::byte* at = draws.results.data + draws.results.top(r).bytes();
    Drawn one;
    one.head = *reinterpret_cast<const SampleHead*>(at);
    const auto* alternatives = reinterpret_cast<const ListEntry*>(at + sizeof(SampleHead));
    one.alternatives = {alternatives, static_cast<std::size_t>(one.head.alternatives)};
    drawn.push_back(one);
  }
  return drawn;
}

}  // namespace inferno
