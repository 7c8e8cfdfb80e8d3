// The output of a response while it is generated: items of reasoning, text and function calls, and the events
// that tell a streaming client of every change.
#pragma once

#include <functional>
#include <string>

#include "chat/chat_format.h"
#include "chat/json.h"

namespace inferno::server {

// One item is open at a time. A part of another kind closes it, with all of its "done" events, before the
// next one is opened.
class OutputItems {
 public:
  // `emit` gets each event without its sequence number; empty: events are not sent. `suffix` is part of the
  // ids.
  using Emit = std::function<void(Json event)>;
  OutputItems(std::string suffix, Emit emit) : suffix_(std::move(suffix)), emit_(std::move(emit)) {}

  void add_reasoning(const std::string& text);
  // `logprobs`: an array, of the tokens of `text`.
  void add_text(const std::string& text, const Json& logprobs);
  void add_call(const ToolCallDelta& delta);
  // Closes the open item, which is incomplete if the answer was cut by a limit.
  void finish(bool was_cut);

  // The items so far; an open one is incomplete.
  Json items() const;

 private:
  enum class Kind { none, reasoning, message, call };

  void open(Kind kind);
  void close(std::string status);
  Json item(const std::string& status) const;
  Json content_part() const;
  Json event(const char* type) const;
  void emit_part(const char* type, const Json& part);
  void emit_item(const char* type, const std::string& status);

  std::string suffix_;
  Emit emit_;
  Json closed_ = Json::array();

  // The open item.
  Kind kind_ = Kind::none;
  std::string id_;
  std::string text_;  // or arguments
  Json logprobs_ = Json::array();
  int call_ = -1;  // index of the call in the answer
  std::string call_id_, name_;
};

}  // namespace inferno::server
