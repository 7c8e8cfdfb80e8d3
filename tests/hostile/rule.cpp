#include "hostile/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "hostile/allocations.h"

namespace inferno {
namespace {

constexpr double max_seconds = 2.0;
constexpr std::size_t small_constant = std::size_t{1} << 20;
constexpr std::size_t max_reported = 10;

bool is_expected(ErrorKind kind) {
  return kind == ErrorKind::corrupt || kind == ErrorKind::unsupported || kind == ErrorKind::not_found ||
         kind == ErrorKind::io;
}

bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

std::string broken_by_error(const Error& error, std::string_view name) {
  if (!is_expected(error.kind())) return fmt::format("error of kind {}", static_cast<int>(error.kind()));
  const std::string_view message = error.what();
  if (message.find(name) == std::string_view::npos) return "the message does not name the file";
  if (message.size() <= name.size() + 8) return "the message says nothing";
  if (message.size() > 2000) return "the message is too long";
  if (!is_printable(message)) return "the message holds control characters";
  return {};
}

std::string broken_by_cost(const HostileFile& file, double seconds, const allocations::Cost& cost) {
  if (seconds > max_seconds) return fmt::format("took {:.1f} s", seconds);
  if (cost.largest > file.bytes + small_constant)
    return fmt::format("allocated {} bytes at once", cost.largest);
  if (cost.peak > 16 * file.bytes + 2 * small_constant) return fmt::format("needed {} bytes", cost.peak);
  return {};
}

Verdict load_once(const HostileFile& file) {
  Verdict verdict;
  allocations::start();
  const auto start = std::chrono::steady_clock::now();
  try {
    file.load();
  } catch (const Error& error) {
    verdict.refused = error.kind();
    verdict.message = error.what();
    verdict.broken = broken_by_error(error, file.name);
  } catch (const std::exception& other) {
    verdict.broken = fmt::format("{} instead of an Error", other.what());
  }
  const allocations::Cost cost = allocations::stop();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (verdict.broken.empty()) verdict.broken = broken_by_cost(file, seconds.count(), cost);
  return verdict;
}

}  // namespace

Verdict judge(const HostileFile& file) {
  Verdict first = load_once(file);
  const Verdict second = load_once(file);
  if (first.broken.empty()) first.broken = second.broken;
  if (first.broken.empty() && (first.refused != second.refused || first.message != second.message)) {
    first.broken = "a different answer the second time: " + second.message;
  }
  return first;
}

void Sweep::add(const std::string& variant, const HostileFile& file) {
  const Verdict verdict = judge(file);
  ++(verdict.refused ? refused_ : loaded_);
  if (verdict.broken.empty()) return;
  if (++broken_ <= max_reported) {
    report_ += fmt::format("\n  {}: {} ({})", variant, verdict.broken, verdict.message);
  }
}

testing::AssertionResult Sweep::result() const {
  if (broken_ == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << broken_ << " of " << loaded_ + refused_
                                     << " break the rule:" << report_;
}

std::array<std::uint64_t, 16> edge_values(std::uint64_t value) {
  constexpr std::uint64_t one = 1;
  return {0,
          1,
          one << 7,
          255,
          one << 15,
          one << 16,
          (one << 31) - 1,
          one << 31,
          (one << 32) - 1,
          one << 32,
          (one << 62),
          (one << 63) - 1,
          one << 63,
          ~std::uint64_t{0},
          value + 1,
          value - 1};
}

}  // namespace inferno
