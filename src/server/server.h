// `inferno serve`: listens at once, loads the model, serves, and drains when it is told to stop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/admission/access.h"
#include "server/http/http.h"
#include "server/shared.h"

namespace inferno::server {

struct ServerOptions {
  HttpOptions http;
  AccessOptions access;
  ServerSettings settings;
  LogOptions log;
  bool public_metrics = false;                      // /metrics without the key
  bool waits_for_model = false;                     // requests wait while it is loaded, instead of 503
  std::chrono::milliseconds drain_delay{0};         // after a signal, connections are accepted for this long
  std::chrono::milliseconds drain_timeout{30'000};  // then running answers have this long to finish
};

class Server {
 public:
  // Binds; every API route answers 503 until a model is set, or waits for it.
  explicit Server(ServerOptions options);
  ~Server();

  int port() const;
  void start();
  void set_model(std::shared_ptr<const TextModel> model);
  // Announces that the server stops, accepts connections for the drain delay, then closes the listener and
  // lets running answers finish within the drain timeout; what still runs gets an error event. `hurry` is
  // asked often: true ends the waiting. Returns true if everything was finished.
  bool drain(const std::function<bool()>& hurry);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferno::server
