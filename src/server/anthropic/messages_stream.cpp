#include "server/anthropic/messages_stream.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "server/admission/digest.h"

namespace inferno::server {
namespace {

constexpr std::string_view digest_prefix = "inferno-1-";
constexpr std::string_view text_prefix = "inferno-2-";

std::string_view stop_reason(const Answer& answer) {
  if (answer.finish_reason == "tool_calls") return "tool_use";
  if (answer.finish_reason == "length") return "max_tokens";
  return answer.stopped_by.empty() ? "end_turn" : "stop_sequence";
}

// Anthropic counts the prompt in three parts. Nothing is ever charged for filling the cache.
Json prompt_usage(int prompt_tokens, int cached_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens}};
}

Json usage_of(const Answer& answer) {
  Json usage = prompt_usage(answer.finished.prompt_tokens, answer.finished.cached_tokens);
  usage["output_tokens"] = answer.tokens.size();
  usage["output_tokens_details"] = {{"thinking_tokens", answer.reasoning_tokens}};
  usage["server_tool_use"] = nullptr;
  return usage;
}

Json first_usage(int prompt_tokens) {
  Json usage = prompt_usage(prompt_tokens, 0);
  usage["cache_creation"] = {{"ephemeral_5m_input_tokens", 0}, {"ephemeral_1h_input_tokens", 0}};
  usage["output_tokens"] = 0;
  usage["output_tokens_details"] = nullptr;
  usage["inference_geo"] = nullptr;
  usage["server_tool_use"] = nullptr;
  usage["service_tier"] = "standard";
  usage["speed"] = nullptr;
  return usage;
}

void append(Json& text, const Json& piece) {
  text.get_ref<std::string&>() += piece.get_ref<const std::string&>();
}

}  // namespace

std::string thinking_signature(std::string_view thinking, ThinkingDisplay display) {
  if (display == ThinkingDisplay::omitted) return fmt::format("{}{}", text_prefix, base64(thinking));
  return fmt::format("{}{:016x}", digest_prefix, std::hash<std::string_view>()(thinking));
}

std::string thinking_in(std::string_view signature) {
  return signature.starts_with(text_prefix) ? from_base64(signature.substr(text_prefix.size())) : "";
}

std::vector<Json> MessageEvents::add(const std::vector<ReplyPart>& parts) {
  begin();
  for (const ReplyPart& part : parts) {
    std::visit(
        [&](const auto& one) {
          using Part = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Part, ContentDelta>) {
            add_text(one.text);
          } else if constexpr (std::is_same_v<Part, ReasoningDelta>) {
            add_thinking(one.text);
          } else if constexpr (std::is_same_v<Part, ToolCallDelta>) {
            add_call(one);
          }  // a ReplyWarning only describes content that is returned anyway
        },
        part);
  }
  return std::exchange(events_, {});
}

std::vector<Json> MessageEvents::finish(const Answer& answer) {
  begin();
  close_all();
  const Json sequence = answer.stopped_by.empty() ? Json(nullptr) : Json(answer.stopped_by);
  events_.push_back({{"type", "message_delta"},
                     {"delta",
                      {{"container", nullptr},
                       {"stop_details", nullptr},
                       {"stop_reason", stop_reason(answer)},
                       {"stop_sequence", sequence}}},
                     {"usage", usage_of(answer)}});
  events_.push_back({{"type", "message_stop"}});
  return std::exchange(events_, {});
}

void MessageEvents::begin() {
  if (std::exchange(has_begun_, true)) return;
  events_.push_back({{"type", "message_start"},
                     {"message",
                      {{"id", setup_.id},
                       {"type", "message"},
                       {"role", "assistant"},
                       {"model", setup_.model},
                       {"content", Json::array()},
                       {"container", nullptr},
                       {"diagnostics", nullptr},
                       {"stop_details", nullptr},
                       {"stop_reason", nullptr},
                       {"stop_sequence", nullptr},
                       {"usage", first_usage(setup_.prompt_tokens)}}}});
  events_.push_back({{"type", "ping"}});
}

void MessageEvents::open(Block block, Json content) {
  close_all();
  block_ = block;
  events_.push_back(
      {{"type", "content_block_start"}, {"index", ++index_}, {"content_block", std::move(content)}});
}

void MessageEvents::delta(Json delta) {
  events_.push_back({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
}

void MessageEvents::close() {
  const Block block = std::exchange(block_, Block::none);
  if (block == Block::none) return;
  if (block == Block::thinking) {
    delta({{"type", "signature_delta"}, {"signature", thinking_signature(thinking_, setup_.thinking)}});
    thinking_.clear();
  }
  events_.push_back({{"type", "content_block_stop"}, {"index", index_}});
  if (block == Block::tool_use) add_text(std::exchange(input_, {}).rest());
}

void MessageEvents::close_all() {
  while (block_ != Block::none) close();
}

void MessageEvents::add_text(const std::string& text) {
  if (text.empty()) return;
  if (block_ != Block::text) close();
  if (block_ != Block::text) {
    // Citations that are null are refused by some clients, and none at all by the types of others.
    open(Block::text, {{"type", "text"}, {"text", ""}, {"citations", Json::array()}});
  }
  delta({{"type", "text_delta"}, {"text", text}});
}

void MessageEvents::add_thinking(const std::string& text) {
  if (text.empty() || setup_.thinking == ThinkingDisplay::none) return;
  if (block_ != Block::thinking) {
    open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
  }
  thinking_ += text;
  if (setup_.thinking == ThinkingDisplay::shown) delta({{"type", "thinking_delta"}, {"thinking", text}});
}

void MessageEvents::add_call(const ToolCallDelta& call) {
  if (setup_.single_call && call.index > 0) return;
  if (call.index > call_) {
    call_ = call.index;
    open(Block::tool_use, {{"type", "tool_use"},
                           {"id", "toolu_" + call.id},
                           {"name", call.name},
                           {"input", Json::object()},
                           {"caller", {{"type", "direct"}}}});
  } else if (block_ != Block::tool_use || call.index < call_) {
    return add_text(call.arguments);  // a block that was closed cannot grow
  }
  const std::string piece = input_.push(call.arguments);
  if (!piece.empty()) delta({{"type", "input_json_delta"}, {"partial_json", piece}});
}

void MessageSum::add(const Json& event) {
  const std::string& type = event.at("type").get_ref<const std::string&>();
  if (type == "message_start") {
    message_ = event.at("message");
  } else if (type == "content_block_start") {
    message_["content"].push_back(event.at("content_block"));
    input_.clear();
  } else if (type == "content_block_delta") {
    const Json& delta = event.at("delta");
    Json& block = message_["content"].back();
    for (const char* name : {"text", "thinking", "signature"}) {
      if (delta.contains(name)) append(block[name], delta.at(name));
    }
    if (delta.contains("partial_json")) input_ += delta.at("partial_json").get_ref<const std::string&>();
  } else if (type == "content_block_stop" && !input_.empty()) {
    ToolInput input;
    input.push(input_);
    message_["content"].back()["input"] = input.value();
    input_.clear();
  } else if (type == "message_delta") {
    message_.update(event.at("delta"));
    message_["usage"].update(event.at("usage"));
  }
}

}  // namespace inferno::server
