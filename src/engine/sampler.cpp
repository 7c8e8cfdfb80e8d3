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

void SamplingState::add(TokenId token) {
  if (!penalizes_) return;
  const auto at = std::ranges::lower_bound(history_, token, {}, &ListEntry::token);
  if (at != history_.end() && at->token == token) {
    at->value += 1.0f;
  } else {
    history_.insert(at, {token, 1.0f});
  }
}

Sampler::Sampler(Backend& backend, int rows, int list_entries, int max_alternatives) : backend_(backend) {
  const auto matrix = [&](int count, int cols, auto allocate) {
    Matrix m = {nullptr, DType::i32, count, cols};
    m.data = memory_.emplace_back((backend.*allocate)(m.bytes(), "sampling")).data();
    return m;
  };
  rows_ = matrix(rows, sizeof(SamplingRow) / 4, &Backend::allocate);
  lists_ = matrix(std::max(1, list_entries), sizeof(ListEntry) / 4, &Backend::allocate);
  for (Matrix& results : results_) {
    results = matrix(rows, sample_columns(max_alternatives), &Backend::allocate_for_host);
  }
}

void Sampler::clear() {
  row_values_.clear();
  list_values_.clear();
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
  row.bias = append(state.bias());
  row.allowed = append(state.allowed());
}

Draws Sampler::draw(Matrix logits, Matrix tokens) {
  const auto rows = static_cast<std::int32_t>(row_values_.size());
  expects(rows <= rows_.rows && list_values_.size() <= static_cast<std::size_t>(lists_.rows),
          "the step's sampling fits");
  expects(logits.rows == rows, "one row of logits for each row of settings");
  const SamplingInputs inputs = {.rows = rows_.top(rows),
                                 .lists = lists_.top(static_cast<std::int32_t>(list_values_.size())),
                                 .tokens = tokens};
  backend_.upload(inputs.rows, std::as_bytes(std::span(row_values_)));
  if (!list_values_.empty()) backend_.upload(inputs.lists, std::as_bytes(std::span(list_values_)));
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
