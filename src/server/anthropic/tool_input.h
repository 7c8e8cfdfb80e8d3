// The arguments of a tool call on their way into a tool_use block. A block's "input" is an object, and
// clients fail on a stream whose pieces are not JSON, while a model may write anything: only what is JSON is
// passed on, and the rest becomes text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "chat/json.h"

namespace inferno::server {

class ToolInput {
 public:
  // What can be sent of the next piece: everything returned so far is the beginning of a JSON object. Control
  // characters within strings, which JSON forbids and models write (line breaks above all), are escaped.
  std::string push(std::string_view piece);

  // The object; {} if the arguments are empty or no object.
  Json value() const;
  // The arguments that value() does not have: all of them if they are no object, or what follows the object.
  std::string rest() const;

 private:
  enum class State {
    begin,
    first_key,
    key,
    colon,
    first_value,
    value,
    after_value,
    in_string,
    escape,
    hex,
    number,
    word,
    done
  };

  bool take(char byte);  // false: the byte cannot follow
  bool take_structure(char byte);
  bool take_string(char byte);
  bool take_number(char byte);
  bool begin_value(char byte);
  bool begin_string(bool is_key);
  bool open(char bracket);
  bool close(char bracket);
  bool go(State state);
  std::optional<Json> object() const;  // nullopt if the arguments are no object

  State state_ = State::begin;
  std::string open_;        // brackets that are not closed yet
  std::string word_;        // the letters of true, false or null that are still expected
  char number_ = 0;         // the part of a number that was read last; see take_number()
  int hex_digits_ = 0;      // still expected
  bool is_key_ = false;     // the string is a key
  bool is_broken_ = false;  // a byte that cannot follow was found
  std::string written_;     // by the model
  std::string sent_;        // returned by push()
  std::size_t used_ = 0;    // bytes of written_ that were sent
};

}  // namespace inferno::server
