// From the engine's events to an answer in words, piece by piece and whole.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "chat/chat_format.h"
#include "chat/json.h"
#include "chat/stop_matcher.h"
#include "cli/text_model.h"
#include "engine/token_stream.h"

namespace inferno {

struct Answer {
  std::string text, reasoning;
  Json tool_calls = Json::array();  // OpenAI's
  std::string finish_reason;        // "stop", "length", "tool_calls" or "cancelled"
  std::string stopped_by;           // the stop string, where one ended it
  std::vector<std::string> warnings;
  std::vector<Sampled> tokens;  // of the answer, with the token that ended it
  Finished finished;            // the engine's account; its token count may be beyond `tokens`
  double first_token_seconds = 0, total_seconds = 0;
};

// One for each request, on one thread.
class AnswerReader {
 public:
  // `tokenizer` must outlive it. `prompt` is what the text continues.
  AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request);

  // What the event adds, to be shown; all of it is in answer() too.
  std::vector<ReplyPart> take(const Event& event);

  bool is_stopped() const { return matcher_.stopped(); }  // by a stop string: the stream can be cancelled
  bool is_over() const { return is_over_; }
  const std::string& failure() const { return failure_; }  // the engine's words, when it ended that way
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

// Sees a part when it is made; false when nobody reads any more, which ends the answer.
using ShowPart = std::function<bool(const ReplyPart& part)>;

// Asks the engine and waits for the whole answer. An interrupt ends it early, with what was made until then.
// Error{device} when the engine broke, Error{corrupt} when only this answer could not be computed.
Answer write_answer(const TextModel& model, PreparedRequest request, const SignalWatcher& interrupt,
                    const ShowPart& show);

// {"text", "prompt_tokens", "completion_tokens", "finish_reason", "seed", "timings", …}; with "logprobs"
// where they were asked for.
Json json_of(const Answer& answer, const Tokenizer& tokenizer, bool with_logprobs);

}  // namespace inferno
