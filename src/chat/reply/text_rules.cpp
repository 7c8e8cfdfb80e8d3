#include "chat/reply/text_rules.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

#include "grammar/json.h"

namespace inferno {
namespace {

using grammar::Counts;
using grammar::Dfa;
using grammar::DfaEdge;
using grammar::Part;
using grammar::Rules;

// All texts that do not contain a marker: one state for each beginning of a marker that may have been read
// last.
Dfa text_without(const std::vector<std::string_view>& markers) {
  std::map<std::string, std::uint32_t, std::less<>> states = {{"", 0}};
  std::vector<std::string> read = {""};
  for (const std::string_view marker : markers) {
    for (std::size_t size = 1; size < marker.size(); ++size) {
      const std::string prefix(marker.substr(0, size));
      if (states.try_emplace(prefix, static_cast<std::uint32_t>(read.size())).second) read.push_back(prefix);
    }
  }
  const auto completes = [&](std::string_view text) {
    return std::ranges::any_of(markers, [&](std::string_view marker) { return text.ends_with(marker); });
  };
  Dfa dfa;
  for (const std::string& before : read) {
    std::vector<DfaEdge> edges;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text = before + static_cast<char>(byte);
      if (completes(text)) continue;
      std::string_view end = text;
      while (!states.contains(end)) end.remove_prefix(1);
      const std::uint32_t to = states.find(end)->second;
      const auto value = static_cast<std::uint8_t>(byte);
      if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == byte) {
        edges.back().last = value;
      } else {
        edges.push_back({value, value, to});
      }
    }
    dfa.add_state(edges, /*accepts=*/true, /*inside=*/false);
  }
  return dfa;
}

class TextReplyRules {
 public:
  TextReplyRules(Rules& rules, const Tokenizer& tokenizer, const ReplyShape& shape,
                 const ReplyRuleParts& parts)
      : rules_(rules), tokenizer_(tokenizer), shape_(shape), parts_(parts) {}

  Part reply() { return rules_.sequence({reasoning(), content()}); }

 private:
  // A marker may be one token or spelled with several; the parser recognises both.
  Part marker(std::string_view text) {
    const auto id = tokenizer_.special(text);
    return id ? rules_.either({rules_.literal(text), rules_.token({*id})}) : rules_.literal(text);
  }

  Part text_before(const std::vector<std::string_view>& markers) {
    if (markers.empty()) return rules_.free_text();
    return rules_.lexeme(std::make_shared<Dfa>(text_without(markers)));
  }

  Part reasoning() {
    const ReasoningTags& tags = shape_.tags;
    if (tags.open.empty() || shape_.begins == ReplyBegins::in_content) return rules_.empty();
    const Part line_break = rules_.literal("\n");
    const Part rest =
        rules_.sequence({text_before({tags.close}), marker(tags.close), rules_.repeat(line_break, {0, 2})});
    if (shape_.begins == ReplyBegins::inside_reasoning) return rest;
    return rules_.optional(rules_.sequence({rules_.optional(line_break), marker(tags.open), rest}));
  }

  Part content() {
    const Part all_calls = parts_.calls.empty() ? rules_.never() : calls();
    if (parts_.must_call) return all_calls;
    if (parts_.text) return rules_.either({*parts_.text, all_calls});
    return rules_.sequence({text_before(shape_.syntax.opens), rules_.optional(all_calls)});
  }

  Part calls() {
    std::vector<Part> forms;
    for (const std::string_view open : shape_.syntax.opens) forms.push_back(calls_after(open));
    if (shape_.syntax.json_reply) forms.push_back(separated(call_object("parameters"), "; "));
    return rules_.either(std::move(forms));
  }

  Part calls_after(std::string_view open) {
    if (open == "<tool_call>") {
      const Part call = rules_.sequence(
          {marker(open), rules_.blanks(), call_object("arguments"), rules_.blanks(), marker("</tool_call>")});
      return separated(call, "\n");
    }
    if (open == "<|python_tag|>") {
      return rules_.sequence({marker(open), separated(call_object("parameters"), "; ")});
    }
    if (open == "[TOOL_CALLS]") {
      const Part named = rules_.sequence({marker(open), named_call()});
      const Part list = rules_.sequence({marker(open), rules_.blanks(), call_list()});
      return rules_.either(
          {list, parts_.parallel_calls ? rules_.repeat(named, {1, Counts::unbounded}) : named});
    }
    if (open.ends_with('[')) {  // the list's own bracket
      open.remove_suffix(1);
      return rules_.sequence({rules_.literal(open), call_list()});
    }
    std::vector<Part> closes = {rules_.empty()};
    for (const std::string_view close : shape_.syntax.closes) {
      if (tokenizer_.special(close)) closes.push_back(marker(close));
    }
    return rules_.sequence({marker(open), rules_.blanks(), call_list(), rules_.either(std::move(closes))});
  }

  // f[ARGS]{…}
  Part named_call() {
    std::vector<Part> calls;
    for (const ReplyRuleParts::Call& call : parts_.calls) {
      calls.push_back(rules_.sequence({rules_.literal(call.name), marker("[ARGS]"), call.arguments}));
    }
    return rules_.either(std::move(calls));
  }

  // {"name": "f", "arguments": {…}}
  Part call_object(const std::string& arguments_key) {
    std::vector<Part> calls;
    for (const ReplyRuleParts::Call& call : parts_.calls) {
      const Part name = rules_.literal(grammar::json_quoted(call.name));
      calls.push_back(
          rules_.object({.properties = {{"\"name\"", name, true},
                                        {grammar::json_quoted(arguments_key), call.arguments, true}},
                         .undeclared = {},
                         .counts = {}}));
    }
    return rules_.either(std::move(calls));
  }

  Part call_list() {
    const std::uint32_t max = parts_.parallel_calls ? Counts::unbounded : 1;
    return rules_.array({.first = {}, .rest = call_object("arguments"), .counts = {1, max}});
  }

  // One call or several, with the separator or its first character between them.
  Part separated(Part call, std::string_view separator) {
    if (!parts_.parallel_calls) return call;
    const Part between = rules_.either({rules_.literal(separator.substr(0, 1)), rules_.literal(separator)});
    const Part more =
        rules_.sequence({separator == "\n" ? rules_.optional(rules_.literal("\n")) : between, call});
    return rules_.sequence({call, rules_.repeat(more, Counts{})});
  }

  Rules& rules_;
  const Tokenizer& tokenizer_;
  const ReplyShape& shape_;
  const ReplyRuleParts& parts_;
};

}  // namespace

bool can_call(const ToolCallSyntax& syntax) {
  return !syntax.opens.empty() || syntax.json_reply;
}

Part text_reply_rules(Rules& rules, const Tokenizer& tokenizer, const ReplyShape& shape,
                      const ReplyRuleParts& parts) {
  return TextReplyRules(rules, tokenizer, shape, parts).reply();
}

}  // namespace inferno
