// From the engine's events to an answer in text, piece by piece and as a whole.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "chat/json.h"
#include "chat/stop_matcher.h"
#include "engine/token_stream.h"
#include "service/text_model.h"
#include "service/token_trace.h"

namespace inferno {

struct Answer {
  std::string text, reasoning;
  Json tool_calls = Json::array();  // in OpenAI's form
  std::string finish_reason;        // "stop", "length", "tool_calls" or "cancelled"
  std::string stopped_by;           // the stop string that ended the answer, if one did
  std::vector<std::string> warnings;
  bool is_malformed = false;  // the model violated the form of its replies: some of the warnings say how
  // The prompt's tokens with their log probabilities, from the first token on; nullptr unless asked for.
  std::shared_ptr<const std::vector<Sampled>> prompt;
  std::vector<Sampled> tokens;  // with the token that ended the answer
  // The tokens of `text`: their joined bytes are the text. While an answer is generated, a token is added
  // once all of its text is known, so they may be a token behind the text.
  std::vector<ContentToken> content_tokens;
  int reasoning_tokens = 0;  // tokens that have text of the reasoning
  Finished finished;         // the engine's statistics; may count tokens after a stop string
  double first_token_seconds = 0, total_seconds = 0;

  int completion_tokens() const { return static_cast<int>(tokens.size()); }
};

// Reads the events of one choice of a request. Used by one thread.
class AnswerReader {
 public:
  // `tokenizer` must outlive the reader. Takes the parser of the choice out of `request`.
  AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request, int choice = 0);

  // The parts that the event adds, for display; answer() has them too. Events of other choices add nothing.
  // To send log probabilities with the parts, remember how many of answer().content_tokens were sent: the
  // others belong to these parts or to earlier ones.
  std::vector<ReplyPart> take(const Event& event);

  bool is_stopped() const { return matcher_.stopped(); }  // by a stop string: the stream can be cancelled
  bool is_over() const { return is_over_; }
  const std::string& failure() const { return failure_; }  // the engine's message if the request failed
  // The kind of the error if the request's constraint caused the failure.
  std::optional<ErrorKind> failure_kind() const { return failure_kind_; }
  Answer& answer() { return answer_; }

 private:
  std::vector<ReplyPart> parts_of(TokenId token);
  std::vector<ReplyPart> last_parts(FinishReason reason);
  std::string shown(const std::string& content);
  void release_held(std::vector<ReplyPart>& parts);
  std::vector<ReplyPart> kept(std::vector<ReplyPart> parts);
  void keep_call(const ToolCallDelta& delta);
  void finish(const Finished& finished);

  const Tokenizer& tokenizer_;
  int choice_;
  std::unique_ptr<ReplyParser> parser_;
  Detokenizer detokenizer_;
  StopMatcher matcher_;
  std::vector<TokenId> stop_tokens_, stop_token_ids_;
  std::size_t min_tokens_;
  TokenTrace trace_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Answer answer_;
  std::shared_ptr<const ConstraintNotes> notes_;
  std::string failure_;
  std::optional<ErrorKind> failure_kind_;
  bool is_over_ = false;
};

// Asked about twenty times a second; true ends an answer or a batch early.
using IsCancelled = std::function<bool()>;

// Called with each part as it is generated; returns false to end the answer because its reader is gone.
using ShowPart = std::function<bool(const ReplyPart& part)>;

// Throws the error of a request that failed: Error{device} if the engine failed, the error of the constraint
// if it cannot be enforced, Error{corrupt} if only this answer could not be computed.
void require_success(const TextModel& model, const AnswerReader& reader);

// Submits the request and waits for the whole answer; a cancelled one has the text generated so far.
// Errors of require_success().
Answer write_answer(const TextModel& model, PreparedRequest request, const IsCancelled& is_cancelled,
                    const ShowPart& show);

// OpenAI's log probabilities: [{"token", "logprob", "bytes", "top_logprobs"}], and the "id" of each token.
Json logprobs_json(std::span<const ContentToken> tokens, const Tokenizer& tokenizer);

// What the timings of an answer, or of several together, are computed from.
struct AnswerCounts {
  Finished finished = {};
  std::size_t tokens = 0;
  double first_token_seconds = 0, total_seconds = 0;
};
AnswerCounts counts_of(const Answer& answer);

// {"prompt_n", "prompt_ms", "predicted_n", …} as llama-server has them; rates are 0 if nothing was computed.
Json timings_json(const AnswerCounts& counts);

// {"text", "prompt_tokens", "completion_tokens", "finish_reason", "seed", "timings", …}, under the names that
// llama-server and OpenAI's API use.
Json json_of(const Answer& answer, const Tokenizer& tokenizer, bool with_logprobs);
// The same with the time of loading, as `generate --json` prints it.
Json json_of(const Answer& answer, const TextModel& model, bool with_logprobs);

}  // namespace inferno
