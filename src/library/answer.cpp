#include "library/answer.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/current_error.h"
#include "library/border.h"
#include "library/handles.h"

namespace inferno::library {
namespace {

// How long one wait for an event may take: a clock may not be able to count as far as a caller may ask for.
constexpr auto max_wait = std::chrono::milliseconds(1000);

void append(std::deque<Piece>& pieces, ReplyPart&& reply) {
  std::visit(
      [&](auto&& delta) {
        using Delta = std::decay_t<decltype(delta)>;
        if constexpr (std::is_same_v<Delta, ContentDelta>) {
          pieces.push_back({.kind = INFERNO_PART_CONTENT, .text = std::move(delta.text)});
        } else if constexpr (std::is_same_v<Delta, ReasoningDelta>) {
          pieces.push_back({.kind = INFERNO_PART_REASONING, .text = std::move(delta.text)});
        } else if constexpr (std::is_same_v<Delta, ReplyWarning>) {
          pieces.push_back({.kind = INFERNO_PART_WARNING, .text = std::move(delta.text)});
        } else {
          Piece piece = {
              .kind = INFERNO_PART_TOOL_CALL, .call = delta.index, .id = delta.id, .text = delta.name};
          if (!delta.id.empty() || !delta.name.empty()) pieces.push_back(piece);
          piece.kind = INFERNO_PART_ARGUMENTS;
          piece.text = std::move(delta.arguments);
          if (!piece.text.empty()) pieces.push_back(std::move(piece));
        }
      },
      std::move(reply));
}

// As much of the piece as fits. Whether that was the rest of it.
bool write(inferno_part& to, Piece& piece) {
  const auto rest = std::string_view(piece.text).substr(piece.used);
  to.kind = piece.kind;
  to.status = piece.status;
  to.call = piece.call;
  to.length = copy_cut(to.text, rest);
  copy_cut(to.id, piece.id);
  piece.used += to.length;
  return to.length == rest.size();
}

}  // namespace

std::shared_ptr<Answer> Answer::ask(const std::shared_ptr<Model>& model, const TextRequest& request,
                                    const Listener& listener) {
  const Model::Use use = model->use();
  if (model->log()) {
    for (const SettingWithoutEffect& setting : use->without_effect(request)) {
      model->log()(INFERNO_LOG_WARNING, setting.setting + " has no effect on this request");
    }
  }
  PreparedRequest prepared = use->prepare(request);
  for (const std::string& warning : prepared.warnings) model->log()(INFERNO_LOG_WARNING, warning);
  auto answer = std::make_shared<Answer>(model, *use, prepared, request.settings.logprobs.has_value());
  model->add_user(answer.get(), [weak = std::weak_ptr(answer)] {
    if (const auto self = weak.lock()) self->detach();
  });
  answer->submit(*use, std::move(prepared.generation), listener);
  return answer;
}

Answer::Answer(std::shared_ptr<Model> model, const TextModel& text_model, PreparedRequest& request,
               bool with_logprobs)
    : model_(std::move(model)),
      with_logprobs_(with_logprobs),
      reader_(std::make_unique<AnswerReader>(text_model.tokenizer(), request)) {}

Answer::~Answer() {
  if (stream_) stream_->cancel();
  model_->remove_user(this);
}

void Answer::submit(const TextModel& text_model, GenerationRequest request, const Listener& listener) {
  if (listener.callback == nullptr) {
    stream_ = text_model.engine().submit(std::move(request));
    return;
  }
  callback_ = listener.callback;
  callback_context_ = listener.context;
  const std::lock_guard lock(submission_);
  // Not the answer itself: a caller that frees it wants no more parts.
  stream_ = text_model.engine().submit(std::move(request), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
  // Only now: from here on another thread may cancel or free the answer.
  handle_ = *listener.handle = new_handle(shared_from_this());
}

std::optional<Answer::Clock::time_point> Answer::deadline_after(Patience patience) const {
  constexpr Patience year = std::chrono::hours(24 * 365);
  if (patience.count() < 0 || patience > year) return std::nullopt;
  return Clock::now() + patience;
}

// Waits for an event, by this thread or another, and takes it. False if the time ran out.
bool Answer::read_more(std::unique_lock<std::mutex>& lock, std::optional<Clock::time_point> deadline) {
  auto left = max_wait;
  if (deadline) {
    left = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()), Patience(0),
                      max_wait);
  }
  if (is_reading_) {
    changed_.wait_for(lock, left);
  } else {
    is_reading_ = true;
    lock.unlock();
    const auto event = stream_->next(left);
    lock.lock();
    is_reading_ = false;
    changed_.notify_all();
    if (event) {
      take(*event);
      return true;
    }
  }
  return !deadline || Clock::now() < *deadline || !pieces_.empty() || is_over_;
}

