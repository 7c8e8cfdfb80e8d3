#include "text/regex.h"

#include <fmt/format.h>
#include <pcre2.h>
#include <time.h>

#include <array>
#include <new>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

// Far above what honest patterns need, yet well under a second. Machine code counts alternatives and groups
// tried, the interpreter every step back, of which a megabyte of one letter needs a million.
constexpr std::uint32_t compiled_match_limit = 1'000'000;
constexpr std::uint32_t interpreted_match_limit = 20'000'000;
constexpr std::uint32_t heap_limit_kib = 64 * 1024;
constexpr std::size_t jit_stack_start = 32 * 1024;
constexpr std::size_t jit_stack_most = 8 * 1024 * 1024;
constexpr std::size_t longest_pattern = 64 * 1024;
constexpr unsigned matches_between_checks = 64;
constexpr auto time_to_start_with = std::chrono::milliseconds(500);
constexpr auto time_per_byte = std::chrono::microseconds(4);

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

RegexScratch::RegexScratch()
    : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
  stack_ = pcre2_jit_stack_create(jit_stack_start, jit_stack_most, nullptr);
  if (data_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  if (stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, stack_);
  pcre2_set_heap_limit(context_, heap_limit_kib);
  started_ = std::chrono::steady_clock::now();
}

RegexScratch::~RegexScratch() {
  pcre2_jit_stack_free(stack_);
  pcre2_match_context_free(context_);
  pcre2_match_data_free(data_);
}

bool RegexScratch::has_time() {
  if (++matches_ % matches_between_checks != 0) return true;
  const auto allowed = time_to_start_with + time_per_byte * static_cast<std::int64_t>(budget_bytes_);
  if (std::chrono::steady_clock::now() - started_ < allowed) return true;
  // The clock on the wall also runs while this thread is stopped; only its own time counts against it. The
  // thread may have done other work before, so its clock starts again here.
  const auto used = thread_time();
  if (thread_started_ == std::chrono::nanoseconds::zero()) thread_started_ = used;
  return used - thread_started_ <= allowed;
}

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Regex::Regex(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {
  if (pattern.size() > longest_pattern) {
    fail(ErrorKind::unsupported, fmt::format("{}: a pattern of {} bytes, at most {} are accepted", where,
                                             pattern.size(), longest_pattern));
  }
  std::string translated;
  try {
    translated = translate_pattern(pattern);
  } catch (const Error& error) {
    fail(error.kind(), fmt::format("{}: {}", where, error.what()));
  }
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Oniguruma's ^ and $ always stand at lines.
  constexpr std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options,
                            &error, &offset, context.get()));
  if (!code_) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: pattern {} is wrong near {}: {}", where, quote(pattern_),
                     quote(std::string_view(translated).substr(offset)), message_of(error)));
  }
  compiled_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

void Regex::give_up() const {
  fail(ErrorKind::unsupported,
       fmt::format("{}: pattern {} takes too long on this text", where_, quote(pattern_)),
       {.why = "the work per match and per byte of text is limited, so that a hostile pattern cannot hang us",
        .next = {}});
}

RegexScan::RegexScan(const Regex& regex, std::string_view text, RegexScratch& scratch)
    : regex_(regex), text_(text), scratch_(scratch) {
  scratch_.budget_bytes_ += text.size();
  pcre2_set_match_limit(scratch_.context_, regex.compiled_ ? compiled_match_limit : interpreted_match_limit);
}

std::optional<Match> RegexScan::search(std::size_t from) {
  if (!scratch_.has_time()) regex_.give_up();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const int found = regex_.compiled_ ? pcre2_jit_match(regex_.code_.get(), subject, text_.size(), from, 0,
                                                       scratch_.data_, scratch_.context_)
                                     : pcre2_match(regex_.code_.get(), subject, text_.size(), from,
                                                   PCRE2_NO_UTF_CHECK, scratch_.data_, scratch_.context_);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  if (found < 0) regex_.give_up();
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(scratch_.data_);
  // \K inside a lookahead can set the start behind the end.
  if (offsets[0] > offsets[1]) return Match{.begin = offsets[1], .end = offsets[1]};
  return Match{.begin = offsets[0], .end = offsets[1]};
}

std::optional<Match> RegexScan::next() {
  while (from_ <= text_.size()) {
    const auto match = search(from_);
    if (!match) return std::nullopt;
    const bool repeats = match->begin == match->end && last_end_ == match->end;
    // An empty match right behind the last one would be found for ever.
    if (!repeats && (!last_end_ || match->begin >= *last_end_)) {
      from_ = match->end;
      last_end_ = match->end;
      return match;
    }
    from_ += from_ < text_.size() ? utf8::length_from_first_byte(text_[from_]) : 1;
  }
  return std::nullopt;
}

}  // namespace inferno
