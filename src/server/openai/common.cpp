#include "server/openai/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/utf8.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr int max_choices = 128;
constexpr double no_logprob = -9999.0;  // OpenAI's value for a token that could not be chosen

// The same as long as answers to the same request with the same seed are the same.
std::string fingerprint_of(const Call& call) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const ServerSettings& settings = call.shared().settings();
  for (const std::string& text : {settings.version, settings.names.front()}) {
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  return fmt::format("fp_{:010x}", hash >> 24);
}

}  // namespace

std::int64_t unix_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

StreamOptions take_stream_options(Fields& fields, Call& call) {
  StreamOptions stream;
  stream.streams = fields.take_bool("stream").value_or(false);
  const Json* options = fields.take_object("stream_options");
  if (options == nullptr) return stream;
  if (!stream.streams) {
    throw invalid("stream_options: expected only together with \"stream\": true", "stream_options");
  }
  Fields inner(*options, "stream_options.");
  stream.include_usage = inner.take_bool("include_usage").value_or(false);
  stream.continuous_usage = inner.take_bool("continuous_usage_stats").value_or(false);
  inner.accept({"include_obfuscation"});
  inner.finish(call);
  return stream;
}

int take_choices(Fields& fields) {
  return static_cast<int>(fields.take_integer("n", 1, max_choices).value_or(1));
}

Json ResponseFrame::begin(Json choices_array) const {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", model},
          {"choices", std::move(choices_array)},
          {"service_tier", "default"},
          {"system_fingerprint", fingerprint}};
}

ResponseFrame make_frame(const Call& call, std::string_view id_prefix, std::string model) {
  ResponseFrame frame;
  frame.id = random_id(id_prefix);
  frame.model = std::move(model);
  frame.fingerprint = fingerprint_of(call);
  frame.created = unix_time();
  return frame;
}

void add_extras(Json& response, const ResponseFrame& frame, const std::vector<Answer>& answers,
                const Call& call) {
  if (!call.shared().settings().timings) return;
  response["timings"] = timings_of(answers, frame.choices, call);
  response["inferno"] = inferno_of(answers, frame.choices, call);
}

Json usage_of(const std::vector<Answer>& answers, int choices) {
  int prompt = 0, cached = 0, reasoning = 0;
  std::size_t completion = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    completion += answers[i].tokens.size();
    reasoning += static_cast<int>(answers[i].reasoning_tokens);
    if (i % static_cast<std::size_t>(choices) != 0) continue;
    prompt += answers[i].finished.prompt_tokens;
    cached += answers[i].finished.cached_tokens;
  }
  Json usage = usage_so_far(prompt, completion);
  usage["prompt_tokens_details"] = {{"cached_tokens", cached}, {"audio_tokens", 0}};
  usage["completion_tokens_details"] = {{"reasoning_tokens", reasoning},
                                        {"audio_tokens", 0},
                                        {"accepted_prediction_tokens", 0},
                                        {"rejected_prediction_tokens", 0}};
  return usage;
}

Json usage_so_far(int prompt_tokens, std::size_t completion_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", static_cast<std::size_t>(prompt_tokens) + completion_tokens}};
}

std::string finish_reason_of(const Answer& answer) {
  return answer.finish_reason == "cancelled" ? "length" : answer.finish_reason;
}

std::string token_text(std::string_view bytes) {
  std::string held(bytes);
  return utf8::take_all(held, utf8::Replacement::per_character);
}

double finite_logprob(float logprob) {
  return std::isfinite(logprob) ? std::max<double>(logprob, no_logprob) : no_logprob;
}

ChunkStream::ChunkStream(ResponseFrame frame, std::size_t answers)
    : frame_(std::move(frame)), tokens_(answers), open_(answers) {
  // Quotes in the model's name are escaped, so this is where the choices begin.
  constexpr std::string_view choices = "\"choices\":[";
  const std::string chunk = dumped(frame_.begin(Json::array()));
  const std::size_t at = chunk.find(choices) + choices.size();
  before_ = chunk.substr(0, at);
  after_ = chunk.substr(at, chunk.size() - at - 1);  // up to the closing brace
}

Json ChunkStream::usage() const {
  if (!frame_.stream.continuous_usage) return nullptr;
  return usage_so_far(frame_.prompt_tokens, std::accumulate(tokens_.begin(), tokens_.end(), std::size_t{0}));
}

void ChunkStream::send(Call& call, const Json& choice) const {
  std::string chunk = before_ + dumped(choice) + after_;
  const bool has_usage = frame_.stream.include_usage || frame_.stream.continuous_usage;
  if (has_usage) chunk += ",\"usage\":" + dumped(usage());
  call.raw_event(chunk + "}");
}

void ChunkStream::send_last(Call& call, Json choice) {
  --open_;
  // The very last chunk waits for what is known only when all answers are complete.
  if (open_ == 0 && !frame_.stream.include_usage) {
    last_ = std::move(choice);
  } else {
    send(call, choice);
  }
}

void ChunkStream::end(Call& call, const std::vector<Answer>& answers) {
  Json chunk = frame_.begin(frame_.stream.include_usage ? Json::array() : Json::array({std::move(last_)}));
  if (frame_.stream.include_usage) {
    chunk["usage"] = usage_of(answers, frame_.choices);
  } else if (frame_.stream.continuous_usage) {
    chunk["usage"] = usage();
  }
  add_extras(chunk, frame_, answers, call);
  call.event(chunk);
  call.raw_event("[DONE]");
  call.end_stream();
}

void ChoiceWriter::finish_all(Call& call, std::vector<Answer>& results) {
  if (streams()) return chunks_.end(call, results);
  Json choices = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) choices.push_back(whole_choice(i, results[i]));
  Json response = frame().begin(std::move(choices));
  response["usage"] = usage_of(results, frame().choices);
  add_extras(response, frame(), results, call);
  call.respond(200, response);
}

}  // namespace inferno::server
