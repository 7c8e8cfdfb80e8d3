// The split patterns of tokenizer.json on PCRE2. They are written for Oniguruma, whose dialect differs in a
// few places; translate_pattern bridges them, and refuses what it cannot say.
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

// An Oniguruma pattern in PCRE2's words. Error{unsupported} names what has no counterpart.
std::string translate_pattern(std::string_view pattern);

struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Working memory of one encoding; belongs to one thread.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class RegexScan;
  // False when the time for the text seen so far is used up.
  bool has_time();

  pcre2_real_match_data_8* data_ = nullptr;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_jit_stack_8* stack_ = nullptr;
  std::size_t budget_bytes_ = 0;  // text searched so far; each byte buys time
  unsigned matches_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::nanoseconds thread_started_{0};  // 0 until the wall clock has run out
};

// Immutable, shared by all threads.
class Regex {
 public:
  // Error{corrupt} with PCRE2's own words and the offset when the pattern is wrong. `where` names the field.
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
  bool compiled_ = false;  // to machine code
};

// The matches of a pattern in a text, left to right. A pattern that needs too long (a hostile one) ends in
// Error{unsupported}: the work per match and the time per byte of text are limited.
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
