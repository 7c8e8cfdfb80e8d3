#include "chat/constraint/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "chat/harmony/parser.h"
#include "chat/harmony/rules.h"
#include "chat/json.h"
#include "chat/reply/text_rules.h"

namespace inferno {
namespace {

using grammar::CompileOptions;
using grammar::Grammar;
using grammar::RefusalKind;
using grammar::RefusedError;

// Compiles the parts of a reply, which share one budget of time.
class ReplyCompiler {
 public:
  ReplyCompiler(const Tokenizer& tokenizer, const std::stop_token& cancel)
      : tokenizer_(tokenizer), cancel_(cancel) {}

  std::shared_ptr<const Grammar> compile(const ReplyConstraint& constraint, const ReplyShape& shape) {
    check_calls(constraint, shape);
    // Without a form around it, the text's own grammar is the whole.
    if (shape.kind == ReplyShape::Kind::completion) return compiled_text(*constraint.text);
    ReplyRuleParts parts = parts_of(constraint);
    const grammar::Part root =
        shape.kind == ReplyShape::Kind::channels
            ? harmony::reply_rules(rules_, harmony::ControlTokens::of(tokenizer_), parts)
            : text_reply_rules(rules_, tokenizer_, shape, parts);
    grammar::Budget budget({}, cancel_);
    const auto whole = std::make_shared<Grammar>(std::move(rules_), root, budget);
    whole->add_notes(std::move(notes_));
    return whole;
  }

 private:
  static void check_calls(const ReplyConstraint& constraint, const ReplyShape& shape) {
    const bool cannot = shape.kind == ReplyShape::Kind::completion ||
                        (shape.kind == ReplyShape::Kind::text && !can_call(shape.syntax));
    if (!cannot) return;
    const auto refuse_call = [](const std::string& place, const std::string& what) {
      throw ConstraintError(place,
                            {.kind = RefusalKind::unsupported,
                             .pointer = {},
                             .keyword = {},
                             .message = what + ": this model's chat template has no form for tool calls that "
                                               "Inferno knows"});
    };
    if (constraint.calls == CallMode::required) refuse_call("/tool_choice", "a call cannot be required");
    const auto strict = std::ranges::find_if(constraint.functions, &OfferedFunction::strict);
    if (strict != constraint.functions.end())
      refuse_call(strict->place, "calls of " + strict->name + " cannot be strict");
  }

  CompileOptions options(bool compact = false) const {
    CompileOptions options{.compact_whitespace = compact, .cancel = cancel_};
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
    options.limits.time = std::max(options.limits.time - spent, std::chrono::milliseconds(1));
    return options;
  }

  ReplyRuleParts parts_of(const ReplyConstraint& constraint) {
    ReplyRuleParts parts{.must_call = constraint.calls == CallMode::required,
                         .parallel_calls = constraint.parallel_calls};
    if (constraint.text && !parts.must_call) {
      using Kind = TextConstraint::Kind;
      const Kind kind = constraint.text->kind;
      parts.text_is_json = kind == Kind::schema || kind == Kind::json_object;
      parts.text = embedded("answer", *compiled_text(*constraint.text));
    }
    for (const OfferedFunction& function : constraint.functions) {
      parts.calls.push_back({function.name, embedded("arguments", *compiled_arguments(function))});
    }
    return parts;
  }

  // As a rule of its own: what stands in several places is compiled once.
  grammar::Part embedded(const char* name, const Grammar& part) {
    const grammar::Rule rule = rules_.declare(name);
    rules_.define(rule, rules_.embed(part.rules(), part.root()));
    notes_.insert(notes_.end(), part.notes().begin(), part.notes().end());
    return rules_.reference(rule);
  }

  std::shared_ptr<const Grammar> compiled_text(const TextConstraint& text) const {
    try {
      const CompileOptions limits = options(text.compact);
      switch (text.kind) {
        case TextConstraint::Kind::json_object: return grammar::compile_json_object(limits);
        case TextConstraint::Kind::schema: return grammar::compile_schema(text.source, limits);
        case TextConstraint::Kind::regex: return grammar::compile_regex(text.source, limits);
        case TextConstraint::Kind::grammar: return grammar::compile_gbnf(text.source, &tokenizer_, limits);
        case TextConstraint::Kind::choices: return grammar::compile_choices(text.choices, limits);
      }
    } catch (const RefusedError& error) {
      throw ConstraintError(text.place, error.refusal());
    }
    return nullptr;
  }

  std::shared_ptr<const Grammar> compiled_arguments(const OfferedFunction& function) {
    if (function.schema.empty()) return any_object();
    try {
      return grammar::compile_schema(function.schema, options());
    } catch (const RefusedError& error) {
      const ConstraintError located(function.place, error.refusal());
      if (function.strict) throw located;
      notes_.push_back(
          fmt::format("the arguments of {} may be any JSON object, because its schema cannot be enforced: {}",
                      function.name, located.what()));
    }
    return any_object();
  }

  std::shared_ptr<const Grammar> any_object() {
    if (!any_object_) any_object_ = grammar::compile_json_object({.cancel = cancel_});
    return any_object_;
  }

  using Clock = std::chrono::steady_clock;
  const Tokenizer& tokenizer_;
  std::stop_token cancel_;
  Clock::time_point started_ = Clock::now();
  grammar::Rules rules_;
  std::vector<std::string> notes_;
  std::shared_ptr<const Grammar> any_object_;
};

Json key_of(const TextConstraint& text) {
  return {static_cast<int>(text.kind), text.source, text.choices, text.compact, text.place};
}

}  // namespace

bool restricts(const ReplyConstraint& constraint, const ReplyShape& shape) {
  const bool must_hold = constraint.text || constraint.calls == CallMode::required ||
                         std::ranges::any_of(constraint.functions, &OfferedFunction::strict);
  switch (shape.kind) {
    case ReplyShape::Kind::completion: return must_hold;
    case ReplyShape::Kind::text:
      return must_hold || (!constraint.functions.empty() && can_call(shape.syntax));
    case ReplyShape::Kind::channels: return true;
  }
  return true;
}

std::shared_ptr<const Grammar> compile_reply(const ReplyConstraint& constraint, const ReplyShape& shape,
                                             const Tokenizer& tokenizer, const std::stop_token& cancel) {
  return ReplyCompiler(tokenizer, cancel).compile(constraint, shape);
}

bool begin_reply(grammar::Matcher& matcher, const ReplyShape& shape, const Tokenizer& tokenizer) {
  for (const ReplyPiece& piece : shape.begun) {
    if (piece.is_control) {
      const auto token = tokenizer.special(piece.text);
      if (!token || !matcher.take(*token)) return false;
      continue;
    }
    for (const char byte : piece.text) {
      if (!matcher.take_byte(static_cast<std::uint8_t>(byte))) return false;
    }
  }
  return true;
}

std::string cache_key(const ReplyConstraint& constraint, const ReplyShape& shape) {
  Json functions = Json::array();
  for (const OfferedFunction& function : constraint.functions) {
    functions.push_back({function.name, function.schema, function.strict, function.place});
  }
  const Json key = {
      static_cast<int>(shape.kind),   shape.tags.open,
      static_cast<int>(shape.begins), shape.syntax.opens,
      shape.syntax.json_reply,        constraint.text ? key_of(*constraint.text) : Json(nullptr),
      std::move(functions),           static_cast<int>(constraint.calls),
      constraint.parallel_calls};
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace inferno