void Answer::next(inferno_part& to, Patience patience) {
  if (callback_ != nullptr) {
    fail(ErrorKind::invalid_request, "inferno_answer_next: the parts of this answer go to its callback");
  }
  const auto deadline = deadline_after(patience);
  std::unique_lock lock(mutex_);
  Piece nothing;
  while (pieces_.empty() && !is_over_) {
    if (read_more(lock, deadline)) continue;
    write(to, nothing);
    return;
  }
  if (!pieces_.empty()) {
    if (write(to, pieces_.front())) pieces_.pop_front();
    return;
  }
  if (failure_) throw *failure_;
  nothing.kind = INFERNO_PART_END;
  write(to, nothing);
}

bool Answer::wait(Patience patience) {
  const auto deadline = deadline_after(patience);
  std::unique_lock lock(mutex_);
  while (!is_over_ || is_delivering_) {
    if (callback_ != nullptr) {  // the callback's thread reads
      const auto left = deadline ? std::min<Clock::duration>(*deadline - Clock::now(), max_wait) : max_wait;
      if (left <= Clock::duration::zero()) return false;
      changed_.wait_for(lock, left);
    } else {
      pieces_.clear();
      if (!read_more(lock, deadline)) return false;
    }
  }
  if (callback_ == nullptr) pieces_.clear();
  if (failure_) throw *failure_;
  return true;
}

void Answer::cancel() {
  stream_->cancel();
}

void Answer::release() {
  stream_->cancel();
  std::unique_lock lock(mutex_);
  is_released_ = true;
  if (!is_over_) end(Error(ErrorKind::invalid_request, "the answer was freed"));
  if (!is_in_callback()) changed_.wait(lock, [this] { return !is_delivering_; });
}

void Answer::detach() {
  const std::lock_guard lock(mutex_);
  reader_.reset();
}

void Answer::require_reader() const {
  if (!reader_) throw unloaded();
}

void Answer::look(const std::function<void(const inferno::Answer&, const TextModel&)>& body) {
  const Model::Use use = model_->use();
  const std::lock_guard lock(mutex_);
  require_reader();
  body(reader_->answer(), *use);
}

// With the lock.
void Answer::end(const Error& failure) {
  is_over_ = true;
  failure_ = failure;
  changed_.notify_all();
}

// With the lock.
void Answer::take(const Event& event) {
  const auto use = model_->try_use();
  if (!use || !reader_) return end(unloaded());
  try {
    for (ReplyPart& part : reader_->take(event)) append(pieces_, std::move(part));
    if (reader_->is_stopped()) stream_->cancel();
    if (!reader_->is_over()) return;
    require_success(**use, *reader_);
    is_over_ = true;
    changed_.notify_all();
  } catch (...) {
    stream_->cancel();
    end(current_error());
  }
}

bool Answer::is_released() {
  const std::lock_guard lock(mutex_);
  return is_released_;
}

// False if the caller has freed the answer.
bool Answer::begin_delivery() {
  const std::lock_guard lock(mutex_);
  is_delivering_ = !is_released_;
  return is_delivering_;
}

void Answer::end_delivery() {
  {
    const std::lock_guard lock(mutex_);
    is_delivering_ = false;
    if (!is_over_ && !is_released_) return;  // no thread waits for less: it would wake for each token
  }
  changed_.notify_all();
}

// Called after each event by the engine's thread.
void Answer::pump() {
  {
    const std::lock_guard submitted(submission_);
    if (handle_.id == 0) return;  // no memory for the handle: for the caller, asking has failed
  }
  while (const auto event = stream_->next(std::chrono::milliseconds(0))) {
    if (!begin_delivery()) return;
    try {
      for (Piece& piece : pieces_of(*event)) {
        if (is_released()) break;
        if (!deliver(piece)) stream_->cancel();
      }
    } catch (...) {  // no memory for the pieces
      stream_->cancel();
      const std::lock_guard lock(mutex_);
      if (!is_over_) end(current_error());
    }
    end_delivery();
  }
}

// What the event adds, and the end if it is the last one.
std::deque<Piece> Answer::pieces_of(const Event& event) {
  const std::lock_guard lock(mutex_);
  const bool was_over = is_over_;  // an engine that ends adds an event to each stream
  if (!was_over) take(event);
  std::deque<Piece> pieces;
  pieces.swap(pieces_);
  if (is_over_ && !was_over) {
    Piece& end = pieces.emplace_back(Piece{.kind = INFERNO_PART_END});
    if (failure_) {
      end.status = status_of(failure_->kind());
      end.text = failure_->what();
    }
  }
  return pieces;
}

// Whether the caller wants more.
bool Answer::deliver(Piece& piece) {
  const InCallback marker;
  inferno_part part = {};
  part.size = sizeof part;
  try {
    bool is_wanted = true, is_whole = false;
    while (!is_whole && !is_released()) {
      // The end comes once, even if its message is cut.
      is_whole = write(part, piece) || piece.kind == INFERNO_PART_END;
      is_wanted = callback_(callback_context_, handle_, &part) == 0 && is_wanted;
    }
    return is_wanted;
  } catch (...) {
    return false;
  }
}

}  // namespace inferno::library
