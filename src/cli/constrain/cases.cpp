#include "cli/constrain/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <set>

#include "base/thread_time.h"
#include "base/utf8.h"
#include "chat/constraint/compile.h"
#include "chat/constraint/read_constraint.h"
#include "chat/conversation.h"
#include "grammar/json.h"

namespace inferno::constrain {
namespace {

using grammar::JsonNode;

// CPU time, so that other work on the machine does not count.
double microseconds_since(std::chrono::nanoseconds start) {
  return std::chrono::duration<double, std::micro>(thread_time() - start).count();
}

struct Masks {
  CaseCosts costs;
  int wrong = 0;
};

struct Outcome {
  std::string_view status;
  std::size_t at = 0;      // bytes
  std::size_t length = 0;  // of the refused token
  std::string message;     // why the text could not be followed
};

// A limit met while following a text says nothing about the constraint or other texts.
Outcome beyond_limit(const grammar::RefusedError& error, std::size_t at) {
  return {"limit", at, 0, error.refusal().message};
}

std::shared_ptr<const grammar::Grammar> compile(const Settings& settings, const Case& one) {
  const grammar::CompileOptions options = {.compact_whitespace = settings.compact_whitespace};
  switch (one.kind) {
    case Kind::schema: return grammar::compile_schema(one.source, options);
    case Kind::grammar: return grammar::compile_gbnf(one.source, &settings.tokenizer, options);
    case Kind::regex: return grammar::compile_regex(one.source, options);
    case Kind::choices: {
      const JsonNode list = grammar::parse_json_text(one.source);
      std::vector<std::string> choices;
      for (const JsonNode& choice : list.items) {
        if (!choice.is(JsonNode::Kind::string))
          grammar::refuse(grammar::RefusalKind::invalid, "choices must be a list of texts");
        choices.push_back(choice.text);
      }
      if (!list.is(JsonNode::Kind::array))
        grammar::refuse(grammar::RefusalKind::invalid, "choices must be a list of texts");
      return grammar::compile_choices(choices, options);
    }
    case Kind::request: return nullptr;
  }
  return nullptr;
}

// A constraint, and where its texts begin. Texts share their masks, as the answers to requests do.
struct Compiled {
  std::shared_ptr<const grammar::Grammar> grammar;
  ReplyShape shape;
  std::shared_ptr<grammar::SharedMasks> masks = std::make_shared<grammar::SharedMasks>();
};

// The body of a chat completion: its reply is what the texts must be.
Compiled compile_request(const Settings& settings, const Case& one) {
  if (settings.chat == nullptr)
    fail(ErrorKind::unsupported, "a request needs a model with a chat format, which this one does not have");
  const Json request = parse_json(one.source, "request", LargeIntegers::round);
  const ReplyConstraint constraint = read_constraint(request);
  Conversation conversation;
  if (const Json* messages = find_member(request, "messages")) conversation.messages = *messages;
  if (const Json* tools = find_member(request, "tools")) conversation.tools = *tools;
  if (constraint.functions.empty()) conversation.tools = nullptr;
  Compiled compiled;
  compiled.shape = settings.chat->shape(conversation, settings.chat->render(conversation));
  if (!restricts(constraint, compiled.shape))
    fail(ErrorKind::invalid_request, "the request constrains nothing: every reply of this model is allowed");
  compiled.grammar = compile_reply(constraint, compiled.shape, settings.tokenizer);
  return compiled;
}

Compiled compile_case(const Settings& settings, const Case& one) {
  if (one.kind == Kind::request) return compile_request(settings, one);
  Compiled compiled;
  compiled.grammar = compile(settings, one);
  return compiled;
}

Outcome ending(grammar::Matcher& matcher, std::size_t at) {
  return {matcher.may_end() ? "accepted" : "prefix", at, 0, {}};
}

Outcome follow_bytes(const Settings& settings, grammar::Matcher& matcher, const Text& text, std::size_t& at) {
  for (const Piece& piece : text) {
    if (piece.is_control) {
      const auto id = settings.tokenizer.special(piece.text);
      if (!id || !matcher.take(*id)) return {"rejected", at, piece.text.size(), {}};
      at += piece.text.size();
      continue;
    }
    for (const char byte : piece.text) {
      if (!matcher.take_byte(static_cast<std::uint8_t>(byte))) return {"rejected", at, 1, {}};
      ++at;
    }
  }
  return ending(matcher, at);
}

Outcome follow_bytes(const Settings& settings, const Compiled& compiled, const Text& text) {
  std::size_t at = 0;
  try {
    grammar::Matcher matcher(compiled.grammar, settings.vocabulary);
    begin_reply(matcher, compiled.shape, settings.tokenizer);
    return follow_bytes(settings, matcher, text, at);
  } catch (const grammar::RefusedError& error) {
    return beyond_limit(error, at);
  }
}

// The tokenizer's own tokens where they spell the text exactly, otherwise the longest that fit.
std::vector<TokenId> tokens_of(const Settings& settings, std::string_view text) {
  if (utf8::is_valid(text)) {
    std::vector<TokenId> ids = settings.tokenizer.encode(text);
    std::string joined;
    for (const TokenId id : ids) joined += settings.vocabulary->bytes(id);
    if (joined == text) return ids;
  }
  std::vector<TokenId> ids;
  while (!text.empty()) {
    const std::vector<TokenId> fitting = settings.vocabulary->prefixes_of(text);
    if (fitting.empty()) break;
    ids.push_back(fitting.back());
    text.remove_prefix(settings.vocabulary->bytes(fitting.back()).size());
  }
  return ids;
}

class TokenWalk {
 public:
  TokenWalk(const Settings& settings, const Compiled& compiled, Masks& masks)
      : settings_(settings),
        matcher_(compiled.grammar, settings.vocabulary, compiled.masks),
        masks_(masks),
        mask_(settings.vocabulary->mask_words()) {
    begin_reply(matcher_, compiled.shape, settings.tokenizer);
  }

