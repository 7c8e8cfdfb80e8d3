// Threads of a class, all or none: a std::thread that is destroyed while it runs ends the program.
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace inferno {

// Appends `count` threads that run body(0), body(1), …. If the system refuses one, calls `stop`, which must
// end and join those that run, and throws Error{io}.
template <class Body, class Stop>
void start_threads(std::vector<std::thread>& threads, int count, const Body& body, const Stop& stop) {
  try {
    for (int index = 0; index < count; ++index) threads.emplace_back([body, index] { body(index); });
  } catch (const std::system_error& problem) {
    const std::size_t running = threads.size();
    stop();
    fail(ErrorKind::io, fmt::format("cannot start {} threads: {} are running", count, running),
         {.why = problem.code().message(), .next = "use fewer threads, or raise the limit of processes"});
  } catch (...) {
    stop();
    throw;
  }
}

}  // namespace inferno
