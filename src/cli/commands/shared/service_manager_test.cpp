#include "cli/commands/shared/service_manager.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// A manager's side: a datagram socket that receives messages.
class Manager {
 public:
  explicit Manager(bool has_file = true) {
    std::string pattern = (std::filesystem::temp_directory_path() / "inferno-notify-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    name_ = has_file ? (folder_ / "socket").string() : "@" + folder_.string();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (!has_file) address.sun_path[0] = '\0';
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length), 0);
  }
  ~Manager() {
    ::close(socket_);
    std::filesystem::remove_all(folder_);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const std::string& name() const { return name_; }
  std::vector<std::string> received() const {
    std::vector<std::string> all;
    char text[4096];
    ssize_t count = 0;
    while ((count = ::recv(socket_, text, sizeof text, 0)) >= 0) {
      all.emplace_back(text, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  std::filesystem::path folder_;
  std::string name_;
  int socket_ = -1;
};

ServiceManager with(Environment::Values values) {
  return ServiceManager(Environment(std::move(values), std::nullopt));
}

std::string self() {
  return std::to_string(::getpid());
}

TEST(ServiceManager, IsToldWhatHappens) {
  for (const bool has_file : {true, false}) {
    const Manager manager(has_file);
    const ServiceManager service = with({{"NOTIFY_SOCKET", manager.name()}});
    service.notify("READY=1\nSTATUS=Serving");
    service.notify("STOPPING=1");
    EXPECT_THAT(manager.received(), ElementsAre("READY=1\nSTATUS=Serving", "STOPPING=1"));
  }
}

TEST(ServiceManager, NeedNotExist) {
  ServiceManager service = with({});
  service.notify("READY=1");
  service.keep_alive(0);
  EXPECT_THAT(service.sockets(), IsEmpty());
  with({{"NOTIFY_SOCKET", "/no/such/socket"}}).notify("READY=1");
  with({{"NOTIFY_SOCKET", std::string(500, 'x')}}).notify("READY=1");
}

TEST(ServiceManager, GetsSignsOfLifeOnlyWhileTheWorkProgresses) {
  const Manager manager;
  ServiceManager service =
      with({{"NOTIFY_SOCKET", manager.name()}, {"WATCHDOG_USEC", "200000"}, {"WATCHDOG_PID", self()}});
  service.keep_alive(0.5);  // no progress for longer than the pause of 20 ms
  EXPECT_THAT(manager.received(), IsEmpty());
  service.keep_alive(0);
  service.keep_alive(0);  // too soon after the one before
  EXPECT_THAT(manager.received(), ElementsAre("WATCHDOG=1"));
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  service.keep_alive(0.01);
  EXPECT_THAT(manager.received(), ElementsAre("WATCHDOG=1"));
}

TEST(ServiceManager, DoesNotAnswerForAnotherProcess) {
  const Manager manager;
  ServiceManager service = with({{"NOTIFY_SOCKET", manager.name()},
                                 {"WATCHDOG_USEC", "1000"},
                                 {"WATCHDOG_PID", "1"},
                                 {"LISTEN_FDS", "1"},
                                 {"LISTEN_PID", "1"}});
  service.keep_alive(0);
  EXPECT_THAT(manager.received(), IsEmpty());
  EXPECT_THAT(service.sockets(), IsEmpty());
  EXPECT_THAT(with({{"LISTEN_FDS", "2"}}).sockets(), IsEmpty());
}

TEST(ServiceManager, HandsOverSockets) {
  EXPECT_THAT(with({{"LISTEN_FDS", "2"}, {"LISTEN_PID", self()}}).sockets(), ElementsAre(3, 4));
  EXPECT_THAT(with({{"LISTEN_FDS", "0"}, {"LISTEN_PID", self()}}).sockets(), IsEmpty());
}

TEST(ServiceManager, MalformedVariablesAreErrors) {
  for (const char* value : {"x", "-1", "1x", "99999999999999999999"}) {
    EXPECT_THAT([&] { with({{"LISTEN_FDS", value}, {"LISTEN_PID", self()}}); },
                ThrowsMessage<Error>(HasSubstr(fmt::format("LISTEN_FDS={}", value))));
    EXPECT_THAT([&] { with({{"WATCHDOG_USEC", value}}); }, ThrowsMessage<Error>(HasSubstr("WATCHDOG_USEC")));
  }
  EXPECT_THAT([&] { with({{"LISTEN_FDS", "65"}, {"LISTEN_PID", self()}}); },
              ThrowsMessage<Error>(HasSubstr("at most 64")));
}

}  // namespace
}  // namespace inferno
