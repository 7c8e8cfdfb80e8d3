#include "server/http/channel.h"

#include <utility>

namespace inferno::server {

namespace {

class ChannelExchange final : public Exchange {
 public:
  explicit ChannelExchange(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  ~ChannelExchange() override { channel_->drop(); }
  ChannelExchange(const ChannelExchange&) = delete;
  ChannelExchange& operator=(const ChannelExchange&) = delete;

  void respond(HttpResponse response) override { channel_->respond(std::move(response)); }
  void begin(HttpResponse head, std::string ping) override {
    channel_->begin(std::move(head), std::move(ping));
  }
  void write(std::string piece) override { channel_->write(piece); }
  void finish() override { channel_->finish(); }
  void abandon(HttpResponse response, std::string last_piece) override {
    channel_->abandon(std::move(response), std::move(last_piece));
  }
  void on_disconnect(std::function<void()> gone) override { channel_->on_disconnect(std::move(gone)); }

 private:
  const std::shared_ptr<Channel> channel_;
};

}  // namespace

void Channel::say(Stage needed, Stage then, const std::function<void(Said&)>& change) {
  std::function<void()> released;  // destroyed without the lock: it may own the exchange
  {
    const std::lock_guard lock(mutex_);
    if (stage_ != needed) return;
    stage_ = then;
    change(said_);
    if (then == Stage::complete) released = std::exchange(gone_, {});
    if (std::exchange(is_scheduled_, true)) return;
  }
  wake_();
}

Said Channel::listen() {
  const std::lock_guard lock(mutex_);
  is_scheduled_ = false;
  return std::exchange(said_, {});
}

void Channel::client_left() {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == Stage::complete) return;
    stage_ = Stage::complete;
    gone = std::exchange(gone_, {});
    has_left_ = true;
  }
  if (gone) gone();
}

void Channel::respond(HttpResponse response) {
  say(Stage::silent, Stage::complete, [&](Said& said) {
    said.head = std::move(response);
    said.is_complete = true;
  });
}

void Channel::begin(HttpResponse head, std::string ping) {
  say(Stage::silent, Stage::streaming, [&](Said& said) {
    said.head = std::move(head);
    said.ping = std::move(ping);
    said.is_stream = true;
  });
}

void Channel::write(std::string_view piece) {
  say(Stage::streaming, Stage::streaming, [&](Said& said) { said.pieces += piece; });
}

void Channel::finish() {
  say(Stage::streaming, Stage::complete, [](Said& said) { said.is_complete = true; });
}

void Channel::abandon(HttpResponse response, std::string last_piece) {
  say(Stage::streaming, Stage::complete, [&](Said& said) {
    said.failure = std::move(response);
    said.last_piece = std::move(last_piece);
    said.is_complete = true;
  });
}

void Channel::drop() {
  for (const Stage stage : {Stage::silent, Stage::streaming}) {
    say(stage, Stage::complete, [](Said& said) { said.is_dropped = true; });
  }
}

void Channel::on_disconnect(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ != Stage::complete) {
      std::swap(gone_, gone);
      return;
    }
    if (!has_left_) return;
  }
  gone();
}

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Channel> channel) {
  return std::make_shared<ChannelExchange>(std::move(channel));
}

}  // namespace inferno::server
