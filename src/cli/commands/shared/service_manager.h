// What a service manager such as systemd and this process tell each other: sockets that were opened for it,
// that it is ready, that it stops, and that it still works (sd_notify(3), sd_listen_fds(3)), without a
// library.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"

namespace inferno {

class ServiceManager {
 public:
  // NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID, LISTEN_FDS, LISTEN_PID. What is meant for another process is
  // ignored; a malformed value is an Error{invalid_request} that names the variable.
  explicit ServiceManager(const Environment& environment);

  // Listening sockets, which now belong to the caller.
  const std::vector<int>& sockets() const { return sockets_; }

  // Who can reach these sockets: the first address that is not this machine's loopback, otherwise the first.
  // Empty without sockets.
  std::string host() const;

  // Lines such as "READY=1\nSTATUS=…"; nothing happens without a manager. A manager that does not listen is
  // not an error: the service works all the same.
  void notify(std::string_view lines) const;

  // Tells the manager that the service works, at most ten times within the time after which it would be
  // restarted. `heartbeat_age`: seconds since the work last showed progress; nothing is sent while that is
  // longer than the pause between two messages, so a service that hangs is restarted in time. To be called
  // often.
  void keep_alive(double heartbeat_age);

 private:
  std::optional<std::string> address_;  // of the manager's socket
  std::optional<std::chrono::microseconds> watchdog_;
  std::chrono::steady_clock::time_point last_sign_ = {};
  std::vector<int> sockets_;
};

}  // namespace inferno
