// What llama-server and vLLM offer beside the API: tokens of a text, text of tokens, the prompt of a
// conversation, and the properties of the server. One object answers the clients of both.
#include <fmt/format.h>

#include <limits>

#include "base/utf8.h"
#include "chat/json.h"
#include "server/doors.h"
#include "server/fields/fields.h"
#include "server/openai/chat_request.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

// As JSON with pieces and texts, each token takes about 300 bytes of memory.
constexpr std::size_t max_tokens = max_counted_tokens;

// The name of the model is checked, as every route does.
void take_model(Fields& fields, const Shared& shared) {
  shared.served_name(fields.take("model"));
}

// A piece of text, or its bytes if it is only part of a character.
Json piece_of(std::string_view bytes) {
  if (utf8::is_valid(bytes)) return std::string(bytes);
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  return numbers;
}

struct TokenizeOptions {
  bool adds_special = false, parses_special = true;
  bool with_pieces = false, with_texts = false;
};

std::vector<TokenId> encoded(const Tokenizer& tokenizer, const std::string& text,
                             const TokenizeOptions& options, const std::string& field) {
  const TextSpan span{text, options.parses_special ? Origin::trusted : Origin::user};
  auto tokens = tokenizer.encode_within({&span, 1}, max_tokens);
  if (!tokens) throw invalid(fmt::format("{}: expected at most {} tokens", field, max_tokens), field);
  return options.adds_special ? tokenizer.add_special(*std::move(tokens)) : *std::move(tokens);
}

Json tokens_json(const TextModel& model, const std::vector<TokenId>& tokens, const TokenizeOptions& options) {
  const Tokenizer& tokenizer = model.tokenizer();
  Json ids = Json::array(), texts = Json::array();
  for (const TokenId token : tokens) {
    const std::string_view bytes = tokenizer.bytes(token);
    ids.push_back(options.with_pieces ? Json{{"id", token}, {"piece", piece_of(bytes)}} : Json(token));
    if (!options.with_texts) continue;
    std::string held(bytes);
    texts.push_back(utf8::take_all(held, utf8::Replacement::per_character));
  }
  return {{"count", tokens.size()},
          {"max_model_len", model.engine().context()},
          {"tokens", std::move(ids)},
          {"token_strs", options.with_texts ? std::move(texts) : Json(nullptr)}};
}

std::vector<TokenId> take_tokens(Fields& fields, int vocab) {
  const Json* list = fields.take_array("tokens", max_tokens);
  if (list == nullptr) throw invalid("tokens: expected an array of token ids, found nothing", "tokens");
  std::vector<TokenId> tokens;
  for (const Json& token : *list) {
    const bool is_id =
        token.is_number_integer() && token.get<std::int64_t>() >= 0 && token.get<std::int64_t>() < vocab;
    if (!is_id) refuse_value("tokens", fmt::format("token ids from 0 to {}", vocab - 1), token);
    tokens.push_back(token.get<TokenId>());
  }
  return tokens;
}

}  // namespace

// `content` is llama-server's field and gets no special tokens unless they are asked for; `prompt` is vLLM's
// and gets them unless they are not.
void tokenize(SharedCall call) {
  const auto model = call->shared().model();
  Json body = call->take_body();
  Fields fields(body);
  const bool has_prompt = fields.take("prompt") != nullptr;
  const int texts =
      int{fields.take("content") != nullptr} + int{has_prompt} + int{fields.take("messages") != nullptr};
  if (texts != 1) throw invalid("expected exactly one of content, prompt and messages", "content");
  TokenizeOptions options;
  const auto add_special = fields.take_bool("add_special"), also = fields.take_bool("add_special_tokens");
  options.adds_special = add_special.value_or(also.value_or(has_prompt));
  options.parses_special = fields.take_bool("parse_special").value_or(true);
  options.with_pieces = fields.take_bool("with_pieces").value_or(false);
  options.with_texts = fields.take_bool("return_token_strs").value_or(false);
  std::vector<TokenId> tokens;
  if (fields.take("messages") != nullptr) {
    for (const char* own :
         {"add_special", "add_special_tokens", "parse_special", "with_pieces", "return_token_strs"}) {
      body.erase(own);
    }
    tokens = prompt_tokens(*model, read_chat_request(*call, std::move(body)).request, "messages");
    if (options.adds_special) tokens = model->tokenizer().add_special(std::move(tokens));
  } else {
    const std::string field = has_prompt ? "prompt" : "content";
    const auto text = fields.take_string(field);
    take_model(fields, call->shared());
    fields.finish(*call);
    tokens = encoded(model->tokenizer(), *text, options, field);
  }
  call->respond(200, tokens_json(*model, tokens, options));
}

void detokenize(SharedCall call) {
  const auto model = call->shared().model();
  const Json body = call->take_body();
  Fields fields(body);
  take_model(fields, call->shared());
  const std::string text = model->tokenizer().decode(take_tokens(fields, model->tokenizer().size()));
  fields.finish(*call);
  call->respond(200, {{"content", text}, {"prompt", text}});
}

void apply_template(SharedCall call) {
  const auto model = call->shared().model();
  // Only its text is shown.
  call->respond(200, {{"prompt", model->render(read_chat_request(*call).request, /*max_tokens=*/0).text}});
}

void show_properties(SharedCall call) {
  const auto model = call->shared().model();
  const int context = model->engine().context();
  const EngineStats stats = model->engine().stats();
  const SamplingSettings defaults = merged(model->recommended_settings(), call->shared().settings().defaults);
  Json values = Json::object();
  for (const SettingName& setting : sampling_setting_names()) {
    if (Json value = sampling_value(defaults, setting.name); !value.is_null()) {
      values[std::string(setting.name)] = std::move(value);
    }
  }
  call->respond(200, {{"default_generation_settings", {{"n_ctx", context}, {"params", std::move(values)}}},
                      {"n_ctx", context},
                      {"total_slots", stats.max_sequences},
                      {"model_path", model->path().string()},
                      {"model_alias", call->shared().settings().names.front()},
                      {"chat_template", model->chat_template()},
                      {"modalities", {{"vision", false}, {"audio", false}}},
                      {"build_info", call->shared().settings().version}});
}

}  // namespace inferno::server
