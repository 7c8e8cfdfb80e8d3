#include "service/request_fields.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "chat/constraint/read_constraint.h"

namespace inferno {
namespace {

[[noreturn]] void refuse(const std::string& key, std::string_view expected, const Json& value) {
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected {}, found {}", key, expected, value.type_name()));
}

[[noreturn]] void refuse_name(const std::string& name) {
  fail(ErrorKind::invalid_request, fmt::format("\"{}\" is not a field of a request", name));
}

std::string text_of(const std::string& key, const Json& value) {
  if (!value.is_string()) refuse(key, "a text", value);
  return value.get<std::string>();
}

bool flag_of(const std::string& key, const Json& value) {
  if (!value.is_boolean()) refuse(key, "true or false", value);
  return value.get<bool>();
}

// The fields that are not part of a TextRequest as they are.
struct OtherFields {
  std::optional<std::string> prompt;
  std::string system;
  bool chat = false;
  Json constraint = Json::object();  // the fields of read_constraint()
};

std::vector<TokenId> tokens_of(const std::string& key, const Json& value) {
  std::vector<TokenId> tokens;
  for (const Json& token : value) {
    if (!token.is_number_integer()) refuse(key, "a text or an array of token ids", token);
    const auto id = token.get<std::int64_t>();
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
      fail(ErrorKind::invalid_request, fmt::format("{}: {} is not a token id", key, id));
    }
    tokens.push_back(static_cast<TokenId>(id));
  }
  return tokens;
}

// False if the key is unknown.
bool take_key(OtherFields& fields, TextRequest& request, const std::string& key, const Json& value) {
  if (key == "prompt") {
    if (value.is_array()) {
      request.prompt_tokens = tokens_of(key, value);
    } else {
      fields.prompt = text_of(key, value);
    }
  } else if (key == "system") {
    fields.system = text_of(key, value);
    fields.chat = true;
  } else if (key == "chat") {
    fields.chat = flag_of(key, value);
  } else if (key == "messages") {
    if (!value.is_array() || value.empty()) refuse(key, "an array of messages", value);
    request.messages = value;
  } else if (is_constraint_field(key)) {
    fields.constraint[key] = value;
  } else if (key == "reasoning_effort") {
    request.reasoning_effort = text_of(key, value);
    const std::string problem = effort_problem(request.reasoning_effort);
    if (!problem.empty()) fail(ErrorKind::invalid_request, problem);
  } else if (key == "think") {
    request.think = flag_of(key, value);
  } else if (key == "parse_special") {
    request.parse_special = flag_of(key, value);
  } else if (key == "cache_prompt") {
    request.reuse_prefix = flag_of(key, value);
  } else if (key == "cache_salt") {
    request.cache_scope = text_of(key, value);
  } else if (key == "chat_template_kwargs") {
    if (!value.is_object()) refuse(key, "an object", value);
    request.template_variables = value;
  } else if (key == "continue_final_message") {
    request.continue_final_message = flag_of(key, value);
    if (request.continue_final_message) request.add_generation_prompt = false;
  } else {
    return set_sampling(request.settings, key, value);
  }
  return true;
}

}  // namespace

void check_request_field(const std::string& name, const Json& value) {
  TextRequest request;
  OtherFields fields;
  if (!take_key(fields, request, name, value)) refuse_name(name);
  if (fields.constraint.empty()) return;
  // What a choice of tools means depends on the tools.
  if (name != "tool_choice") read_constraint(fields.constraint);
}

TextRequest read_request(const Json& object, const RequestDefaults& defaults) {
  TextRequest request = defaults.request;
  OtherFields fields = {.prompt = {}, .system = defaults.system, .chat = defaults.chat};
  for (const auto& [key, value] : object.items()) {
    if (!take_key(fields, request, key, value)) refuse_name(key);
  }
  take_constraint(request, merged_constraint_fields(defaults.constraint, fields.constraint));
  const bool has_messages = !request.messages.is_null();
  if ((fields.prompt || request.prompt_tokens) == has_messages) {
    fail(ErrorKind::invalid_request, "expected either \"prompt\" or \"messages\"");
  }
  // Fields that another one leaves without effect.
  const auto exclude = [&](const char* field, const char* other) {
    if (object.contains(field) && !object.at(field).is_null()) {
      fail(ErrorKind::invalid_request, fmt::format("{}: has no effect beside {}", field, other));
    }
  };
  if (has_messages) {
    exclude("system", "\"messages\", which may begin with a system message");
    if (object.contains("chat") && !fields.chat)
      exclude("chat", "\"messages\", which are always a conversation");
  } else {
    exclude("continue_final_message", "\"prompt\"");
    if (request.prompt_tokens) {
      exclude("system", "a prompt of tokens");
      exclude("chat", "a prompt of tokens");
    }
  }
  if (fields.prompt && fields.chat) {
    request.messages = first_messages(fields.system, *fields.prompt);
  } else if (fields.prompt) {
    request.prompt = fields.prompt;
  }
  return request;
}

}  // namespace inferno
