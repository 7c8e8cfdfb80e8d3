// The conversation of a request: system prompt and messages.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/utf8.h"
#include "chat/conversation.h"
#include "server/anthropic/messages_input.h"

namespace inferno::server {
namespace {

constexpr std::string_view id_prefix = "toolu_";

[[noreturn]] void expected(std::string_view what, const Json& found, const std::string& where) {
  throw invalid(fmt::format("{}: expected {}, found {}", where, what, found.type_name()), where);
}

const Json& member(const Json& object, const char* name, const std::string& where) {
  const Json* found = find_member(object, name);
  if (found == nullptr) throw invalid(fmt::format("{}.{}: field required", where, name), where + "." + name);
  return *found;
}

const std::string& text_in(const Json& object, const char* name, const std::string& where) {
  const Json& found = member(object, name, where);
  if (!found.is_string()) expected("a string", found, where + "." + name);
  return found.get_ref<const std::string&>();
}

const std::string& type_of(const Json& block, const std::string& where) {
  if (!block.is_object()) expected("an object", block, where);
  return text_in(block, "type", where);
}

// What tools that run at Anthropic leave in a conversation. An agent that goes on with it here sends it back.
bool is_hosted(std::string_view type) {
  constexpr std::string_view types[] = {"server_tool_use",
                                        "web_search_tool_result",
                                        "web_fetch_tool_result",
                                        "code_execution_tool_result",
                                        "bash_code_execution_tool_result",
                                        "text_editor_code_execution_tool_result",
                                        "tool_search_tool_result",
                                        "mcp_tool_use",
                                        "mcp_tool_result",
                                        "container_upload"};
  return std::ranges::find(types, type) != std::end(types);
}

[[noreturn]] void unsupported_block(const std::string& type, const std::string& where) {
  throw invalid(fmt::format("{}: a block of type {} is not supported: the model reads text only (send the "
                            "content as a block of type \"text\")",
                            where, quote(type)),
                where);
}

// Ids of calls are ours with Anthropic's prefix. Without it they are what the model's template may print.
std::string call_id(const std::string& id) {
  return id.starts_with(id_prefix) && id.size() > id_prefix.size() ? id.substr(id_prefix.size()) : id;
}

// Claude Code sends a line that changes with every request at the start of the system prompt. It is addressed
// to Anthropic's billing; in the prompt it would keep every prefix from being found in the cache.
std::size_t billing_line(std::string_view text) {
  if (!text.starts_with("x-anthropic-billing-header:")) return 0;
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? text.size() : end + 1;
}

void join(std::string& text, std::string_view more, std::string_view separator) {
  if (!text.empty() && !more.empty()) text += separator;
  text += more;
}

// Chat formats have no mark for a failed call, so that the text must say it.
std::string as_error(const std::string& text) {
  const std::string start = lower_case(text.substr(0, 32));
  if (start.starts_with("error") || start.starts_with("<tool_use_error>")) return text;
  return text.empty() ? "Error" : "Error: " + text;
}

// A string, or the texts of blocks, one below the other.
std::string plain_text(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) expected("a string or an array of blocks", content, where);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    const std::string& type = type_of(content[i], at);
    if (type == "tool_reference") {
      join(text, text_in(content[i], "tool_name", at), "\n");
    } else if (type == "text") {
      join(text, text_in(content[i], "text", at), "\n");
    } else {
      unsupported_block(type, at);
    }
  }
  return text;
}

Json empty_message(const char* role) {
  return {{"role", role}, {"content", ""}};
}

class Reader {
 public:
  void add_system(const Json& system);
  void add_messages(const Json& messages);
  MessagesConversation take();

 private:
  void add_message(const Json& message, const std::string& where);
  void add_user_block(const Json& block, const std::string& where);
  void add_assistant_block(const Json& block, const std::string& where);
  void add_thinking(const Json& block, const std::string& where);
  void add_call(const Json& block, const std::string& where);
  void add_result(const Json& block, const std::string& where);
  void ignore(std::string what) { result_.ignored.push_back(std::move(what)); }
  // The last message if it has this role, else a new one.
  Json& last(const char* role);
  void add_text(const char* role, std::string_view text, std::string_view separator);

  MessagesConversation result_;
  std::set<std::string> calls_;  // ids
};

void Reader::add_system(const Json& system) {
  std::string text;
  if (!system.is_array()) {
    text = plain_text(system, "system");
    const std::size_t skipped = billing_line(text);
    if (skipped > 0) ignore("system.x-anthropic-billing-header");
    text.erase(0, skipped);
  } else {
    for (std::size_t i = 0; i < system.size(); ++i) {
      const std::string where = fmt::format("system[{}]", i);
      if (type_of(system[i], where) != "text") unsupported_block(type_of(system[i], where), where);
      std::string_view block = text_in(system[i], "text", where);
      const std::size_t skipped = billing_line(block);
      if (skipped > 0) ignore("system.x-anthropic-billing-header");
      join(text, block.substr(skipped), "\n");
    }
  }
  if (!text.empty()) result_.messages.push_back({{"role", "system"}, {"content", text}});
}

void Reader::add_messages(const Json& messages) {
  if (!messages.is_array()) expected("an array", messages, "messages");
  if (messages.empty()) throw invalid("messages: expected at least one message", "messages");
  for (std::size_t i = 0; i < messages.size(); ++i) add_message(messages[i], fmt::format("messages[{}]", i));
}