  Outcome run(const Text& text) {
    try {
      return follow(text);
    } catch (const grammar::RefusedError& error) {
      return beyond_limit(error, at_);
    }
  }

 private:
  Outcome follow(const Text& text) {
    for (const Piece& piece : text) {
      if (piece.is_control) {
        const auto id = settings_.tokenizer.special(piece.text);
        if (!id || !take(*id)) return {"rejected", at_, piece.text.size(), {}};
        at_ += piece.text.size();
        continue;
      }
      const std::size_t end = at_ + piece.text.size();
      for (const TokenId id : tokens_of(settings_, piece.text)) {
        const std::size_t length = settings_.vocabulary->bytes(id).size();
        if (!take(id)) return {"rejected", at_, length, {}};
        at_ += length;
      }
      // Bytes that no token begins with.
      if (at_ < end) return {"rejected", at_, 1, {}};
    }
    fill();
    return ending(matcher_, at_);
  }

  void fill() {
    const auto start = thread_time();
    matcher_.fill(mask_);
    masks_.costs.masks_us.push_back(microseconds_since(start));
    if (settings_.verify_masks && !matcher_.agrees_with_plain_walk(mask_)) ++masks_.wrong;
  }
  bool take(TokenId id) {
    fill();
    const auto at = static_cast<std::size_t>(id);
    const bool allowed = (mask_[at / 32] >> (at % 32) & 1) != 0;
    const bool is_forced = allowed && !matcher_.may_end() && is_only_one();
    if (matcher_.take(id) != allowed) ++masks_.wrong;
    masks_.costs.tokens += allowed ? 1 : 0;
    masks_.costs.forced += is_forced ? 1 : 0;
    return allowed;
  }
  bool is_only_one() const {
    int found = 0;
    for (const std::uint32_t word : mask_)
      if ((found += std::popcount(word)) > 1) return false;
    return found == 1;
  }

