#include "library/border.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/current_error.h"
#include "base/utf8.h"

namespace inferno::library {
namespace {

// Callbacks that this thread is in: those for parts, and those for progress and the log.
thread_local int callback_depth = 0, report_depth = 0;

void report(inferno_error* to, inferno_status status, const Error& error) {
  if (to == nullptr) return;
  inferno_error written = {};
  written.status = status;
  copy_cut(written.what, printable(error.what()));
  copy_cut(written.why, printable(error.advice().why));
  copy_cut(written.next, printable(error.advice().next));
  write_result(to, written);
}

#if defined(__x86_64__)
constexpr std::uint32_t default_sse = 0x1f80;  // all exceptions masked, round to nearest
constexpr std::uint16_t default_x87 = 0x37f, x87_all_flags = 0xff;

std::uint16_t x87_control() {
  std::uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}

std::uint16_t x87_flags() {
  std::uint16_t word = 0;
  asm volatile("fnstsw %0" : "=a"(word));
  return static_cast<std::uint16_t>(word & x87_all_flags);
}
#endif

}  // namespace

inferno_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_request: return INFERNO_INVALID_REQUEST;
    case ErrorKind::not_found: return INFERNO_NOT_FOUND;
    case ErrorKind::unsupported: return INFERNO_UNSUPPORTED;
    case ErrorKind::corrupt: return INFERNO_CORRUPT;
    case ErrorKind::overloaded: return INFERNO_OVERLOADED;
    case ErrorKind::io: return INFERNO_IO;
    case ErrorKind::network: return INFERNO_NETWORK;
    case ErrorKind::device: return INFERNO_DEVICE;
    case ErrorKind::internal: return INFERNO_INTERNAL;
  }
  return INFERNO_INTERNAL;
}

inferno_status report_current(inferno_error* to) {
  try {
    throw;
  } catch (const Cancelled& cancelled) {
    report(to, INFERNO_CANCELLED, Error(ErrorKind::invalid_request, cancelled.what));
    return INFERNO_CANCELLED;
  } catch (const TooSmall& small) {
    report(
        to, INFERNO_TOO_SMALL,
        Error(ErrorKind::invalid_request,
              fmt::format("memory for {} is too small: the result has {}", small.capacity, small.needed),
              {.why = {},
               .next = "ask with capacity 0 how much is needed, and leave room for the NUL byte of a text"}));
    return INFERNO_TOO_SMALL;
  } catch (...) {
    const Error error = current_error();
    report(to, status_of(error.kind()), error);
    return status_of(error.kind());
  }
}

void report_success(inferno_error* error) {
  if (error == nullptr) return;
  error->status = INFERNO_OK;
  error->what[0] = error->why[0] = error->next[0] = '\0';
}

void require(const void* pointer, std::string_view parameter) {
  if (pointer != nullptr) return;
  fail(ErrorKind::invalid_request, fmt::format("{}: expected an address, found NULL", parameter));
}

std::string text_at(const char* text, std::string_view parameter) {
  require(text, parameter);
  std::string copy = text;
  if (const auto at = utf8::first_invalid(copy)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: byte {} is not UTF-8", parameter, *at));
  }
  return copy;
}

void refuse_size(std::size_t found, std::size_t expected, std::string_view name) {
  fail(ErrorKind::invalid_request, fmt::format("{}.size: expected {}, found {}", name, expected, found),
       {.why = found > expected
                   ? "the program was compiled with the header of a newer library, or the field was not set"
                   : "the field was not set to sizeof of the struct",
        .next = "set it to sizeof of the struct, and compile with the header of this library"});
}

std::size_t copy_cut(std::span<char> to, std::string_view text) {
  std::size_t count = std::min(text.size(), to.size() - 1);
  if (count < text.size()) {
    // Back to where a character begins; bytes that are no UTF-8 are cut anywhere.
    std::size_t begin = count;
    while (begin > 0 && count - begin < 3 && utf8::is_continuation(text[begin])) --begin;
    if (!utf8::is_continuation(text[begin])) count = begin;
  }
  std::copy_n(text.begin(), count, to.begin());
  to[count] = '\0';
  return count;
}

void give_text(std::string_view text, char* memory, std::size_t capacity, std::size_t* length) {
  if (length != nullptr) *length = text.size();
  if (capacity == 0) return;
  require(memory, "memory for the result");
  if (capacity <= text.size()) throw TooSmall{capacity, text.size() + 1};
  std::copy(text.begin(), text.end(), memory);
  memory[text.size()] = '\0';
}

#if defined(__x86_64__)
DefaultFloats::DefaultFloats() : sse_(_mm_getcsr()), x87_(x87_control()), x87_flags_(x87_flags()) {
  if (sse_ != default_sse) _mm_setcsr(default_sse);
  if (x87_ != default_x87 || x87_flags_ != 0) std::fesetenv(FE_DFL_ENV);
}

DefaultFloats::~DefaultFloats() {
  if (x87_control() != x87_ || x87_flags() != x87_flags_) {
    std::fenv_t environment;
    std::fegetenv(&environment);
    environment.__control_word = x87_;
    environment.__status_word =
        static_cast<std::uint16_t>((environment.__status_word & ~x87_all_flags) | x87_flags_);
    std::fesetenv(&environment);
  }
  if (_mm_getcsr() != sse_) _mm_setcsr(sse_);
}
#else
DefaultFloats::DefaultFloats() {
  std::fegetenv(&before_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloats::~DefaultFloats() {
  std::fesetenv(&before_);
}
#endif

InCallback::InCallback() {
  ++callback_depth;
}

InCallback::~InCallback() {
  --callback_depth;
}

InReport::InReport() {
  ++report_depth;
}

InReport::~InReport() {
  --report_depth;
}

void refuse_in_report() {
  if (report_depth == 0) return;
  fail(ErrorKind::invalid_request, "the library was called in a progress or log callback",
       {.why = "the call that reports is not over and may hold the model",
        .next = "call it after that callback has returned, or on another thread"});
}

bool is_in_callback() {
  return callback_depth > 0;
}

void refuse_in_callback(std::string_view function) {
  if (!is_in_callback()) return;
  fail(ErrorKind::invalid_request, fmt::format("{} was called in a callback", function),
       {.why = "the thread that calls back computes the answers, so it would wait for itself",
        .next = "call it on another thread, or after the callback has returned"});
}

}  // namespace inferno::library
