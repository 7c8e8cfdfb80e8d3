// The border of the library: exceptions become statuses, structs of the caller are read and written by their
// sizes, and nothing that the caller passes is trusted.
#pragma once

#include <inferno/inferno.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace inferno::library {

// Thrown to end a call with a status for which there is no ErrorKind.
struct Cancelled {
  std::string what;
};
struct TooSmall {
  std::size_t capacity = 0, needed = 0;
};

inferno_status status_of(ErrorKind kind);

// Writes the exception that is being handled, or that there was none.
inferno_status report_current(inferno_error* error);
void report_success(inferno_error* error);
// Error{invalid_request} naming the parameter if it is NULL.
void require(const void* pointer, std::string_view parameter);

// The text of a parameter: Error{invalid_request} if it is NULL or not UTF-8.
std::string text_at(const char* text, std::string_view parameter);

// sizeof of a struct when it was first published, and after each field that was appended since then: a
// program that was compiled earlier has only the fields of its time. A size between two of them would cut a
// field.
template <class Struct>
inline constexpr std::array<std::size_t, 0> known_sizes;
template <>
inline constexpr std::array<std::size_t, 1> known_sizes<inferno_error> = {2064};
template <>
inline constexpr std::array<std::size_t, 3> known_sizes<inferno_load_options> = {120, 128, 136};
template <>
inline constexpr std::array<std::size_t, 3> known_sizes<inferno_description> = {640, 672, 680};
template <>
inline constexpr std::array<std::size_t, 1> known_sizes<inferno_statistics> = {80};
template <>
inline constexpr std::array<std::size_t, 3> known_sizes<inferno_plan_result> = {208, 240, 248};
template <>
inline constexpr std::array<std::size_t, 1> known_sizes<inferno_part> = {1184};
template <>
inline constexpr std::array<std::size_t, 1> known_sizes<inferno_usage> = {80};

template <class Struct>
bool has_known_size(const Struct& given) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  static_assert(known_sizes<Struct>.back() == sizeof(Struct), "a field was added: its end is a known size");
  return std::ranges::find(known_sizes<Struct>, given.size) != known_sizes<Struct>.end();
}

// While one exists, its thread rounds to nearest, has no floating-point traps and keeps subnormal numbers;
// afterwards it has the floating-point environment from before. A program may have set another one, and
// threads inherit that of the thread that starts them.
class DefaultFloats {
 public:
  DefaultFloats();
  ~DefaultFloats();
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
#if defined(__x86_64__)
  // The functions of <cfenv> take 0.2 us, and a call is made for each token: these registers are read at once
  // and in most threads have their default values, so that nothing has to be set.
  std::uint32_t sse_;              // MXCSR
  std::uint16_t x87_, x87_flags_;  // control word, and exceptions in the status word
#else
  std::fenv_t before_;
#endif
};

// While one exists, its thread runs a callback of the caller that is told about progress or for the log.
class InReport {
 public:
  InReport();
  ~InReport();
  InReport(const InReport&) = delete;
  InReport& operator=(const InReport&) = delete;

 private:
  DefaultFloats floats_;  // what the callback changes must not change an answer
};

// Error{invalid_request} if this thread runs such a callback: the call that reports may hold the model.
void refuse_in_report();

// Calls `body` and reports how it ended. The only way into the library. A template, because a std::function
// would allocate memory outside of the try block.
template <class Body>
inferno_status guarded(inferno_error* error, const Body& body) noexcept {
  // Without memory for the message there is still the status.
  if (error != nullptr && !has_known_size(*error)) return INFERNO_INVALID_REQUEST;
  const DefaultFloats floats;
  try {
    try {
      refuse_in_report();
      body();
    } catch (...) {
      return report_current(error);
    }
    report_success(error);
    return INFERNO_OK;
  } catch (...) {
    return INFERNO_IO;  // no memory even to say so
  }
}

// The same for a function that makes a handle, which is {0} afterwards unless `body` sets it.
template <class Handle, class Body>
inferno_status guarded_making(Handle* made, std::string_view parameter, inferno_error* error,
                              const Body& body) noexcept {
  if (made != nullptr) *made = {0};
  return guarded(error, [&] {
    require(made, parameter);
    body();
  });
}

// Error{invalid_request} about the field `size` of this struct.
[[noreturn]] void refuse_size(std::size_t found, std::size_t expected, std::string_view name);

// The caller's options; defaults if there are none.
template <class Options>
Options read_options(const Options* options, std::string_view name) {
  Options read = {};
  if (options == nullptr) return read;
  if (!has_known_size(*options)) refuse_size(options->size, sizeof(Options), name);
  std::memcpy(&read, options, options->size);
  return read;
}

template <class Result>
void check_result(const Result* result, std::string_view name) {
  require(result, name);
  if (!has_known_size(*result)) refuse_size(result->size, sizeof(Result), name);
}

// After check_result().
template <class Result>
void write_result(Result* to, Result result) {
  result.size = to->size;
  std::memcpy(to, &result, to->size);
}

// As much of the text as fits, cut between characters, with a NUL byte. Returns the number of bytes copied.
std::size_t copy_cut(std::span<char> to, std::string_view text);

// The rules for texts and arrays that a caller gets. `memory` may be NULL if `capacity` is 0; `length` may be
// NULL.
void give_text(std::string_view text, char* memory, std::size_t capacity, std::size_t* length);

template <class Number>
void give_numbers(std::span<const Number> numbers, Number* memory, std::size_t capacity, std::size_t* count) {
  if (count != nullptr) *count = numbers.size();
  if (capacity == 0) return;
  require(memory, "memory for the result");
  if (capacity < numbers.size()) throw TooSmall{capacity, numbers.size()};
  std::copy(numbers.begin(), numbers.end(), memory);
}

// While one exists, its thread runs a callback of the caller on behalf of an engine.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  DefaultFloats floats_;  // what the callback changes must not change an answer
};

bool is_in_callback();
// Error{invalid_request} if this thread runs such a callback: the engine would wait for itself.
void refuse_in_callback(std::string_view function);

}  // namespace inferno::library
