#include "backend/cpu/host.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>

#include "backend/cpu/memory.h"
#include "base/thread_pool.h"

namespace inferno::cpu {
namespace {

constexpr std::array level_names = {std::pair{IsaLevel::portable, std::string_view("portable")},
                                    std::pair{IsaLevel::neon, std::string_view("neon")},
                                    std::pair{IsaLevel::neon_dot, std::string_view("neon_dot")},
                                    std::pair{IsaLevel::neon_i8mm, std::string_view("neon_i8mm")},
                                    std::pair{IsaLevel::avx2, std::string_view("avx2")},
                                    std::pair{IsaLevel::avx512, std::string_view("avx512")},
                                    std::pair{IsaLevel::avx512_vnni, std::string_view("avx512_vnni")},
                                    std::pair{IsaLevel::amx_model, std::string_view("amx_model")},
                                    std::pair{IsaLevel::amx, std::string_view("amx")}};

constexpr std::size_t step = std::size_t{1} << 20;  // bytes of one piece of the bandwidth measurement

// Sums in independent words, which compilers vectorize. Whether software prefetch helps depends on the CPU's
// own prefetcher, so both are tried.
template <bool prefetches>
std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t ahead = 2048, lines = 4;
  std::uint64_t sums[8] = {};
  for (std::size_t at = 0; at < bytes; at += lines * 64) {
    std::uint64_t words[lines][8];
    std::memcpy(words, from + at, sizeof(words));
    for (std::size_t line = 0; line < lines; ++line) {
      if constexpr (prefetches) __builtin_prefetch(from + at + line * 64 + ahead);
      for (int i = 0; i < 8; ++i) sums[i] += words[line][i];
    }
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

std::string_view name_of(IsaLevel level) {
  for (const auto& [known, name] : level_names) {
    if (known == level) return name;
  }
  return "unknown";
}

std::optional<IsaLevel> level_named(std::string_view name) {
  for (const auto& [level, known] : level_names) {
    if (known == name) return level;
  }
  return std::nullopt;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

double read_bandwidth(int threads, std::size_t bytes) {
  ThreadPool pool(threads);
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, bytes / step));
  const Buffer buffer = allocate(static_cast<std::size_t>(steps) * step, "bandwidth measurement");
  pool.parallel_for(steps, 1, [&](const ThreadPool::Range& range) {  // pages exist once they are written
    std::memset(buffer.data() + static_cast<std::size_t>(range.begin) * step, 1,
                static_cast<std::size_t>(range.end - range.begin) * step);
  });
  std::atomic<std::uint64_t> sink = 0;
  double best = 0.0;
  for (int pass = 0; pass < 8; ++pass) {
    const auto read = pass % 2 == 0 ? read_all<true> : read_all<false>;
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(steps, 8, [&](const ThreadPool::Range& range) {
      sink += read(buffer.data() + static_cast<std::size_t>(range.begin) * step,
                   static_cast<std::size_t>(range.end - range.begin) * step);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(buffer.size()) / seconds.count());
  }
  return best;
}

}  // namespace inferno::cpu
