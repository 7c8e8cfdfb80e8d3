#include "cli/batch_file.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"

namespace inferno {
namespace {

[[noreturn]] void refuse(const std::string& key, std::string_view expected, const Json& value) {
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected {}, found {}", key, expected, value.type_name()));
}

std::string text_of(const std::string& key, const Json& value) {
  if (!value.is_string()) refuse(key, "a text", value);
  return value.get<std::string>();
}

bool flag_of(const std::string& key, const Json& value) {
  if (!value.is_boolean()) refuse(key, "true or false", value);
  return value.get<bool>();
}

// What a line holds beside sampling settings.
struct LineFields {
  std::optional<std::string> prompt;
  std::string system;
  bool chat = false;
};

// False when there is no such key.
bool take_key(LineFields& fields, TextRequest& request, const std::string& key, const Json& value) {
  if (key == "id" || key == "custom_id") return true;
  if (key == "prompt") {
    fields.prompt = text_of(key, value);
  } else if (key == "system") {
    fields.system = text_of(key, value);
    fields.chat = true;
  } else if (key == "chat") {
    fields.chat = flag_of(key, value);
  } else if (key == "messages") {
    if (!value.is_array() || value.empty()) refuse(key, "an array of messages", value);
    request.messages = value;
  } else if (key == "tools") {
    if (!value.is_array()) refuse(key, "an array", value);
    request.tools = value;
  } else if (key == "reasoning_effort") {
    request.reasoning_effort = text_of(key, value);
    const std::string problem = effort_problem(request.reasoning_effort);
    if (!problem.empty()) fail(ErrorKind::invalid_request, problem);
  } else if (key == "think") {
    request.think = flag_of(key, value);
  } else if (key == "parse_special") {
    request.parse_special = flag_of(key, value);
  } else {
    return set_sampling(request.settings, key, value);
  }
  return true;
}

TextRequest request_of(const Json& line, const BatchDefaults& defaults) {
  TextRequest request = defaults.request;
  LineFields fields = {.prompt = {}, .system = defaults.system, .chat = defaults.chat};
  for (const auto& [key, value] : line.items()) {
    if (!take_key(fields, request, key, value)) {
      fail(ErrorKind::invalid_request, fmt::format("\"{}\" is not a key of a batch line", key));
    }
  }
  const bool has_messages = !request.messages.is_null();
  if (fields.prompt.has_value() == has_messages) {
    fail(ErrorKind::invalid_request, "expected either \"prompt\" or \"messages\"");
  }
  if (!has_messages && fields.chat) {
    request.messages = first_messages(fields.system, *fields.prompt);
  } else if (!has_messages) {
    request.prompt = fields.prompt;
  }
  return request;
}

void parse_line(BatchLine& line, std::string_view text, const BatchDefaults& defaults) {
  try {
    const Json object = parse_json(text, fmt::format("line {}", line.number));
    if (!object.is_object()) fail(ErrorKind::invalid_request, "expected a JSON object");
    for (const char* key : {"id", "custom_id"}) {
      if (object.contains(key)) line.id = object.at(key);
    }
    line.request = request_of(object, defaults);
  } catch (const Error& error) {
    line.error = error.what();
    if (!line.error.starts_with("line ")) line.error = fmt::format("line {}: {}", line.number, line.error);
  }
}

}  // namespace

std::vector<BatchLine> parse_batch(std::string_view text, const BatchDefaults& defaults) {
  std::vector<BatchLine> lines;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    BatchLine& added = lines.emplace_back();
    added.number = number;
    parse_line(added, line, defaults);
  }
  return lines;
}

}  // namespace inferno