void Reader::add_message(const Json& message, const std::string& where) {
  if (!message.is_object()) expected("an object", message, where);
  const std::string& role = text_in(message, "role", where);
  const Json& content = member(message, "content", where);
  const std::string blocks = where + ".content";
  if (role == "system") return add_text("system", plain_text(content, blocks), "\n");
  if (role != "user" && role != "assistant") {
    throw invalid(fmt::format("{}.role: expected \"user\" or \"assistant\", found {}{}", where, quote(role),
                              role == "tool" ? " (a tool's result is a block of type \"tool_result\" in a "
                                               "message of the user)"
                                             : ""),
                  where + ".role");
  }
  const bool is_user = role == "user";
  if (content.is_string()) {
    return add_text(role.c_str(), content.get_ref<const std::string&>(), is_user ? "\n" : "");
  }
  if (!content.is_array()) expected("a string or an array of blocks", content, blocks);
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", blocks, i);
    is_user ? add_user_block(content[i], at) : add_assistant_block(content[i], at);
  }
}

void Reader::add_user_block(const Json& block, const std::string& where) {
  const std::string& type = type_of(block, where);
  if (type == "tool_result") return add_result(block, where);
  if (is_hosted(type)) return ignore(where + ".type=" + type);
  if (type != "text") unsupported_block(type, where);
  add_text("user", text_in(block, "text", where), "\n");
}

void Reader::add_assistant_block(const Json& block, const std::string& where) {
  const std::string& type = type_of(block, where);
  if (type == "text") return add_text("assistant", text_in(block, "text", where), "");
  if (type == "thinking") return add_thinking(block, where);
  if (type == "tool_use") return add_call(block, where);
  if (is_hosted(type)) return ignore(where + ".type=" + type);
  if (type != "redacted_thinking") unsupported_block(type, where);
  ignore("redacted_thinking");
}

void Reader::add_thinking(const Json& block, const std::string& where) {
  std::string thinking = text_in(block, "thinking", where);
  const Json* signature = find_member(block, "signature");
  if (thinking.empty() && signature != nullptr && signature->is_string()) {
    thinking = thinking_in(signature->get_ref<const std::string&>());
  }
  if (thinking.empty()) return;
  Json& message = last("assistant");
  std::string all = message.value("reasoning", "");
  join(all, thinking, "\n");
  message["reasoning"] = std::move(all);
}

void Reader::add_call(const Json& block, const std::string& where) {
  const std::string& id = text_in(block, "id", where);
  const std::string& name = text_in(block, "name", where);
  const Json& input = member(block, "input", where);
  if (!input.is_object()) expected("an object", input, where + ".input");
  calls_.insert(id);
  Json& message = last("assistant");
  message["tool_calls"].push_back({{"id", call_id(id)},
                                   {"type", "function"},
                                   {"function", {{"name", name}, {"arguments", dumped(input)}}}});
}

void Reader::add_result(const Json& block, const std::string& where) {
  const std::string& id = text_in(block, "tool_use_id", where);
  if (!calls_.contains(id)) {
    throw invalid(
        fmt::format("{}.tool_use_id: no earlier block of type \"tool_use\" has the id {}", where, quote(id)),
        where + ".tool_use_id");
  }
  const Json* content = find_member(block, "content");
  std::string text = content == nullptr ? "" : plain_text(*content, where + ".content");
  const Json* is_error = find_member(block, "is_error");
  if (is_error != nullptr && !is_error->is_boolean())
    expected("true or false", *is_error, where + ".is_error");
  if (is_error != nullptr && is_error->get<bool>()) text = as_error(text);
  result_.messages.push_back({{"role", "tool"}, {"tool_call_id", call_id(id)}, {"content", text}});
}

Json& Reader::last(const char* role) {
  Json& messages = result_.messages;
  if (messages.empty() || messages.back().at("role") != role) {
    messages.push_back(empty_message(role));
  }
  return messages.back();
}

void Reader::add_text(const char* role, std::string_view text, std::string_view separator) {
  Json& message = last(role);
  join(message["content"].get_ref<std::string&>(), text, separator);
}

MessagesConversation Reader::take() {
  Json& messages = result_.messages;
  const auto ends_with = [&](const char* role) {
    return !messages.empty() && messages.back().at("role") == role;
  };
  // An answer can be empty, and agents return it.
  if (ends_with("assistant") && messages.back() == empty_message("assistant"))
    messages.erase(messages.size() - 1);
  if (std::ranges::all_of(messages, [](const Json& one) { return one.at("role") == "system"; })) {
    throw invalid("messages: expected a message of the user with content", "messages");
  }
  result_.ends_with_assistant = ends_with("assistant");
  if (result_.ends_with_assistant && messages.back().contains("tool_calls")) {
    throw invalid(
        "messages: the last message calls a tool; expected a message of the user with the block of type "
        "\"tool_result\" after it",
        "messages");
  }
  return std::move(result_);
}

}  // namespace

bool inline_instructions(Json& messages) {
  Json result = Json::array();
  bool has_changed = false;
  for (Json& message : messages) {
    const bool is_first = result.empty();
    if (message.at("role") == "system" && !is_first) {
      message = {{"role", "user"},
                 {"content", fmt::format("<system-reminder>\n{}\n</system-reminder>",
                                         message.at("content").get_ref<const std::string&>())}};
      has_changed = true;
    }
    if (!is_first && message.at("role") == "user" && result.back().at("role") == "user") {
      join(result.back()["content"].get_ref<std::string&>(),
           message.at("content").get_ref<const std::string&>(), "\n");
    } else {
      result.push_back(std::move(message));
    }
  }
  messages = std::move(result);
  return has_changed;
}

MessagesConversation read_conversation(const Json* system, const Json& messages) {
  Reader reader;
  if (system != nullptr) reader.add_system(*system);
  reader.add_messages(messages);
  return reader.take();
}

}  // namespace inferno::server
