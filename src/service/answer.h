// From the engine's events to an answer in text, piece by piece and as a whole.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "chat/json.h"
#include "chat/stop_matcher.h"
#include "engine/token_stream.h"
#include "service/text_model.h"

namespace inferno {

struct Answer {
  std::string text, reasoning;
  Json tool_calls = Json::array();  // in OpenAI's form
  std::string finish_reason;        // "stop", "length", "tool_calls" or "cancelled"
  std::string stopped_by;           // the stop string that ended the answer, if one did
  std::vector<std::string> warnings;
  std::vector<Sampled> tokens;  // with the token that ended the answer
  Finished finished;            // the engine's statistics; may count tokens after a stop string
  double first_token_seconds = 0, total_seconds = 0;
};

// Reads the events of one request. Used by one thread.
class AnswerReader {
 public:
  // `tokenizer` must outlive the reader. Takes the parser out of `request`.
  AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request);

  // The parts that the event adds, for display; answer() has them too.
  std::vector<ReplyPart> take(const Event& event);

  bool is_stopped() const { return matcher_.stopped(); }  // by a stop string: the stream can be cancelled
  bool is_over() const { return is_over_; }
  const std::string& failure() const { return failure_; }  // the engine's message if the request failed
  Answer& answer() { return answer_; }

 private:
  std::vector<ReplyPart> parts_of(TokenId token);
  std::vector<ReplyPart> last_parts();
  std::vector<ReplyPart> kept(std::vector<ReplyPart> parts);
  void keep_call(const ToolCallDelta& delta);
  void finish(const Finished& finished);

  std::unique_ptr<ReplyParser> parser_;
  Detokenizer detokenizer_;
  StopMatcher matcher_;
  std::vector<TokenId> stop_tokens_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Answer answer_;
  std::string failure_;
  bool is_over_ = false;
};

// Asked about twenty times a second; true ends an answer or a batch early.
using IsCancelled = std::function<bool()>;

// Called with each part as it is generated; returns false to end the answer because its reader is gone.
using ShowPart = std::function<bool(const ReplyPart& part)>;

// Submits the request and waits for the whole answer; a cancelled one has the text generated so far.
// Error{device} if the engine failed, Error{corrupt} if only this answer could not be computed.
Answer write_answer(const TextModel& model, PreparedRequest request, const IsCancelled& is_cancelled,
                    const ShowPart& show);

// {"text", "prompt_tokens", "completion_tokens", "finish_reason", "seed", "timings", …}, under the names that
// llama-server and OpenAI's API use.
Json json_of(const Answer& answer, const Tokenizer& tokenizer, bool with_logprobs);

}  // namespace inferno
