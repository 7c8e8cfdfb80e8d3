// What responses of chat completions and of completions have in common: ids, token counts, log probabilities,
// the options of streams, and how choices are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/fields/fields.h"
#include "server/generation.h"

namespace inferno::server {

struct StreamOptions {
  bool streams = false;
  bool include_usage = false;     // a last chunk with the token counts
  bool continuous_usage = false;  // the counts so far in every chunk
};
// `stream` and `stream_options`. ApiError 400 for options without a stream.
StreamOptions take_stream_options(Fields& fields, Call& call);

// The number of answers, `n`.
int take_choices(Fields& fields);

std::int64_t unix_time();

// The members with which every chunk and every response of a call begins.
struct ResponseFrame {
  std::string id, object, model, fingerprint;
  std::int64_t created = 0;
  int choices = 1;        // answers per prompt
  int prompt_tokens = 0;  // of all prompts
  StreamOptions stream = {};

  Json begin(Json choices_array) const;
};
ResponseFrame make_frame(const Call& call, std::string_view id_prefix, std::string model);

// Adds "timings" and "inferno" unless they are switched off.
void add_extras(Json& response, const ResponseFrame& frame, const std::vector<Answer>& answers,
                const Call& call);

// Each prompt counts once, however many answers it has.
Json usage_of(const std::vector<Answer>& answers, int choices);
// While answers are generated.
Json usage_so_far(int prompt_tokens, std::size_t completion_tokens);

// The API's word: a cancelled answer ran into the server's time limit.
std::string finish_reason_of(const Answer& answer);

// Text of bytes that may be part of a character.
std::string token_text(std::string_view bytes);
// JSON has no infinities.
double finite_logprob(float logprob);

// Sends the chunks of a stream. The last one, which may be either of two kinds, has the extras.
class ChunkStream {
 public:
  ChunkStream(ResponseFrame frame, std::size_t answers);

  const ResponseFrame& frame() const { return frame_; }
  // Before the chunks that a token causes: how many tokens the answer has.
  void count(std::size_t answer, std::size_t tokens) { tokens_[answer] = tokens; }
  void send(Call& call, const Json& choice) const;
  // The chunk that has an answer's finish_reason.
  void send_last(Call& call, Json choice);
  void end(Call& call, const std::vector<Answer>& answers);

 private:
  Json usage() const;

  ResponseFrame frame_;
  std::string before_, after_;       // the text of a chunk around its choice: most chunks differ only there
  std::vector<std::size_t> tokens_;  // of each answer so far
  std::size_t open_;                 // answers without a finish_reason
  Json last_;                        // choice of the last answer to end
};

// What the writers of chat completions and of completions have in common: one response with all choices, or
// chunks with one choice each.
class ChoiceWriter : public AnswerWriter {
 public:
  // `tokenizer` must outlive the writer.
  ChoiceWriter(ResponseFrame frame, std::size_t answers, const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), chunks_(std::move(frame), answers) {}

  void finish_all(Call& call, std::vector<Answer>& results) final;

 protected:
  // The choice in a response that is not streamed.
  virtual Json whole_choice(std::size_t answer, const Answer& result) = 0;

  const ResponseFrame& frame() const { return chunks_.frame(); }
  bool streams() const { return frame().stream.streams; }

  const Tokenizer& tokenizer_;
  ChunkStream chunks_;
};

}  // namespace inferno::server