  const Settings& settings_;
  grammar::Matcher matcher_;
  Masks& masks_;
  std::vector<std::uint32_t> mask_;
  std::size_t at_ = 0;
};

std::string describe(const Outcome& outcome) {
  std::string out = fmt::format("\"status\":\"{}\",\"at\":{}", outcome.status, outcome.at);
  if (!outcome.message.empty()) out += ",\"message\":" + grammar::json_quoted(outcome.message);
  return out;
}

std::string describe(Masks masks) {
  std::vector<double>& times = masks.costs.masks_us;
  std::ranges::sort(times);
  const auto percentile = [&times](double share) {
    if (times.empty()) return 0.0;
    const auto at = static_cast<std::size_t>(static_cast<double>(times.size()) * share);
    return times[std::min(at, times.size() - 1)];
  };
  return fmt::format("{{\"count\":{},\"p50_us\":{:.1f},\"p99_us\":{:.1f},\"max_us\":{:.1f},\"wrong\":{}}}",
                     times.size(), percentile(0.5), percentile(0.99), percentile(1.0), masks.wrong);
}

std::string id_part(const Case& one) {
  return one.id.empty() ? "" : fmt::format("\"id\":{},", one.id);
}

}  // namespace

std::string describe(const Case& one, const grammar::Refusal& refusal) {
  return fmt::format(
      "{{{}\"compiled\":false,\"refused\":{{\"kind\":\"{}\",\"pointer\":{},\"keyword\":{},\"message\":{}}}}}",
      id_part(one), name_of(refusal.kind), grammar::json_quoted(refusal.pointer),
      grammar::json_quoted(refusal.keyword), grammar::json_quoted(refusal.message));
}

namespace {

Text text_of(const JsonNode& node) {
  if (node.is(JsonNode::Kind::string)) return {{false, node.text}};
  Text text;
  const JsonNode* pieces = node.find("pieces");
  if (pieces == nullptr) fail(ErrorKind::invalid_request, "a text must be a string or have \"pieces\"");
  for (const JsonNode& piece : pieces->items) {
    if (piece.items.size() != 2) fail(ErrorKind::invalid_request, "a piece must have a kind and a text");
    text.push_back({piece.items[0].text == "control", piece.items[1].text});
  }
  return text;
}

// A test of reference data: a text, and the same value written in other ways.
void add_test(std::vector<Text>& texts, const JsonNode& test) {
  const JsonNode* text = test.find("text");
  texts.push_back(text_of(text != nullptr && test.find("pieces") == nullptr ? *text : test));
  if (const JsonNode* also = test.find("also"))
    for (const JsonNode& other : also->items) texts.push_back(text_of(other));
}

void for_each_line(std::string_view lines, const std::function<void(std::string_view, int)>& use) {
  for (int number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!line.empty()) use(line, number);
  }
}

Case case_of(std::string_view line, int number) {
  const JsonNode node = grammar::parse_json_text(line, grammar::HalfCharacters::keep);
  Case one;
  const auto source = [line](const JsonNode& value) {
    return std::string(line.substr(value.begin, value.end - value.begin));
  };
  if (const JsonNode* id = node.find("id")) one.id = source(*id);
  bool found = false;
  const std::pair<std::string_view, Kind> kinds[] = {{"schema", Kind::schema},
                                                     {"grammar", Kind::grammar},
                                                     {"regex", Kind::regex},
                                                     {"choices", Kind::choices},
                                                     {"request", Kind::request}};
  for (const auto& [key, kind] : kinds) {
    const JsonNode* value = node.find(key);
    if (value == nullptr) continue;
    if (found) fail(ErrorKind::invalid_request, fmt::format("line {} has two constraints", number));
    found = true;
    one.kind = kind;
    const bool is_text = kind == Kind::grammar || kind == Kind::regex;
    one.source = is_text ? value->text : source(*value);
  }
  if (!found) fail(ErrorKind::invalid_request, fmt::format("line {} has no constraint", number));
  if (const JsonNode* texts = node.find("texts"))
    for (const JsonNode& text : texts->items) one.texts.push_back(text_of(text));
  if (const JsonNode* tests = node.find("tests"))
    for (const JsonNode& test : tests->items) add_test(one.texts, test);
  return one;
}

}  // namespace

std::vector<Text> read_texts(std::string_view lines) {
  std::vector<Text> texts;
  for_each_line(lines, [&texts](std::string_view line, int) {
    const JsonNode node = grammar::parse_json_text(line, grammar::HalfCharacters::keep);
    const JsonNode* text = node.find("text");
    texts.push_back(text_of(text != nullptr ? *text : node));
  });
  return texts;
}

std::string run_case(const Settings& settings, const Case& one) {
  const auto start = thread_time();
  const Compiled compiled = compile_case(settings, one);
  const double compile_ms = microseconds_since(start) / 1000;
  Masks masks;
  std::string results;
  for (const Text& text : one.texts) {
    const Outcome bytes = follow_bytes(settings, compiled, text);
    const Outcome tokens = TokenWalk(settings, compiled, masks).run(text);
    results += fmt::format("{}{{{},\"tokens\":{{{},\"length\":{}}}}}", results.empty() ? "" : ",",
                           describe(bytes), describe(tokens), tokens.length);
  }
  return fmt::format("{{{}\"compiled\":true,\"compile_ms\":{:.3f},\"results\":[{}],\"masks\":{}}}",
                     id_part(one), compile_ms, results, describe(std::move(masks)));
}

CaseCosts measure_case(const Settings& settings, const Case& one) {
  const auto start = thread_time();
  const Compiled compiled = compile_case(settings, one);
  Masks masks;
  masks.costs.compile_ms = microseconds_since(start) / 1000;
  for (const Text& text : one.texts) {
    if (TokenWalk(settings, compiled, masks).run(text).status == "limit") ++masks.costs.ended;
  }
  return std::move(masks.costs);
}

void for_each_case(std::string_view lines, const std::function<void(const Case&)>& use) {
  for_each_line(lines, [&use](std::string_view line, int number) { use(case_of(line, number)); });
}

void run_cases(const Settings& settings, std::string_view lines,
               const std::function<void(const std::string&)>& write) {
  for_each_case(lines, [&](const Case& one) {
    try {
      write(run_case(settings, one));
    } catch (const grammar::RefusedError& error) {
      write(describe(one, error.refusal()));
    }
  });
}

}  // namespace inferno::constrain
