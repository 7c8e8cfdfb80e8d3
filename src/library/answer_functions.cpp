// The functions of inferno.h about requests and answers.
#include <inferno/inferno.h>

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "library/answer.h"
#include "library/border.h"
#include "library/handles.h"
#include "library/model.h"
#include "library/request.h"

namespace inferno::library {
namespace {

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_at(const char* json, const std::string& name) {
  require(json, name);
  try {
    return parse_json(json, name, LargeIntegers::round);
  } catch (const Error& error) {
    fail(ErrorKind::invalid_request, error.what());
  }
}

void set(inferno_request request, const char* name, const Json& value) {
  object_of(request)->set(text_at(name, "name"), value);
}

inferno_finish finish_of(const std::string& reason) {
  if (reason == "stop") return INFERNO_FINISH_STOP;
  if (reason == "length") return INFERNO_FINISH_LENGTH;
  if (reason == "tool_calls") return INFERNO_FINISH_TOOL_CALLS;
  if (reason == "cancelled") return INFERNO_FINISH_CANCELLED;
  return INFERNO_FINISH_NONE;
}

inferno_usage usage_of(const inferno::Answer& answer) {
  const Finished& finished = answer.finished;
  inferno_usage found = {};
  found.finish = finish_of(answer.finish_reason);
  found.prompt_tokens = finished.prompt_tokens;
  found.cached_tokens = finished.cached_tokens;
  found.completion_tokens = answer.completion_tokens();
  found.reasoning_tokens = answer.reasoning_tokens;
  found.seed = finished.seed;
  found.queue_seconds = finished.queue_seconds;
  found.prompt_seconds = finished.prompt_seconds;
  found.decode_seconds = finished.decode_seconds;
  found.first_token_seconds = answer.first_token_seconds;
  found.total_seconds = answer.total_seconds;
  return found;
}

void give_answer(inferno_answer answer, char* text, std::size_t capacity, std::size_t* length,
                 const std::function<std::string(const inferno::Answer&, const TextModel&)>& text_of) {
  std::string found;
  object_of(answer)->look(
      [&](const inferno::Answer& so_far, const TextModel& model) { found = text_of(so_far, model); });
  give_text(found, text, capacity, length);
}

}  // namespace
}  // namespace inferno::library

using namespace inferno;
using namespace inferno::library;

inferno_status inferno_request_new(inferno_request* request, inferno_error* error) {
  return guarded_making(request, "request", error,
                        [&] { *request = new_handle(std::make_shared<Request>()); });
}

inferno_status inferno_request_from_json(const char* json, inferno_request* request, inferno_error* error) {
  return guarded_making(request, "request", error,
                        [&] { *request = new_handle(std::make_shared<Request>(json_at(json, "json"))); });
}

inferno_status inferno_request_copy(inferno_request request, inferno_request* copy, inferno_error* error) {
  return guarded_making(copy, "copy", error, [&] {
    const Json fields = object_of(request)->fields();
    *copy = new_handle(std::make_shared<Request>(fields));
  });
}

inferno_status inferno_request_free(inferno_request request, inferno_error* error) {
  return guarded(error, [&] { remove_handle(request); });
}

inferno_status inferno_request_set_text(inferno_request request, const char* name, const char* text,
                                        inferno_error* error) {
  return guarded(error, [&] { set(request, name, text_at(text, "text")); });
}

inferno_status inferno_request_set_number(inferno_request request, const char* name, double number,
                                          inferno_error* error) {
  return guarded(error, [&] {
    if (!std::isfinite(number)) fail(ErrorKind::invalid_request, "number: expected a finite number");
    set(request, name, number);
  });
}

inferno_status inferno_request_set_integer(inferno_request request, const char* name, int64_t integer,
                                           inferno_error* error) {
  return guarded(error, [&] { set(request, name, integer); });
}

inferno_status inferno_request_set_json(inferno_request request, const char* name, const char* json,
                                        inferno_error* error) {
  return guarded(error, [&] { set(request, name, json_at(json, text_at(name, "name"))); });
}

inferno_status inferno_request_add_message(inferno_request request, const char* role, const char* text,
                                           inferno_error* error) {
  return guarded(error,
                 [&] { object_of(request)->add_message(text_at(role, "role"), text_at(text, "text")); });
}

