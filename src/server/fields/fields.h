// Reading the fields of a request: each is taken, accepted without effect, refused, or named as ignored. null
// is the same as absent.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/call.h"
#include "service/answer.h"
#include "service/text_model.h"

namespace inferno::server {

// ApiError 400: "FIELD: expected WHAT, found …". Long values are shortened.
[[noreturn]] void refuse_value(const std::string& field, std::string_view expected, const Json& found);

class Fields {
 public:
  // `body` must be an object and outlive the reader. `prefix` is "reasoning." for the fields of such an
  // object.
  explicit Fields(const Json& body, std::string prefix = {});

  // nullptr if the field is absent or null.
  const Json* take(std::string_view name);
  // ApiError 400 naming the field, the expectation and the finding. A number without a fraction is an
  // integer, however it is written.
  std::optional<bool> take_bool(std::string_view name);
  std::optional<std::int64_t> take_integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> take_number(std::string_view name, double low, double high);
  std::optional<std::string> take_string(std::string_view name);
  const Json* take_array(std::string_view name, std::size_t max_entries);
  const Json* take_object(std::string_view name);

  // Taken without effect on the answer; not worth naming (store, user, metadata, …).
  void accept(std::initializer_list<std::string_view> names);
  // ApiError 400 with `param` if the field is present: it would change the answer and is not supported.
  // Values that ask for nothing (false, 0, "", [], {}) are taken.
  void refuse(std::string_view name, std::string_view why);

  // The names of the fields that were not taken. Those with the value false ask for nothing.
  std::vector<std::string> rest() const;
  // Names every field that was not taken in `call`, for x-inferno-ignored. Fields known to change answers
  // elsewhere (grammar, guided_json, lora, …) are ApiError 400 instead.
  void finish(Call& call);

  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const Json& body_;
  std::string prefix_;
  std::set<std::string, std::less<>> taken_;
};

// The fields that every door takes under the same names: temperature, top_p, top_k, min_p, typical_p,
// repetition_penalty, presence_penalty, frequency_penalty, seed, stop, logit_bias, max_tokens (also
// max_completion_tokens and n_predict), min_tokens, stop_token_ids, ignore_eos, cache_prompt, cache_salt,
// chat_template_kwargs, add_generation_prompt, continue_final_message, include_reasoning, reasoning_effort;
// and those that all accept without effect: user, metadata, store, service_tier, prompt_cache_key,
// safety_identifier.
struct CommonFields {
  TextRequest request;
  bool include_reasoning = true;
};
// Fills `request` with the fields on top of the server's defaults, and its client and cache scope from the
// call's key. A door that takes one of the fields itself does so before.
CommonFields take_common(Fields& fields, Call& call);

// Whether the source of a template names this variable or field, and not only as a part of a longer name.
bool has_word(std::string_view source, std::string_view word);

// Sets the effort from a field of `fields`, if it is there: none, minimal, low, medium, high, xhigh or max.
void take_effort(Fields& fields, std::string_view name, TextRequest& request);

// A function as OpenAI's chat API describes it ({"name", "description", "parameters", "strict"}), checked,
// in the form of TextRequest::tools. `where` is "tools[0].function". Unknown fields are named as ignored,
// once for all tools ("tools.hint").
Json function_tool(const Json& function, const std::string& where, Call& call);

// ApiError 400 if the model's template does not show tools to the model. Names reasoning_effort and
// thinking as ignored if no value of theirs changes the prompt, and variables that the template does not
// read.
void check_template_effects(const TextModel& model, const TextRequest& request, Call& call);

// The prompt of `request` ready for the engine. ApiError 400 context_length_exceeded, with both numbers, if
// the prompt leaves no room for a token; a token limit beyond the context is cut to it. `param` names the
// field that has the prompt ("messages").
PreparedRequest prepare(const TextModel& model, const TextRequest& request, Call& call,
                        std::string_view param);

// The tokens of a conversation's prompt, which may exceed the context, for routes that only show or count
// them. ApiError 400 beyond max_counted_tokens.
inline constexpr std::size_t max_counted_tokens = std::size_t{1} << 20;
std::vector<TokenId> prompt_tokens(const TextModel& model, const TextRequest& request,
                                   std::string_view param);

// "timings" and "inferno" as every response has them, for all answers of a call; null if they are switched
// off. `choices` is the number of answers per prompt.
Json timings_of(const std::vector<Answer>& answers, int choices, const Call& call);
Json inferno_of(const std::vector<Answer>& answers, int choices, const Call& call);

}  // namespace inferno::server
