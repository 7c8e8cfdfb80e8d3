// Which requests a load test sends and when: closed loop, Poisson arrivals, or a trace of a real service. And
// the prompts, made of random words that no prefix cache has seen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace inferno::load {

struct PlannedRequest {
  double at = 0.0;  // seconds after the start of the run
  int input_tokens = 0, output_tokens = 0;
  // Names of the prompt's blocks of `trace_block` tokens: requests share a prefix as far as these are equal.
  // Empty if the trace does not tell.
  std::vector<std::uint32_t> blocks;
};

inline constexpr int trace_block = 512;  // of Mooncake's traces

// All at once; the driver's limit of streams makes a closed loop of them.
std::vector<PlannedRequest> closed_loop(int requests, int input_tokens, int output_tokens);

// The same with exponentially distributed times between arrivals.
void spread_arrivals(std::vector<PlannedRequest>& plan, double requests_per_second, std::uint64_t seed);

// The first `max_requests` of Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens) or of Mooncake's JSON
// lines (timestamp in ms, input_length, output_length, hash_ids), `speedup` times as fast as they came.
// Error{corrupt} with the line number.
std::vector<PlannedRequest> read_trace(const std::filesystem::path& path, int max_requests, double speedup);
std::vector<PlannedRequest> parse_trace(std::string_view text, int max_requests, double speedup);

// Prompts of a given length in tokens, as the server counts them.
class PromptWriter {
 public:
  explicit PromptWriter(std::uint64_t seed, int shared_tokens = 0) : seed_(seed), shared_(shared_tokens) {}

  // From two prompts of known words and tokens: how many tokens a word has, and the template around them.
  void calibrate(int words1, int tokens1, int words2, int tokens2);
  double tokens_per_word() const { return per_word_; }

  // The first `count` words of the vocabulary, in its order, again and again.
  static std::string vocabulary(int count);
  static int vocabulary_size();
  // The prompt of request `number`, which must be another one for each request of the whole test.
  std::string prompt(std::uint64_t number, const PlannedRequest& request) const;
  // The same in tokens of a vocabulary of `vocab`: exactly as many as the request asks for.
  std::vector<TokenId> tokens(std::uint64_t number, const PlannedRequest& request, int vocab) const;

 private:
  // A part of a prompt: the first `count` numbers of a random stream.
  struct Part {
    std::uint64_t stream = 0;
    int count = 0;
  };
  std::vector<Part> parts(std::uint64_t number, const PlannedRequest& request, double per_unit,
                          double around) const;
  std::uint32_t drawn(std::uint64_t stream, int index) const;

  std::uint64_t seed_;
  int shared_;  // tokens at the start of each prompt that are the same
  double per_word_ = 1.0, around_ = 0.0;
};

}  // namespace inferno::load
