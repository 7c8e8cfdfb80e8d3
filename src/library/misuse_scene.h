// Every function of inferno.h as a call, for tests that make them all.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "library/library_scene.h"

namespace inferno::library {

struct Handles {
  inferno_model model;
  inferno_request request;
  inferno_answer answer;
};

// What the calls below write, for each thread.
struct Results {
  inferno_description description = sized<inferno_description>();
  inferno_statistics statistics = sized<inferno_statistics>();
  inferno_part part = sized<inferno_part>();
  inferno_usage usage = sized<inferno_usage>();
  char text[4096] = {};
  std::int32_t tokens[64] = {1};
  float logits[512] = {};  // of a token of the tiny model
  inferno_request copy = {0};
  inferno_answer answer = {0};
};
inline thread_local Results written;

using Calls = std::vector<std::pair<const char*, std::function<inferno_status(inferno_error*)>>>;

// Every function about models and prompts with these handles and otherwise good arguments.
inline Calls model_calls_with(const Handles& h, inferno_model model, inferno_request request) {
  return {
      {"unload", [=](auto* e) { return inferno_model_unload(h.model, e); }},
      {"describe", [=](auto* e) { return inferno_model_describe(h.model, &written.description, e); }},
      {"template",
       [=](auto* e) {
         return inferno_model_template(h.model, written.text, sizeof written.text, nullptr, e);
       }},
      {"statistics", [=](auto* e) { return inferno_model_statistics(h.model, &written.statistics, e); }},
      {"tokenize",
       [=](auto* e) { return inferno_tokenize(h.model, "a", 0, written.tokens, 64, nullptr, e); }},
      {"detokenize",
       [=](auto* e) {
         return inferno_detokenize(h.model, written.tokens, 1, 0, written.text, sizeof written.text, nullptr,
                                   e);
       }},
      {"prompt_text 1",
       [=](auto* e) {
         return inferno_prompt_text(h.model, request, written.text, sizeof written.text, nullptr, e);
       }},
      {"prompt_text 2",
       [=](auto* e) {
         return inferno_prompt_text(model, h.request, written.text, sizeof written.text, nullptr, e);
       }},
      {"prompt_tokens 1",
       [=](auto* e) { return inferno_prompt_tokens(h.model, request, written.tokens, 64, nullptr, e); }},
      {"prompt_tokens 2",
       [=](auto* e) { return inferno_prompt_tokens(model, h.request, written.tokens, 64, nullptr, e); }},
      {"logits",
       [=](auto* e) {
         return inferno_logits(h.model, written.tokens, 1, 1, written.logits, std::size(written.logits),
                               nullptr, e);
       }},
  };
}

// The same for requests and answers.
inline Calls request_calls_with(const Handles& h, inferno_model model, inferno_request request) {
  const auto hear = [](void*, inferno_answer, const inferno_part*) -> std::int32_t { return 0; };
  return {
      {"copy", [=](auto* e) { return inferno_request_copy(h.request, &written.copy, e); }},
      {"free request", [=](auto* e) { return inferno_request_free(h.request, e); }},
      {"set_text", [=](auto* e) { return inferno_request_set_text(h.request, "prompt", "a", e); }},
      {"set_number", [=](auto* e) { return inferno_request_set_number(h.request, "top_p", 0.5, e); }},
      {"set_integer", [=](auto* e) { return inferno_request_set_integer(h.request, "seed", 1, e); }},
      {"set_json", [=](auto* e) { return inferno_request_set_json(h.request, "seed", "1", e); }},
      {"add_message", [=](auto* e) { return inferno_request_add_message(h.request, "user", "a", e); }},
      {"request_json",
       [=](auto* e) {
         return inferno_request_json(h.request, written.text, sizeof written.text, nullptr, e);
       }},
      {"ask 1", [=](auto* e) { return inferno_ask(h.model, request, &written.answer, e); }},
      {"ask 2", [=](auto* e) { return inferno_ask(model, h.request, &written.answer, e); }},
      {"ask_with_callback 1",
       [=](auto* e) {
         return inferno_ask_with_callback(h.model, request, hear, nullptr, &written.answer, e);
       }},
      {"ask_with_callback 2",
       [=](auto* e) {
         return inferno_ask_with_callback(model, h.request, hear, nullptr, &written.answer, e);
       }},
      {"prefix_keep 1", [=](auto* e) { return inferno_prefix_keep(h.model, request, e); }},
      {"prefix_keep 2", [=](auto* e) { return inferno_prefix_keep(model, h.request, e); }},
      {"prefix_drop", [=](auto* e) { return inferno_prefix_drop(h.model, e); }},
      {"next", [=](auto* e) { return inferno_answer_next(h.answer, 0, &written.part, e); }},
      {"wait", [=](auto* e) { return inferno_answer_wait(h.answer, 0, nullptr, e); }},
      {"cancel", [=](auto* e) { return inferno_answer_cancel(h.answer, e); }},
      {"free answer", [=](auto* e) { return inferno_answer_free(h.answer, e); }},
      {"text",
       [=](auto* e) {
         return inferno_answer_text(h.answer, INFERNO_PART_CONTENT, written.text, sizeof written.text,
                                    nullptr, e);
       }},
      {"tool_calls",
       [=](auto* e) {
         return inferno_answer_tool_calls(h.answer, written.text, sizeof written.text, nullptr, e);
       }},
      {"answer_json",
       [=](auto* e) { return inferno_answer_json(h.answer, written.text, sizeof written.text, nullptr, e); }},
      {"usage", [=](auto* e) { return inferno_answer_usage(h.answer, &written.usage, e); }},
  };
}

inline Calls calls_with(const Handles& h, inferno_model model, inferno_request request) {
  Calls calls = model_calls_with(h, model, request);
  const Calls others = request_calls_with(h, model, request);
  calls.insert(calls.end(), others.begin(), others.end());
  return calls;
}

// Every function that takes no handle, with good arguments. What it makes is in `loaded` and `copy`. The
// built-in model is unpacked into the folder `cache`.
inline thread_local inferno_model loaded;
inline Calls calls_without_handles(const std::string& cache) {
  const auto with_options = [cache](const auto& body) {
    inferno_load_options options = small_options();
    options.threads = 1;
    options.cache = cache.c_str();
    return body(options);
  };
  return {
      {"load",
       [=](auto* e) {
         return with_options([&](const auto& options) {
           return inferno_model_load(tiny_model.c_str(), &options, &loaded, e);
         });
       }},
      {"plan",
       [=](auto* e) {
         return with_options([&](const auto& options) {
           auto plan = sized<inferno_plan_result>();
           return inferno_plan(tiny_model.c_str(), &options, &plan, e);
         });
       }},
      {"self_test",
       [=](auto* e) {
         return with_options([&](const auto& options) {
           return inferno_self_test(&options, written.text, sizeof written.text, nullptr, e);
         });
       }},
      {"list_models",
       [=](auto* e) {
         return with_options([&](const auto& options) {
           return inferno_list_models(&options, written.text, sizeof written.text, nullptr, e);
         });
       }},
      {"request_new", [](auto* e) { return inferno_request_new(&written.copy, e); }},
      {"from_json", [](auto* e) { return inferno_request_from_json("{}", &written.copy, e); }},
  };
}

}  // namespace inferno::library
