// One tool call as JSON, byte by byte: {"name": "f", "arguments": {…}} in any order, with "parameters" for
// "arguments" and a "function" around both accepted. Brackets and quotes are followed, nothing more: what
// stands between them is passed on as it is, so that the pieces of the arguments are exactly the model's
// text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno {

class CallScanner {
 public:
  enum class Status { more, done, broken };  // broken: the byte was not taken

  enum class Keys { any, known };  // known: a key that no call has makes it broken
  explicit CallScanner(Keys keys = Keys::any) : keys_(keys) {}
  // The arguments alone, of a function whose name stood before them.
  static CallScanner of_arguments(std::string name);

  Status take(char byte);

  const std::optional<std::string>& name() const { return name_; }
  bool has_arguments() const { return has_arguments_; }
  // What came of the arguments since the last call.
  std::string take_arguments();

 private:
  enum class State { begin, key_or_end, key, colon, value_begin, value, behind_value };
  enum class Role { name, arguments, other };
  // A value while it comes in.
  struct Value {
    std::string open;  // the brackets that wait for their partners
    bool in_string = false, escaped = false, is_scalar = false;
  };
  enum class Step { inside, last, past, broken };  // past: the byte ended the value and is no part of it

  Status begin_value(char byte);
  Status take_value(char byte);
  Status finish_value();
  Status behind_value(char byte);
  Step step(char byte);
  void keep(char byte);

  Keys keys_;
  State state_ = State::begin;
  std::string key_;
  bool key_escaped_ = false;
  Role role_ = Role::other;
  Value value_;
  bool only_arguments_ = false;
  int nested_ = 0;    // inside "function"
  std::string text_;  // of a value that is decoded when it is complete
  bool decodes_ = false;
  std::optional<std::string> name_;
  bool has_arguments_ = false;
  std::string arguments_;
};

}  // namespace inferno
