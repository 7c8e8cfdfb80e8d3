// Any tokens as a reply in Harmony's channels. The parser must not throw, every piece must be UTF-8, the text
// of a message must be kept, and the split of text into tokens must not matter.
#include <algorithm>

#include "base/utf8.h"
#include "chat/conversation.h"
#include "chat/harmony/parser.h"
#include "chat/vocabulary_scene.h"
#include "fuzz/guard.h"
#include "fuzz/reply.h"

namespace {

using namespace inferno;
using fuzz::Reply;
using fuzz::require;

const Tokenizer& vocabulary() {
  static const std::unique_ptr<Tokenizer> made_up = harmony_vocabulary();
  return *made_up;
}

constexpr TokenId first_control = 261;

// Bytes from 0xF5 on, which UTF-8 never has, are the control tokens and one token that does not exist.
std::vector<TokenId> tokens_in(std::string_view input) {
  std::vector<TokenId> tokens;
  for (const char byte : input) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0xF5) {
      tokens.push_back(value);
    } else {
      tokens.push_back(value == 0xFF ? 100'000 : first_control + (value - 0xF5));
    }
  }
  return tokens;
}

Reply parsed(std::span<const TokenId> tokens) {
  static const Conversation conversation = fuzz::offering_f();
  const auto parser = harmony::make_parser(vocabulary(), {.conversation = &conversation, .opening = {}});
  Reply reply;
  for (const TokenId token : tokens) reply.add(parser->push(token));
  reply.add(parser->finish());
  return reply;
}

// The ASCII text after each <|message|> up to the next control token.
void require_bodies(std::span<const TokenId> tokens, const Reply& reply) {
  std::string all = reply.content + "\n" + reply.reasoning;
  for (const auto& [name, arguments] : reply.calls) all += "\n" + arguments;
  const TokenId message = *vocabulary().special("<|message|>");
  for (auto at = std::find(tokens.begin(), tokens.end(), message); at != tokens.end();
       at = std::find(at + 1, tokens.end(), message)) {
    std::string body;
    for (auto next = at + 1; next != tokens.end() && *next < first_control; ++next) {
      body += vocabulary().bytes(*next);
    }
    const bool is_ascii = std::all_of(body.begin(), body.end(), [](char byte) { return byte >= 0; });
    if (is_ascii) require(all.find(body) != std::string::npos);
  }
}

std::vector<TokenId> cut_otherwise(std::span<const TokenId> tokens) {
  std::vector<TokenId> result;
  std::string run;
  const auto flush = [&] {
    for (const TokenId token : vocabulary().encode(run)) result.push_back(token);
    run.clear();
  };
  for (const TokenId token : tokens) {
    if (token < first_control) {
      run += vocabulary().bytes(token);
      continue;
    }
    flush();
    result.push_back(token);
  }
  flush();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<TokenId> tokens = tokens_in(fuzz::text(data, size));
  const Reply reply = parsed(tokens);
  require_bodies(tokens, reply);
  const bool plain =
      std::all_of(tokens.begin(), tokens.end(), [](TokenId token) { return token < first_control; });
  if (plain)
    require(reply.content == vocabulary().decode(tokens) && reply.reasoning.empty() && reply.calls.empty());
  std::string runs;
  for (const TokenId token : tokens) {
    runs += token < first_control ? std::string(vocabulary().bytes(token)) : "\n";
  }
  if (!utf8::first_invalid(runs)) require(parsed(cut_otherwise(tokens)) == reply);
  return 0;
}
