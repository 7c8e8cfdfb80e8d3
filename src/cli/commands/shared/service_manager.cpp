#include "cli/commands/shared/service_manager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace inferno {
namespace {

constexpr int first_descriptor = 3;  // SD_LISTEN_FDS_START
constexpr std::int64_t max_sockets = 64;

std::optional<std::int64_t> number_in(const Environment& environment, std::string_view name) {
  const auto text = environment.get(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && stop == end && value >= 0) return value;
  fail(ErrorKind::invalid_request, fmt::format("{}={}: expected a number", name, *text),
       {.why = "a service manager sets this variable", .next = fmt::format("unset {}", name)});
}

}  // namespace

ServiceManager::ServiceManager(const Environment& environment) : address_(environment.get("NOTIFY_SOCKET")) {
  const std::int64_t self = ::getpid();
  const auto time = number_in(environment, "WATCHDOG_USEC");
  if (time && *time > 0 && number_in(environment, "WATCHDOG_PID").value_or(self) == self) {
    watchdog_ = std::chrono::microseconds(*time);
  }
  const auto count = number_in(environment, "LISTEN_FDS");
  if (!count || number_in(environment, "LISTEN_PID") != self) return;
  if (*count > max_sockets) {
    fail(ErrorKind::invalid_request,
         fmt::format("LISTEN_FDS={}: at most {} sockets are supported", *count, max_sockets));
  }
  for (int i = 0; i < static_cast<int>(*count); ++i) {
    sockets_.push_back(first_descriptor + i);
    ::fcntl(first_descriptor + i, F_SETFD, FD_CLOEXEC);
  }
}

std::string ServiceManager::host() const {
  std::string first;
  for (const int socket : sockets_) {
    sockaddr_storage address = {};
    socklen_t length = sizeof address;
    std::array<char, NI_MAXHOST> name = {};
    auto* const bound = reinterpret_cast<sockaddr*>(&address);
    if (::getsockname(socket, bound, &length) != 0 ||
        ::getnameinfo(bound, length, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    const std::string host = name.data();
    if (host != "::1" && !host.starts_with("127.")) return host;
    if (first.empty()) first = host;
  }
  return first;
}

void ServiceManager::notify(std::string_view lines) const {
  sockaddr_un address = {};
  if (!address_ || address_->size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, address_->data(), address_->size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // a name without a file
  const int link = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (link < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_->size());
  ::sendto(link, lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&address), length);
  ::close(link);
}

void ServiceManager::keep_alive(double heartbeat_age) {
  if (!watchdog_) return;
  const auto pause = *watchdog_ / 10;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_sign_ < pause || std::chrono::duration<double>(heartbeat_age) > pause) return;
  last_sign_ = now;
  notify("WATCHDOG=1");
}

}  // namespace inferno
