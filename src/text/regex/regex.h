// Runs the split patterns of tokenizer.json on PCRE2. They are written for Oniguruma, whose dialect differs
// in a few places; translate_pattern() converts them and refuses what PCRE2 cannot express.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace inferno {

// Translates an Oniguruma pattern to PCRE2. Error{unsupported} names what has no counterpart.
std::string translate_pattern(std::string_view pattern);

struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Working memory of one encoding, used by one thread.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class RegexScan;
  // False if the time allowed for the text searched so far is used up.
  bool has_time();

  pcre2_real_match_data_8* data_ = nullptr;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_jit_stack_8* stack_ = nullptr;
  std::size_t budget_bytes_ = 0;  // text searched so far; each byte adds to the time allowed
  unsigned matches_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::nanoseconds thread_started_{0};  // 0 until the wall-clock time is used up
};

// Immutable, shared by all threads.
class Regex {
 public:
  // Error{corrupt} with PCRE2's message and the offset if the pattern is invalid. `where` names the field.
  Regex(std::string_view pattern, std::string_view where);

 private:
  friend class RegexScan;
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  [[noreturn]] void give_up() const;

  std::string pattern_;
  std::string where_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  bool compiled_ = false;  // by the JIT compiler
};

// The matches of a pattern in a text, from left to right. The work per match and the time per byte of text
// are limited: a pattern that takes too long, as a hostile one does, is Error{unsupported}.
class RegexScan {
 public:
  RegexScan(const Regex& regex, std::string_view text, RegexScratch& scratch);
  std::optional<Match> next();

 private:
  std::optional<Match> search(std::size_t from);

  const Regex& regex_;
  std::string_view text_;
  RegexScratch& scratch_;
  std::size_t from_ = 0;
  std::optional<std::size_t> last_end_;
};

}  // namespace inferno
