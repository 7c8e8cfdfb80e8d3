#include "server/api_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/json.h"
#include "engine/request.h"

namespace inferno::server {
namespace {

// A field that is not set is null: clients require all four keys.
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_request:
    case ErrorKind::unsupported:
    case ErrorKind::corrupt: return 400;
    case ErrorKind::not_found: return 404;
    case ErrorKind::overloaded: return 429;
    case ErrorKind::device: return 503;
    case ErrorKind::io:
    case ErrorKind::network:
    case ErrorKind::internal: break;
  }
  return 500;
}

std::string type_of(int status) {
  switch (status) {
    case 400:
    case 404: return "invalid_request_error";
    case 429: return "rate_limit_error";
    case 503: return "service_unavailable_error";
    default: return "server_error";
  }
}

// Anthropic names its errors by status.
std::string anthropic_type(int status) {
  switch (status) {
    case 400: return "invalid_request_error";
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503:
    case 529: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// Begins with OpenAI's own words: gateways and agents recognize a full context by them.
std::string openai_message(const ApiError& error) {
  if (error.code != "context_length_exceeded") return error.message;
  return fmt::format("This model's maximum context length is {} tokens: {}", error.context, error.message);
}

// Errors of a model's files begin with the file. Where it is on this machine is no business of a client.
std::string without_folder(std::string message) {
  if (!message.starts_with('/')) return message;
  const std::size_t end = std::min(message.find(": "), message.find(", "));
  const std::size_t folder = message.rfind('/', end);
  return message.substr(folder + 1);
}

}  // namespace

ApiError invalid(std::string message, std::string param) {
  ApiError error(400, "invalid_request_error", std::move(message));
  error.param = std::move(param);
  return error;
}

ApiError unavailable(std::string message) {
  ApiError error(503, "unavailable_error", std::move(message));
  error.code = "service_unavailable";
  error.retry_after = 1;
  return error;
}

ApiError api_error_of(const Error& error) {
  const int status = status_of(error.kind());
  // What an internal error says is for our log: it names files of this machine.
  std::string message =
      status == 500 ? "internal error: the server's log has the details" : without_folder(error.what());
  if (status != 500 && !error.advice().why.empty()) message += fmt::format(": {}", error.advice().why);
  if (status != 500 && !error.advice().next.empty()) message += fmt::format(" ({})", error.advice().next);
  ApiError result(status, type_of(status), std::move(message));
  if (status == 429) {
    result.code = "rate_limit_exceeded";
    result.retry_after = 1;
  }
  if (const auto* too_long = dynamic_cast<const PromptTooLong*>(&error)) {
    result.code = "context_length_exceeded";
    result.prompt_tokens = static_cast<int>(too_long->prompt_tokens());
    result.context = too_long->context();
  }
  return result;
}

Json body_of(const ApiError& error, Dialect dialect) {
  if (dialect == Dialect::anthropic) {
    Json body = {{"type", anthropic_type(error.status)}, {"message", error.message}};
    // Clients decide by this code whether to send the request again in another form.
    if (error.code.starts_with("thread_")) body["details"] = {{"error_code", error.code}};
    return {{"type", "error"}, {"error", std::move(body)}};
  }
  Json body = {{"message", openai_message(error)},
               {"type", error.type},
               {"param", text_or_null(error.param)},
               {"code", text_or_null(error.code)}};
  if (error.context > 0) {
    body["n_prompt_tokens"] = error.prompt_tokens;
    body["n_ctx"] = error.context;
  }
  return {{"error", std::move(body)}};
}

}  // namespace inferno::server
