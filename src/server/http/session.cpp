#include "server/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/utf8.h"

namespace inferno::server {

namespace {

using std::chrono::milliseconds;

// A client that pipelines more than this waits until requests were answered.
constexpr std::size_t max_pipelined = 32768;
// After the last response a client has this long to read it and to close: closing at once could destroy it.
constexpr milliseconds linger_time{2000};
// A body may take body_timeout plus one second for each of this many bytes, however steadily it drips.
constexpr std::size_t min_body_rate = 4096;
constexpr Session::Clock::time_point never = Session::Clock::time_point::max();

// Assigning an empty string would keep the memory.
void release(std::string& text) {
  std::string().swap(text);
}

BadRequest no_memory_for_body() {
  return {503,
          "the server has no memory left for the body of this request, because it reads other large ones: "
          "send it again in a moment"};
}

}  // namespace

void SessionHost::add_busy(int change) {
  const std::lock_guard lock(mutex_);
  busy_ += change;
  if (busy_ == 0) became_idle_.notify_all();
}

bool SessionHost::wait_until_idle(milliseconds patience) {
  std::unique_lock lock(mutex_);
  return became_idle_.wait_for(lock, patience, [this] { return busy_ == 0; });
}

HttpResponse SessionHost::refusal(const HttpRequest* head, int status, const std::string& message) const {
  if (handler.refuse) return handler.refuse(head, status, message);
  return {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = message};
}

Session::Session(SessionHost& host, Transport& transport, std::string peer)
    : host_(host),
      transport_(transport),
      peer_(std::move(peer)),
      deadline_(Clock::now() + host.options.head_timeout),
      scanner_(host.limits),
      encoder_(queued_, host.options.idle_timeout),
      write_deadline_(never) {}

void Session::start() {
  read();
}

void Session::read() {
  const bool is_full = phase_ == Phase::handling && input_.size() >= max_pipelined;
  if (is_reading_ || has_ended_ || is_full || phase_ == Phase::closed) return;
  is_reading_ = true;
  transport_.read();
}

void Session::on_read(std::string_view bytes) {
  is_reading_ = false;
  if (phase_ == Phase::closed) return;
  if (phase_ != Phase::closing) {
    input_ += bytes;
    if (phase_ == Phase::body) body_received_ += bytes.size();
    advance();
  }
  read();
}

void Session::on_end() {
  is_reading_ = false;
  has_ended_ = true;
  end_input();
}

void Session::end_input() {
  if (phase_ == Phase::handling) return check_peer();
  if (phase_ == Phase::body || (phase_ == Phase::head && !input_.empty())) {
    return refuse({400, "the request ends too early"});
  }
  if (phase_ != Phase::closing || unsent() == 0) drop();
}

void Session::advance() {
  try {
    while (phase_ == Phase::head && take_head()) {}
    if (phase_ == Phase::body) take_body();
  } catch (const BadRequest& problem) {
    refuse(problem);
  } catch (const std::exception&) {
    refuse({500, "the server failed"});
  }
}

// True if there can be another one in the input.
bool Session::take_head() {
  if (input_.empty()) return false;
  deadline_ = std::min(deadline_, Clock::now() + host_.options.head_timeout);
  const auto size = scanner_.find_end(input_);
  if (!size) return false;
  scanner_.reset();
  if (*size == 2) {  // some clients send an empty line after a body
    input_.erase(0, 2);
    return true;
  }
  head_ = parse_head(std::string_view(input_).substr(0, *size), host_.limits);
  input_.erase(0, *size);
  head_.request.peer = peer_;
  encoder_.expect_response_to(head_);
  if (admit()) expect_body();
  return false;
}

bool Session::admit() {
  const auto refusal = host_.handler.admit ? host_.handler.admit(head_.request) : std::nullopt;
  if (!refusal) return true;
  const bool is_here = !head_.is_chunked && head_.content_length <= input_.size();
  if (is_here) {
    input_.erase(0, static_cast<std::size_t>(head_.content_length));
  } else {
    encoder_.close_after_response();
  }
  phase_ = Phase::handling;
  deadline_ = never;
  set_busy(true);
  respond(*refusal);
  return false;
}

void Session::expect_body() {
  const std::string_view coding = head_.request.header("content-encoding");
  const std::size_t limit = host_.options.max_body;
  if (!coding.empty() && lower_case(coding) != "identity") {
    throw BadRequest{415, "Content-Encoding is not supported: send the body as it is"};
  }
  if (head_.content_length > limit) {
    throw BadRequest{413, fmt::format("the request body is larger than {} bytes", limit)};
  }
  if (!host_.bodies->has(BodyShare::counted(head_.content_length))) throw no_memory_for_body();
  phase_ = Phase::body;
  body_begin_ = Clock::now();
  body_received_ = input_.size();
  if (head_.is_chunked) chunks_.emplace(limit);
  if (head_.expects_continue && head_.has_body() && input_.empty()) {
    queued_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }
}

void Session::take_body() {
  std::string& body = head_.request.body;
  bool is_complete = false;
  if (chunks_) {
    input_.erase(0, chunks_->decode(input_, body));
    is_complete = chunks_->is_complete();
  } else {
    const std::size_t missing = static_cast<std::size_t>(head_.content_length) - body.size();
    const std::size_t count = std::min(missing, input_.size());
    body.append(input_, 0, count);
    input_.erase(0, count);
    is_complete = count == missing;
  }
  hold_body();
  if (is_complete) return dispatch();
  const milliseconds patience = host_.options.body_timeout;
  const milliseconds earned{1000 * body_received_ / min_body_rate};
  deadline_ = std::min(Clock::now() + patience, body_begin_ + patience + earned);
}

void Session::hold_body() {
  const std::size_t size = head_.request.body.size();
  if (BodyShare::counted(size) == 0) return;
  if (!body_share_) body_share_ = std::make_shared<BodyShare>(host_.bodies);
  if (!body_share_->grow_to(size)) throw no_memory_for_body();
}

void Session::dispatch() {
  phase_ = Phase::handling;
  deadline_ = never;
  chunks_.reset();
  head_.request.body_share = std::move(body_share_);
  channel_ = std::make_shared<Channel>(transport_.waker());
  set_busy(true);
  try {
    host_.handler.handle(std::exchange(head_, {}).request, make_exchange(channel_));
  } catch (const std::exception&) {
    channel_->drop();  // sends 500
  }
}

void Session::listen() {
  if (phase_ != Phase::handling || channel_ == nullptr) return;
  Said said = channel_->listen();
  if (said.head && !said.is_stream) return respond(*said.head);
  if (said.head) {
    if (host_.is_stopping) encoder_.close_after_response();
    ping_ = std::move(said.ping);
    encoder_.begin(*said.head);
    last_piece_ = Clock::now();
  }
  if (said.is_dropped) {
    if (encoder_.is_stream()) return drop();  // without an end, so that the client sees that it was cut
    return respond(host_.refusal(nullptr, 500, "the request was not answered"));
  }
  if (said.failure) {
    if (!encoder_.has_head() && said.pieces.empty()) return respond(*said.failure);
    said.pieces += said.last_piece;
  }
  if (!said.pieces.empty()) {
    encoder_.write(said.pieces);
    last_piece_ = Clock::now();
  }
  if (said.is_complete && encoder_.is_stream()) encoder_.finish();
  if (unsent() > host_.options.max_unsent) return drop();
  // To HTTP/1.0 the end of a stream has no bytes of its own, and what came before may all be sent.
  if (unsent() == 0 && !is_writing_ && encoder_.is_complete()) return finish_request();
  write();
}

void Session::respond(const HttpResponse& response) {
  if (host_.is_stopping) encoder_.close_after_response();
  encoder_.respond(response);
  write();
}

void Session::refuse(const BadRequest& problem) {
  if (problem.status == 400 || problem.status == 505) ++host_.malformed;
  phase_ = Phase::closing;
  deadline_ = Clock::now() + host_.options.write_timeout;
  release(input_);
  encoder_.close_after_response();
  head_.request.peer = peer_;
  encoder_.respond(host_.refusal(&head_.request, problem.status, problem.message));
  release(head_.request.body);
  body_share_.reset();
  write();
}

void Session::write() {
  if (is_writing_ || phase_ == Phase::closed) return;
  if (sent_ == sending_.size()) {
    sending_.clear();
    sent_ = 0;
    std::swap(sending_, queued_);
    if (sending_.empty()) return;
  }
  is_writing_ = true;
  write_deadline_ = Clock::now() + host_.options.write_timeout;
  transport_.write(std::string_view(sending_).substr(sent_));
}

void Session::on_written(std::size_t count) {
  is_writing_ = false;
  write_deadline_ = never;
  if (phase_ == Phase::closed) return;
  sent_ += count;
  if (unsent() > 0) return write();
  if (encoder_.is_complete()) {
    finish_request();
  } else if (phase_ == Phase::handling && has_ended_) {
    check_peer();
  }
}

void Session::finish_request() {
  release(queued_);
  release(sending_);
  sent_ = 0;
  set_busy(false);
  channel_.reset();
  ping_ = {};
  was_probed_ = false;
  const bool is_last = !encoder_.keep_alive() || host_.is_stopping || (has_ended_ && input_.empty());
  if (is_last) return close_gently();
  encoder_.expect_response_to({});
  head_ = {};
  phase_ = Phase::head;
  deadline_ = Clock::now() + host_.options.idle_timeout;
  advance();
  if (has_ended_) return end_input();
  read();
}

void Session::set_busy(bool is_busy) {
  if (std::exchange(is_busy_, is_busy) != is_busy) host_.add_busy(is_busy ? 1 : -1);
}

// Lets the client read what was sent, then closes.
void Session::close_gently() {
  if (has_ended_) return drop();
  phase_ = Phase::closing;
  deadline_ = Clock::now() + linger_time;
  release(input_);
  transport_.finish_sending();
  read();
}

void Session::drop() {
  if (phase_ == Phase::closed) return;
  set_busy(false);
  phase_ = Phase::closed;
  transport_.close();
  if (const auto channel = std::move(channel_)) channel->client_left();
}

// A client that closed and one that shut down its sending side look alike until they are sent something: only
// the former answers with a reset. The first bytes of a response are known before the response is.
void Session::check_peer() {
  const PeerState state = transport_.peer_state();
  if (state == PeerState::gone) return drop();
  if (was_probed_ || (state == PeerState::open && !has_ended_)) return;
  was_probed_ = true;
  encoder_.probe(ping_);
  write();
}

void Session::tick(Clock::time_point now) {
  if (now >= deadline_) {
    const bool has_begun = phase_ == Phase::body || (phase_ == Phase::head && !input_.empty());
    return has_begun ? refuse({408, "the request did not arrive in time"}) : drop();
  }
  if (now >= write_deadline_) return drop();
  if (phase_ != Phase::handling) return;
  const bool is_silent = encoder_.is_stream() && !encoder_.is_complete() && unsent() == 0;
  if (is_silent && !ping_.empty() && now - last_piece_ >= host_.options.ping_after) {
    encoder_.write(ping_);
    last_piece_ = now;
    write();
  }
  if (!is_reading_) check_peer();  // nothing else would tell that the client is gone
}

}  // namespace inferno::server
