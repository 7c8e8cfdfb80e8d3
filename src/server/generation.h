// Runs the prompts of one call through the engine and hands a door the parts of the answers as they are
// generated.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "server/call.h"
#include "service/answer.h"
#include "service/text_model.h"

namespace inferno::server {

// What a door (chat, completions, responses, messages) does with answers. Called by one thread at a time.
// Answers are numbered prompt by prompt: prompt * n + choice.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // Parts that one token added to an answer; never empty. `reader` has the answer so far.
  virtual void write(Call& call, std::size_t answer, const std::vector<ReplyPart>& parts,
                     AnswerReader& reader) = 0;
  // The answer is complete.
  virtual void finish(Call& call, std::size_t answer, Answer& result) = 0;
  // All answers are complete: respond, or end the stream. `results` in the order of their numbers.
  virtual void finish_all(Call& call, std::vector<Answer>& results) = 0;
};

struct GenerationPlan {
  std::vector<PreparedRequest> prompts;  // with choices, client and cache scope set
  std::unique_ptr<AnswerWriter> writer;
  bool streams = false;  // begins the stream with the first part
};

// Submits the first prompt: Error{overloaded} if the queue is full. The others are submitted as the queue has
// room for them; later failures reach the client through Call::fail(). Answers are cancelled when the client
// disconnects. Returns at once.
void start_generation(std::shared_ptr<Call> call, std::shared_ptr<const TextModel> model,
                      GenerationPlan plan);

}  // namespace inferno::server
