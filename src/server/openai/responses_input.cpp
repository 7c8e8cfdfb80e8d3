#include "server/openai/responses_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/conversation.h"
#include "server/fields/fields.h"

namespace inferno::server {
namespace {

// What tools that run at OpenAI leave in a conversation. An agent that goes on with it here sends them back.
constexpr std::string_view hosted_items[] = {"web_search_call",
                                             "file_search_call",
                                             "code_interpreter_call",
                                             "image_generation_call",
                                             "mcp_list_tools",
                                             "mcp_call",
                                             "tool_search_call",
                                             "tool_search_output",
                                             "mcp_approval_request",
                                             "mcp_approval_response",
                                             "local_shell_call",
                                             "local_shell_call_output",
                                             "shell_call",
                                             "shell_call_output",
                                             "apply_patch_call",
                                             "apply_patch_call_output",
                                             "computer_call",
                                             "computer_call_output"};

constexpr std::string_view no_images =
    "the model reads text only: send the text without images, sound or files";

std::string required_string(const Json& object, const char* name, const std::string& where) {
  const std::string field = where + "." + name;
  const Json* value = find_member(object, name);
  if (value == nullptr) throw invalid(fmt::format("{}: missing", field), field);
  if (!value->is_string()) refuse_value(field, "a string", *value);
  return value->get<std::string>();
}

std::string type_of(const Json& object, const std::string& where) {
  if (!object.is_object()) refuse_value(where, "an object", object);
  const Json* type = find_member(object, "type");
  if (type == nullptr) return {};
  if (!type->is_string()) refuse_value(where + ".type", "a string", *type);
  return type->get<std::string>();
}

std::string text_of_part(const Json& part, const std::string& where) {
  const std::string type = type_of(part, where);
  if (type == "refusal") return required_string(part, "refusal", where);
  for (const std::string_view known :
       {"input_text", "output_text", "text", "reasoning_text", "summary_text"}) {
    if (type == known) return required_string(part, "text", where);
  }
  throw invalid(fmt::format("{}.type: expected input_text or output_text, found {}: {}", where,
                            type.empty() ? "nothing" : dumped(type), no_images),
                where + ".type");
}

// The texts of a string or of an array of parts.
std::vector<std::string> texts_of(const Json& content, const std::string& where) {
  if (content.is_string()) return {content.get<std::string>()};
  if (!content.is_array()) refuse_value(where, "a string or an array of parts", content);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < content.size(); ++i) {
    texts.push_back(text_of_part(content[i], fmt::format("{}[{}]", where, i)));
  }
  return texts;
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  return fmt::format("{}", fmt::join(texts, separator));
}

// As the chat API has it: several parts stay parts, because how they are joined depends on the model.
Json chat_content(const std::vector<std::string>& texts) {
  if (texts.size() < 2) return joined(texts, "");
  Json parts = Json::array();
  for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

void append(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += "\n\n";
  text += more;
}

// What the assistant wrote between two messages of others.
class AssistantTurn {
 public:
  void add_reasoning(std::string_view text, const std::string& where) {
    Step& step = step_unless([](const Step& last) { return last.has_content || !last.calls.empty(); });
    append(step.reasoning, text);
    step.where = where;
  }

  void add_content(std::string_view text) {
    Step& step = step_unless([](const Step& last) { return last.has_content; });
    step.content = text;
    step.has_content = true;
  }

  void add_call(Json call) {
    step_unless([](const Step&) { return false; }).calls.push_back(std::move(call));
  }

  // Adds the turn to `messages`. A turn with calls is one message, because the results that follow belong to
  // all of its calls; without calls, each text is a message of its own.
  void end(Json& messages, Call& call) {
    const bool has_calls = std::ranges::any_of(steps_, [](const Step& step) { return !step.calls.empty(); });
    if (has_calls) fold();
    for (Step& step : steps_) {
      if (!step.has_content && step.calls.empty()) {
        call.ignore(step.where);
        call.warn(fmt::format("{}: reasoning without an answer was left out", step.where));
        continue;
      }
      Json message = {{"role", "assistant"}, {"content", std::move(step.content)}};
      if (!step.reasoning.empty()) message["reasoning_content"] = std::move(step.reasoning);
      if (!step.calls.empty()) message["tool_calls"] = std::move(step.calls);
      messages.push_back(std::move(message));
    }
    steps_.clear();
  }

 private:
  // Reasoning and what it led to.
  struct Step {
    std::string where;  // the last reasoning item
    std::string reasoning, content;
    bool has_content = false;
    Json calls = Json::array();
  };

  template <class IsComplete>
  Step& step_unless(const IsComplete& is_complete) {
    if (steps_.empty() || is_complete(steps_.back())) steps_.emplace_back();
    return steps_.back();
  }

  void fold() {
    Step whole;
    for (Step& step : steps_) {
      append(whole.reasoning, step.reasoning);
      append(whole.content, step.content);
      for (Json& call : step.calls) whole.calls.push_back(std::move(call));
    }
    steps_.clear();
    steps_.push_back(std::move(whole));
  }

  std::vector<Step> steps_;
};

class InputReader {
 public:
  InputReader(std::string instructions, Call& call) : call_(call), instructions_(std::move(instructions)) {}

  ResponsesInput read(const Json& input) {
    if (input.is_string()) {
      add_speech("user", {input.get<std::string>()});
    } else {
      if (!input.is_array() || input.empty()) refuse_value("input", "a string or a list of items", input);
      for (std::size_t i = 0; i < input.size(); ++i) add(input[i], fmt::format("input[{}]", i));
    }
    end_instructions();
    turn_.end(result_.messages, call_);
    if (result_.messages.empty()) throw invalid("input: expected at least one message", "input");
    return std::move(result_);
  }

 private:
  void add(const Json& item, const std::string& where) {
    const std::string type = type_of(item, where);
    if (type == "message" || (type.empty() && item.contains("role"))) {
      add_message(item, where);
    } else if (type == "reasoning") {
      add_reasoning(item, where);
    } else if (type == "function_call") {
      add_call(item, required_string(item, "arguments", where), where);
    } else if (type == "custom_tool_call") {
      // Its input is free text, which a function call has as an argument.
      add_call(item, dumped({{"input", required_string(item, "input", where)}}), where);
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      add_output(item, where);
    } else if (type == "additional_tools") {
      const Json* tools = find_member(item, "tools");
      if (tools != nullptr) add_tools(result_.tools, *tools, where + ".tools", call_);
    } else if (std::ranges::find(hosted_items, type) != std::end(hosted_items)) {
      call_.ignore(fmt::format("{}.type={}", where, type));
      call_.warn(fmt::format("{}: an item of type {} has no text for the model and was left out", where,
                             dumped(type)));
    } else {
      refuse(type, item, where);
    }
  }

  [[noreturn]] static void refuse(const std::string& type, const Json& item, const std::string& where) {
    if (type == "item_reference" || (type.empty() && item.contains("id"))) {
      throw invalid(fmt::format("{}: an item reference needs stored items, and this server stores none: send "
                                "the item itself (clients do so with \"store\": false)",
                                where),
                    where);
    }
    throw invalid(fmt::format("{}.type: expected message, reasoning, function_call or function_call_output, "
                              "found {}",
                              where, type.empty() ? "nothing" : dumped(type)),
                  where + ".type");
  }

  void add_message(const Json& item, const std::string& where) {
    const std::string role = required_string(item, "role", where);
    const Json* content = find_member(item, "content");
    if (content == nullptr) throw invalid(fmt::format("{}.content: missing", where), where + ".content");
    const std::vector<std::string> texts = texts_of(*content, where + ".content");
    if (role == "assistant") {
      end_instructions();
      turn_.add_content(joined(texts, ""));
    } else if (role == "user" || role == "system" || role == "developer") {
      add_speech(role, texts);
    } else {
      refuse_value(where + ".role", "user, assistant, system or developer", role);
    }
  }

  void add_speech(const std::string& role, const std::vector<std::string>& texts) {
    const bool is_first = result_.messages.empty() && !has_begun_;
    if (is_first && role != "user") {
      // Many templates take one system message only, and the first message must be it.
      first_role_ = instructions_.empty() ? role : "system";
      append(instructions_, joined(texts, "\n"));
      return;
    }
    end_instructions();
    turn_.end(result_.messages, call_);
    result_.messages.push_back({{"role", role}, {"content", chat_content(texts)}});
  }

  // The instructions and the system messages right after them are the first message.
  void end_instructions() {
    if (!std::exchange(has_begun_, true) && !instructions_.empty()) {
      result_.messages.push_back({{"role", first_role_}, {"content", std::move(instructions_)}});
    }
  }

  void add_reasoning(const Json& item, const std::string& where) {
    end_instructions();
    std::string text;
    if (const Json* content = find_member(item, "content")) {
      text = joined(texts_of(*content, where + ".content"), "");
    }
    const Json* summary = find_member(item, "summary");
    if (text.empty() && summary != nullptr) text = joined(texts_of(*summary, where + ".summary"), "\n\n");
    if (text.empty() && find_member(item, "encrypted_content") != nullptr) {
      call_.ignore(where + ".encrypted_content");
      call_.warn(fmt::format("{}: reasoning that another server encrypted was left out", where));
    }
    if (!text.empty()) turn_.add_reasoning(text, where);
  }

  void add_call(const Json& item, std::string arguments, const std::string& where) {
    end_instructions();
    const std::string id = required_string(item, "call_id", where);
    Json function = {{"name", required_string(item, "name", where)}, {"arguments", std::move(arguments)}};
    called_.insert(id);
    turn_.add_call({{"id", id}, {"type", "function"}, {"function", std::move(function)}});
  }

  void add_output(const Json& item, const std::string& where) {
    const std::string id = required_string(item, "call_id", where);
    if (!called_.contains(id)) {
      throw invalid(fmt::format("{}.call_id: no function call before it has the call_id {}: send the "
                                "function_call item too",
                                where, dumped(id)),
                    where + ".call_id");
    }
    const Json* output = find_member(item, "output");
    if (output == nullptr) throw invalid(fmt::format("{}.output: missing", where), where + ".output");
    turn_.end(result_.messages, call_);
    result_.messages.push_back({{"role", "tool"},
                                {"tool_call_id", id},
                                {"content", chat_content(texts_of(*output, where + ".output"))}});
  }

  Call& call_;
  std::string instructions_, first_role_ = "system";
  bool has_begun_ = false;  // instructions are complete
  AssistantTurn turn_;
  std::set<std::string> called_;  // call_id
  ResponsesInput result_;
};

}  // namespace

void add_tools(OfferedTools& tools, const Json& array, const std::string& where, Call& call) {
  if (!array.is_array()) refuse_value(where, "an array of tools", array);
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string field = fmt::format("{}[{}]", where, i);
    const std::string type = type_of(array[i], field);
    if (type.empty()) throw invalid(fmt::format("{}.type: missing", field), field + ".type");
    if (type != "function") {
      call.ignore(fmt::format("{}.type={}", field, type));
      call.warn(
          fmt::format("{}: a tool of type {} cannot be called here and was left out", field, dumped(type)));
      continue;
    }
    Json rendered = function_tool(array[i], field, call);
    const Json& function = rendered.at("function");
    const bool is_repeated = std::ranges::any_of(
        tools.shown, [&](const Json& earlier) { return earlier.at("name") == function.at("name"); });
    if (is_repeated) {
      throw invalid(
          fmt::format("{}.name: {} is the name of an earlier tool", field, dumped(function.at("name"))),
          field + ".name");
    }
    Json shown = {{"type", "function"}, {"name", function.at("name")}};
    if (function.contains("description")) shown["description"] = function.at("description");
    shown["parameters"] = function.contains("parameters") ? function.at("parameters") : Json(nullptr);
    tools.sources.push_back(tool_source(array[i], field, "parameters"));
    shown["strict"] = tools.sources.back().strict;
    tools.rendered.push_back(std::move(rendered));
    tools.shown.push_back(std::move(shown));
  }
}

ResponsesInput read_input(const Json& input, const std::string& instructions, Call& call) {
  return InputReader(instructions, call).read(input);
}

}  // namespace inferno::server
