#include "server/openai/responses_items.h"

#include <fmt/format.h>

namespace inferno::server {

void OutputItems::add_reasoning(const std::string& text) {
  if (kind_ != Kind::reasoning) open(Kind::reasoning);
  text_ += text;
  if (!emit_) return;
  Json delta = event("response.reasoning_text.delta");
  delta["content_index"] = 0;
  delta["delta"] = text;
  emit_(std::move(delta));
}

void OutputItems::add_text(const std::string& text, const Json& logprobs) {
  if (kind_ != Kind::message) open(Kind::message);
  text_ += text;
  for (const Json& token : logprobs) logprobs_.push_back(token);
  if (!emit_) return;
  Json delta = event("response.output_text.delta");
  delta["content_index"] = 0;
  delta["delta"] = text;
  delta["logprobs"] = logprobs;
  emit_(std::move(delta));
}

void OutputItems::add_call(const ToolCallDelta& delta) {
  if (kind_ != Kind::call || call_ != delta.index) {
    close("completed");
    call_ = delta.index;
    call_id_ = delta.id;
    name_ = delta.name;
    open(Kind::call);
  }
  text_ += delta.arguments;
  if (!emit_ || delta.arguments.empty()) return;
  Json arguments = event("response.function_call_arguments.delta");
  arguments["delta"] = delta.arguments;
  emit_(std::move(arguments));
}

void OutputItems::finish(bool was_cut) {
  close(was_cut ? "incomplete" : "completed");
}

Json OutputItems::items() const {
  Json items = closed_;
  if (kind_ != Kind::none) items.push_back(item("incomplete"));
  return items;
}

void OutputItems::open(Kind kind) {
  close("completed");
  kind_ = kind;
  const char* prefix = kind == Kind::reasoning ? "rs" : kind == Kind::message ? "msg" : "fc";
  id_ = fmt::format("{}_{}{:02x}", prefix, suffix_, closed_.size());
  if (!emit_) return;
  emit_item("response.output_item.added", "in_progress");
  if (kind != Kind::call) emit_part("response.content_part.added", content_part());
}

void OutputItems::close(std::string status) {
  if (kind_ == Kind::none) return;
  // A model may end a call in the middle of its arguments.
  if (kind_ == Kind::call && !parse_json_if_valid(text_)) status = "incomplete";
  if (emit_) {
    const char* type = kind_ == Kind::reasoning ? "response.reasoning_text.done"
                       : kind_ == Kind::message ? "response.output_text.done"
                                                : "response.function_call_arguments.done";
    Json done = event(type);
    if (kind_ == Kind::call) {
      done["name"] = name_;
      done["arguments"] = text_;
    } else {
      done["content_index"] = 0;
      done["text"] = text_;
    }
    if (kind_ == Kind::message) done["logprobs"] = logprobs_;
    emit_(std::move(done));
    if (kind_ != Kind::call) emit_part("response.content_part.done", content_part());
    emit_item("response.output_item.done", status);
  }
  closed_.push_back(item(status));
  kind_ = Kind::none;
  text_.clear();
  logprobs_.clear();
}

Json OutputItems::item(const std::string& status) const {
  if (kind_ == Kind::call) {
    return {{"id", id_},          {"type", "function_call"}, {"status", status},
            {"arguments", text_}, {"call_id", call_id_},     {"name", name_}};
  }
  // A new item has no parts yet: clients add them when they are announced.
  Json content = Json::array();
  if (!text_.empty() || status != "in_progress") content.push_back(content_part());
  if (kind_ == Kind::reasoning) {
    return {{"id", id_},
            {"type", "reasoning"},
            {"summary", Json::array()},
            {"content", std::move(content)},
            {"status", status}};
  }
  return {{"id", id_},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

Json OutputItems::content_part() const {
  if (kind_ == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"}, {"text", text_}, {"annotations", Json::array()}, {"logprobs", logprobs_}};
}

Json OutputItems::event(const char* type) const {
  return {{"type", type}, {"item_id", id_}, {"output_index", closed_.size()}};
}

void OutputItems::emit_part(const char* type, const Json& part) {
  Json added = event(type);
  added["content_index"] = 0;
  added["part"] = part;
  emit_(std::move(added));
}

void OutputItems::emit_item(const char* type, const std::string& status) {
  emit_({{"type", type}, {"output_index", closed_.size()}, {"item", item(status)}});
}

}  // namespace inferno::server
