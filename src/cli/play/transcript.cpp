#include "cli/play/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"

namespace inferno::play {
namespace {

std::string text_at(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key) || object.at(key).is_null()) return {};
  if (!object.at(key).is_string()) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}.{}: expected a string, found {}", where, key, object.at(key).type_name()));
  }
  return object.at(key).get<std::string>();
}

[[noreturn]] void refuse_order(const std::string& where, const std::string& role) {
  fail(ErrorKind::invalid_request, fmt::format("{}: unexpected role \"{}\"", where, role),
       {.why = "play supports a system prompt followed by alternating user and assistant messages",
        .next = "use generate --batch for tool results and other roles"});
}

Json assistant_message(const Turn& turn) {
  Json message = {{"role", "assistant"}, {"content", turn.answer}};
  if (!turn.reasoning.empty()) message["reasoning_content"] = turn.reasoning;
  if (!turn.tool_calls.empty()) message["tool_calls"] = turn.tool_calls;
  return message;
}

void take_message(Transcript& transcript, std::vector<Turn>& turns, const Json& message,
                  const std::string& where) {
  const std::string role = text_at(message, "role", where);
  const bool is_open = !turns.empty() && turns.back().finish_reason.empty();
  if ((role == "system" || role == "developer") && turns.empty() && transcript.system().empty()) {
    transcript.set_system(text_at(message, "content", where));
  } else if (role == "user" && !is_open) {
    turns.push_back({.question = text_at(message, "content", where)});
  } else if (role == "assistant" && is_open) {
    Turn& turn = turns.back();
    turn.answer = text_at(message, "content", where);
    turn.reasoning = text_at(message, "reasoning_content", where);
    if (message.contains("tool_calls") && message.at("tool_calls").is_array()) {
      turn.tool_calls = message.at("tool_calls");
    }
    turn.finish_reason = text_at(message, "finish_reason", where);
    if (turn.finish_reason.empty()) turn.finish_reason = "stop";
  } else {
    refuse_order(where, role);
  }
}

}  // namespace

void Transcript::ask(std::string question) {
  turns_.push_back({.question = std::move(question)});
}

void Transcript::answer(Turn answered) {
  expects(!turns_.empty(), "an answer follows a question");
  answered.question = std::move(turns_.back().question);
  turns_.back() = std::move(answered);
}

std::optional<std::string> Transcript::undo() {
  if (turns_.empty()) return std::nullopt;
  std::string question = std::move(turns_.back().question);
  turns_.pop_back();
  dropped_ = std::min(dropped_, turns_.size());
  return question;
}

bool Transcript::drop_oldest() {
  if (dropped_ + 1 >= turns_.size()) return false;
  ++dropped_;
  return true;
}

Json Transcript::messages() const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const Turn& turn : std::span(turns_).subspan(dropped_)) {
    messages.push_back({{"role", "user"}, {"content", turn.question}});
    if (!turn.finish_reason.empty()) messages.push_back(assistant_message(turn));
  }
  return messages;
}

std::string Transcript::text() const {
  std::string text;
  for (const Turn& turn : std::span(turns_).subspan(dropped_)) {
    text += turn.question + turn.answer;
    if (turn.finish_reason == "stop") text.clear();
  }
  return text;
}

Json Transcript::saved(const std::string& model) const {
  Json messages = Json::array();
  for (const Turn& turn : turns_) {
    messages.push_back({{"role", "user"}, {"content", turn.question}});
    if (turn.finish_reason.empty()) continue;
    messages.push_back(assistant_message(turn));
    messages.back()["finish_reason"] = turn.finish_reason;
  }
  return {{"model", model}, {"system", system_}, {"messages", std::move(messages)}};
}

void Transcript::open(const Json& saved) {
  if (!saved.is_object() || !saved.contains("messages") || !saved.at("messages").is_array()) {
    fail(ErrorKind::invalid_request, "expected an object with a \"messages\" array");
  }
  Transcript opened;
  opened.system_ = text_at(saved, "system", "the conversation");
  std::vector<Turn> turns;
  std::size_t number = 0;
  for (const Json& message : saved.at("messages")) {
    take_message(opened, turns, message, fmt::format("messages[{}]", number++));
  }
  if (!turns.empty() && turns.back().finish_reason.empty()) {
    fail(ErrorKind::invalid_request, "the last message has no answer",
         {.why = {}, .next = "remove it from the file and ask again"});
  }
  opened.turns_ = std::move(turns);
  *this = std::move(opened);
}

}  // namespace inferno::play
