#include "cli/download/measured_rate.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/download/display.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t min_bytes = std::uint64_t{8} << 20;
constexpr double min_rate = 1e3, max_rate = 1e12;  // bytes/s; anything else is not a rate
constexpr std::size_t max_digits = 32;

std::optional<fs::path> rate_file(const Environment& environment) {
  const auto folder = environment.state_folder();
  return folder ? std::optional(*folder / "download-rate") : std::nullopt;
}

}  // namespace

std::optional<double> last_download_rate(const Environment& environment) {
  const auto file = rate_file(environment);
  const auto text = file ? read_start(*file, max_digits) : std::nullopt;
  if (!text) return std::nullopt;
  const std::string_view digits = trimmed(*text);
  double rate = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
  const bool is_number = problem == std::errc() && end == digits.data() + digits.size();
  if (!is_number || !(rate >= min_rate && rate <= max_rate)) return std::nullopt;
  return rate;
}

void keep_download_rate(const Environment& environment, std::uint64_t bytes, double seconds) {
  const auto file = rate_file(environment);
  if (!file || bytes < min_bytes || seconds <= 0) return;
  std::error_code ignored;
  if (fs::create_directories(file->parent_path(), ignored))
    fs::permissions(file->parent_path(), fs::perms::owner_all, ignored);
  try {
    write_file(*file, fmt::format("{:.0f}\n", static_cast<double>(bytes) / seconds), Readers::owner);
  } catch (const Error&) {
    return;  // the next offer does not say how long it takes
  }
}

std::string size_and_time(std::uint64_t bytes, std::optional<double> rate) {
  if (!rate) return human_size(bytes);
  return fmt::format("{}, about {}", human_size(bytes),
                     short_duration(std::max(1.0, static_cast<double>(bytes) / *rate)));
}

}  // namespace inferno