inferno_status inferno_request_json(inferno_request request, char* json, size_t capacity, size_t* length,
                                    inferno_error* error) {
  return guarded(error, [&] { give_text(dumped(object_of(request)->fields()), json, capacity, length); });
}

inferno_status inferno_ask(inferno_model model, inferno_request request, inferno_answer* answer,
                           inferno_error* error) {
  return guarded_making(answer, "answer", error, [&] {
    *answer = new_handle(library::Answer::ask(object_of(model), object_of(request)->read()));
  });
}

inferno_status inferno_ask_with_callback(inferno_model model, inferno_request request,
                                         inferno_part_callback callback, void* context,
                                         inferno_answer* answer, inferno_error* error) {
  return guarded_making(answer, "answer", error, [&] {
    if (callback == nullptr) fail(ErrorKind::invalid_request, "callback: expected a function, found NULL");
    library::Answer::ask(object_of(model), object_of(request)->read(),
                         {.callback = callback, .context = context, .handle = answer});
  });
}

inferno_status inferno_prefix_keep(inferno_model model, inferno_request request, inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_prefix_keep");
    TextRequest prompt = object_of(request)->read();
    prompt.settings.max_tokens = 1;
    prompt.choices = 1;
    prompt.constraint = {};  // only the prompt matters
    library::Answer::ask(object_of(model), prompt)->wait(std::chrono::milliseconds(-1));
  });
}

inferno_status inferno_prefix_drop(inferno_model model, inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_prefix_drop");
    object_of(model)->use()->engine().drop_idle_prefixes();
  });
}

inferno_status inferno_answer_next(inferno_answer answer, int64_t milliseconds, inferno_part* part,
                                   inferno_error* error) {
  return guarded(error, [&] {
    check_result(part, "inferno_part");
    if (milliseconds != 0) refuse_in_callback("inferno_answer_next");
    object_of(answer)->next(*part, std::chrono::milliseconds(milliseconds));
  });
}

inferno_status inferno_answer_wait(inferno_answer answer, int64_t milliseconds, int32_t* is_over,
                                   inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_answer_wait");
    if (is_over != nullptr) *is_over = 0;
    const bool ended = object_of(answer)->wait(std::chrono::milliseconds(milliseconds));
    if (is_over != nullptr) *is_over = ended ? 1 : 0;
  });
}

inferno_status inferno_answer_cancel(inferno_answer answer, inferno_error* error) {
  return guarded(error, [&] { object_of(answer)->cancel(); });
}

inferno_status inferno_answer_free(inferno_answer answer, inferno_error* error) {
  return guarded(error, [&] { remove_handle(answer)->release(); });
}

inferno_status inferno_answer_text(inferno_answer answer, inferno_part_kind kind, char* text, size_t capacity,
                                   size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    if (kind != INFERNO_PART_CONTENT && kind != INFERNO_PART_REASONING) {
      fail(ErrorKind::invalid_request, "kind: expected INFERNO_PART_CONTENT or INFERNO_PART_REASONING");
    }
    give_answer(answer, text, capacity, length, [&](const inferno::Answer& so_far, const TextModel&) {
      return kind == INFERNO_PART_CONTENT ? so_far.text : so_far.reasoning;
    });
  });
}

inferno_status inferno_answer_tool_calls(inferno_answer answer, char* json, size_t capacity, size_t* length,
                                         inferno_error* error) {
  return guarded(error, [&] {
    give_answer(answer, json, capacity, length,
                [](const inferno::Answer& so_far, const TextModel&) { return dumped(so_far.tool_calls); });
  });
}

inferno_status inferno_answer_json(inferno_answer answer, char* json, size_t capacity, size_t* length,
                                   inferno_error* error) {
  return guarded(error, [&] {
    const bool with_logprobs = object_of(answer)->with_logprobs();
    give_answer(answer, json, capacity, length, [&](const inferno::Answer& so_far, const TextModel& model) {
      return dumped(json_of(so_far, model, with_logprobs));
    });
  });
}

inferno_status inferno_answer_usage(inferno_answer answer, inferno_usage* usage, inferno_error* error) {
  return guarded(error, [&] {
    check_result(usage, "inferno_usage");
    object_of(answer)->look(
        [&](const inferno::Answer& so_far, const TextModel&) { write_result(usage, usage_of(so_far)); });
  });
}
