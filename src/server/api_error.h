// Errors as the APIs send them: an HTTP status and a JSON body in the shape of OpenAI or of Anthropic.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/error.h"
#include "chat/json_fwd.h"

namespace inferno::server {

enum class Dialect { openai, anthropic };

struct ApiError : std::exception {
  ApiError(int a_status, std::string a_type, std::string a_message)
      : status(a_status), type(std::move(a_type)), message(std::move(a_message)) {}
  const char* what() const noexcept override { return message.c_str(); }

  int status = 500;
  std::string type;     // "invalid_request_error", …
  std::string message;  // what, why and what to do next
  std::string param;    // empty: null
  std::string code;     // empty: null
  int retry_after = 0;  // seconds; 0: no such header
  // A prompt beyond the context: both are sent as n_prompt_tokens and n_ctx.
  int prompt_tokens = 0, context = 0;
};

// 400 invalid_request_error. `param` names the field.
ApiError invalid(std::string message, std::string param = {});
// 503: try again in a moment.
ApiError unavailable(std::string message);
// An error of the layers below: its kind decides the status, its advice is added to the message. Paths and
// source locations of internal errors are left out.
ApiError api_error_of(const Error& error);

// {"error": {"message", "type", "param", "code"}}, or Anthropic's {"type": "error", "error": {"type",
// "message"}}.
Json body_of(const ApiError& error, Dialect dialect);

}  // namespace inferno::server
