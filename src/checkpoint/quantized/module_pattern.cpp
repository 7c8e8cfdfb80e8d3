#include "checkpoint/quantized/module_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::size_t max_pattern_bytes = 512;
constexpr std::uint32_t max_steps = 20'000;  // of one match: the patterns of real checkpoints need hundreds
constexpr std::uint32_t max_heap_kib = 1024;
constexpr std::chrono::seconds max_time{3};

[[noreturn]] void refuse(std::string_view where, std::string_view pattern, std::string_view problem) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: the regular expression {} {}", where, quote(pattern), problem),
       {.why = "it names the modules that are quantized", .next = "use another checkpoint of this model"});
}

}  // namespace

void PatternBudget::spend(std::chrono::nanoseconds time, std::string_view pattern, std::string_view where) {
  spent_ += time;
  if (spent_ > max_time) refuse(where, pattern, "and those before it take too long to match");
}

ModulePattern::ModulePattern(std::string_view pattern, std::string_view where,
                             std::shared_ptr<PatternBudget> budget)
    : text_(pattern), where_(where), budget_(std::move(budget)) {
  if (pattern.size() > max_pattern_bytes) {
    refuse(where, pattern, fmt::format("has more than {} bytes", max_pattern_bytes));
  }
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED,
                            &error, &at, nullptr),
              [](pcre2_code* code) { pcre2_code_free(code); });
  if (code_ == nullptr) {
    std::array<PCRE2_UCHAR, 256> message = {};
    pcre2_get_error_message(error, message.data(), message.size());
    refuse(where, pattern,
           fmt::format("is not valid at byte {}: {}", at, reinterpret_cast<const char*>(message.data())));
  }
}

bool ModulePattern::matches(std::string_view module) const {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), max_steps);
  pcre2_set_heap_limit(context.get(), max_heap_kib);
  const auto start = std::chrono::steady_clock::now();
  const int result = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0,
                                 0, data.get(), context.get());
  budget_->spend(std::chrono::steady_clock::now() - start, text_, where_);
  if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
    refuse(where_, text_, fmt::format("needs more than {} steps to match {}", max_steps, quote(module)));
  }
  return result >= 0;
}

}  // namespace inferno
