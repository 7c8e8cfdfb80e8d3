#include "server/openai/completion_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "base/utf8.h"

namespace inferno::server {
namespace {

// As OpenAI writes a token that is not text by itself: "bytes:\xe2\x82".
std::string token_name(std::string_view bytes) {
  if (utf8::is_valid(bytes)) return std::string(bytes);
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

std::size_t characters_begun(std::string_view bytes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(bytes, [](char byte) { return !utf8::is_continuation(byte); }));
}

// The token's logprobs in the four lists of the old shape.
class OldLogprobs {
 public:
  explicit OldLogprobs(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // `sampled` nullptr: the first token of a prompt, which follows nothing.
  void add(std::string_view bytes, const Sampled* sampled, std::size_t offset) {
    const std::string name = token_name(bytes);
    tokens_.push_back(name);
    offsets_.push_back(offset);
    if (sampled == nullptr) {
      logprobs_.push_back(nullptr);
      tops_.push_back(nullptr);
      return;
    }
    Json top = Json::object();
    for (const auto& [id, logprob] : sampled->alternatives) {
      top[token_name(tokenizer_.bytes(id))] = finite_logprob(logprob);
    }
    top[name] = finite_logprob(sampled->logprob);
    logprobs_.push_back(finite_logprob(sampled->logprob));
    tops_.push_back(std::move(top));
  }

  Json take() {
    return {{"tokens", std::move(tokens_)},
            {"token_logprobs", std::move(logprobs_)},
            {"top_logprobs", std::move(tops_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  const Tokenizer& tokenizer_;
  Json tokens_ = Json::array(), logprobs_ = Json::array(), tops_ = Json::array(), offsets_ = Json::array();
};

// How many bytes of the rest of a prompt's text this token is. A control token that the text does not have
// was added to it, and the first word of some vocabularies has a space that the text does not have.
std::size_t bytes_of(std::string_view rest, std::string_view token, bool is_special) {
  if (rest.starts_with(token)) return token.size();
  if (is_special) return 0;
  if (token.starts_with(' ') && rest.starts_with(token.substr(1))) return token.size() - 1;
  return std::min(token.size(), rest.size());
}

class CompletionWriter : public ChoiceWriter {
 public:
  CompletionWriter(CompletionOutput output, ResponseFrame frame, const Tokenizer& tokenizer)
      : ChoiceWriter(frame, output.prompts * static_cast<std::size_t>(frame.choices), tokenizer),
        output_(std::move(output)),
        states_(output_.prompts * static_cast<std::size_t>(frame.choices)) {
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i].offset = characters_begun(echo_of(i));
  }

  void write(Call& call, std::size_t answer, const std::vector<ReplyPart>& parts,
             AnswerReader& reader) override {
    if (!streams() || output_.only_echo) return;
    chunks_.count(answer, reader.answer().tokens.size());
    for (const ReplyPart& part : parts) {
      const auto* content = std::get_if<ContentDelta>(&part);
      if (content == nullptr) continue;
      begin(call, answer, reader.answer());
      chunks_.send(call, choice_of(answer, content->text, new_logprobs(answer, reader.answer()), nullptr));
    }
  }

  void finish(Call& call, std::size_t answer, Answer& result) override {
    if (output_.only_echo) {
      // The engine reports the prompt together with a token that was not asked for.
      result.text.clear();
      result.tokens.clear();
      result.content_tokens.clear();
      result.finish_reason = "length";
    }
    if (!streams()) return;
    chunks_.count(answer, result.tokens.size());
    begin(call, answer, result);
    const bool has_rest = states_[answer].logprobs_sent < result.content_tokens.size();
    Json logprobs = has_rest ? new_logprobs(answer, result) : Json(nullptr);
    chunks_.send_last(call, choice_of(answer, "", std::move(logprobs), finish_reason_of(result)));
  }

 private:
  struct State {
    bool has_begun = false;
    std::size_t logprobs_sent = 0;  // tokens
    std::size_t offset = 0;         // characters before the next of these tokens
  };

  Json whole_choice(std::size_t answer, const Answer& result) override {
    return choice_of(answer, echo_of(answer) + result.text, whole_logprobs(answer, result),
                     finish_reason_of(result));
  }

  std::string echo_of(std::size_t answer) const {
    if (output_.echoes.empty()) return {};
    return output_.echoes[answer / static_cast<std::size_t>(frame().choices)];
  }

  void begin(Call& call, std::size_t answer, const Answer& so_far) {
    if (std::exchange(states_[answer].has_begun, true) || output_.echoes.empty()) return;
    OldLogprobs logprobs(tokenizer_);
    add_prompt(logprobs, answer, so_far);
    Json choice = choice_of(answer, echo_of(answer), output_.logprobs ? logprobs.take() : nullptr, nullptr);
    chunks_.send(call, choice);
  }

  Json choice_of(std::size_t answer, std::string text, Json logprobs, Json finish_reason) const {
    return {{"text", std::move(text)},
            {"index", answer},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish_reason)}};
  }

  void add_prompt(OldLogprobs& to, std::size_t answer, const Answer& so_far) const {
    if (so_far.prompt == nullptr) return;
    const std::string text = echo_of(answer);
    std::size_t at = 0, offset = 0;  // in bytes and in characters
    for (const Sampled& token : *so_far.prompt) {
      const bool is_first = &token == &so_far.prompt->front();
      const std::string_view bytes = tokenizer_.bytes(token.token);
      to.add(bytes, is_first ? nullptr : &token, offset);
      const std::size_t length =
          bytes_of(std::string_view(text).substr(at), bytes, tokenizer_.is_special(token.token));
      offset += characters_begun(std::string_view(text).substr(at, length));
      at += length;
    }
  }

  // The tokens of the answer that were not sent yet.
  void add_new(OldLogprobs& to, std::size_t answer, const Answer& so_far) {
    State& state = states_[answer];
    for (const ContentToken& token : std::span(so_far.content_tokens).subspan(state.logprobs_sent)) {
      to.add(token.bytes, &token.sampled, state.offset);
      state.offset += characters_begun(token.bytes);
    }
    state.logprobs_sent = so_far.content_tokens.size();
  }

  Json new_logprobs(std::size_t answer, const Answer& so_far) {
    if (!output_.logprobs) return nullptr;
    OldLogprobs logprobs(tokenizer_);
    add_new(logprobs, answer, so_far);
    return logprobs.take();
  }

  Json whole_logprobs(std::size_t answer, const Answer& result) {
    if (!output_.logprobs) return nullptr;
    OldLogprobs logprobs(tokenizer_);
    add_prompt(logprobs, answer, result);
    add_new(logprobs, answer, result);
    return logprobs.take();
  }

  CompletionOutput output_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(CompletionOutput output, ResponseFrame frame,
                                                     const Tokenizer& tokenizer) {
  return std::make_unique<CompletionWriter>(std::move(output), std::move(frame), tokenizer);
}

}  // namespace inferno::server
