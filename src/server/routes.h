// The table of routes, and which of them a request means.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/doors.h"

namespace inferno::server {

// Where a route runs, and when it is refused.
enum class Work {
  quick,     // on the transport's thread: it neither blocks nor computes
  reading,   // on a worker
  answering  // on a worker, unless the engine's queue is full: then its body is not even parsed
};

struct Route {
  std::string_view method;  // HEAD is answered as GET
  std::string_view path;    // may end with {id}, which stands for the rest of the path
  void (*run)(SharedCall call);
  bool needs_key = true;
  Work work = Work::reading;
  Dialect dialect = Dialect::openai;
};

std::span<const Route> routes();

struct RouteMatch {
  const Route* route = nullptr;  // nullptr: no route has this path and method
  std::string allowed_methods;   // "GET, HEAD": of the routes with this path; empty: unknown path
  Dialect dialect = Dialect::openai;
};
RouteMatch find_route(std::string_view method, std::string_view path);

// What to use instead of a route that is not here: other servers have some.
std::string_view advice_for(std::string_view path);

}  // namespace inferno::server
