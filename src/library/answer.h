// One answer: the engine's events, read by whichever thread asks for the next part, or handed to a callback.
#pragma once

#include <inferno/inferno.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "library/model.h"
#include "service/answer.h"

namespace inferno::library {

// What an event added to an answer. Its text may be longer than that of a part.
struct Piece {
  inferno_part_kind kind = INFERNO_PART_NONE;
  int call = 0;
  inferno_status status = INFERNO_OK;
  std::string id = {}, text = {};
  std::size_t used = 0;  // bytes of the text that were handed out
};

// Parts go to `callback` on the engine's thread, with the answer's handle, which is written to `handle`
// first.
struct Listener {
  inferno_part_callback callback = nullptr;
  void* context = nullptr;
  inferno_answer* handle = nullptr;
};

// Thread-safe.
class Answer : public std::enable_shared_from_this<Answer> {
 public:
  // Negative: no limit.
  using Patience = std::chrono::milliseconds;

  // Submits the request. Errors of TextModel::prepare() and Engine::submit().
  static std::shared_ptr<Answer> ask(const std::shared_ptr<Model>& model, const TextRequest& request,
                                     const Listener& listener = {});
  Answer(std::shared_ptr<Model> model, const TextModel& text_model, PreparedRequest& request,
         bool with_logprobs);
  ~Answer();  // cancels
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // Writes all fields but the size: NONE if the patience runs out, END at the end. Throws the error of an
  // answer that failed.
  void next(inferno_part& to, Patience patience);
  // Whether the answer is over and the callback, if any, knows. Parts are dropped.
  bool wait(Patience patience);
  void cancel();
  // Cancels, and ends the answer for all who wait for it. No callback begins after that, and none is running
  // unless this is called in one.
  void release();
  // Called by Model::unload(): from now on there is only an error.
  void detach();

  // With the answer so far. Throws unloaded().
  void look(const std::function<void(const inferno::Answer& answer, const TextModel& model)>& body);
  bool with_logprobs() const { return with_logprobs_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline_after(Patience patience) const;
  bool read_more(std::unique_lock<std::mutex>& lock, std::optional<Clock::time_point> deadline);
  void take(const Event& event);
  void end(const Error& failure);
  void require_reader() const;
  void submit(const TextModel& text_model, GenerationRequest request, const Listener& listener);
  void pump();
  std::deque<Piece> pieces_of(const Event& event);
  bool begin_delivery();
  void end_delivery();
  bool is_released();
  bool deliver(Piece& piece);

  const std::shared_ptr<Model> model_;
  const bool with_logprobs_;
  // These are set before the answer has a handle, and before the first event is read.
  std::shared_ptr<TokenStream> stream_;
  inferno_part_callback callback_ = nullptr;
  void* callback_context_ = nullptr;
  inferno_answer handle_ = {0};
  std::mutex submission_;  // held until stream_ and handle_ are set: the engine's first event waits for it

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool is_reading_ = false;               // a thread waits for an event
  std::unique_ptr<AnswerReader> reader_;  // nullptr once the model is unloaded
  std::deque<Piece> pieces_;              // not yet handed out
  bool is_over_ = false;
  bool is_delivering_ = false, is_released_ = false;  // with a callback
  std::optional<Error> failure_;
};

}  // namespace inferno::library
