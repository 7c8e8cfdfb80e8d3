#include "grammar/schema/strings.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "grammar/regex.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t max_states = 16'000;

std::optional<Dfa> closed(Rules& rules, Part content, Budget& budget, std::size_t most) {
  return automaton_of(rules, rules.sequence({content, rules.literal("\"")}), budget, most);
}

Part escapes(Rules& rules) {
  const CharacterSet hex = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const auto set = [&rules](std::string_view letters) {
    CharacterSet result;
    for (const char letter : letters)
      result.add(static_cast<char32_t>(letter), static_cast<char32_t>(letter));
    return rules.characters(result);
  };
  const Part digit = rules.characters(hex);
  const Part not_surrogate = rules.either({rules.sequence({set("0123456789abcefABCEF"), digit, digit, digit}),
                                           rules.sequence({set("dD"), set("01234567"), digit, digit})});
  const Part pair = rules.sequence({set("dD"), set("89abAB"), digit, digit, set("\\"), set("u"), set("dD"),
                                    set("cdefCDEF"), digit, digit});
  const Part unicode = rules.sequence({set("u"), rules.either({not_surrogate, pair})});
  return rules.either({set("\"\\/bfnrt"), unicode});
}

// The escapes of one character are inside it: the automaton is built by hand, because `inside` belongs to
// states that parts of several bytes have only within one character.
Dfa make_any_string() {
  Budget budget;
  Rules rules;
  const Dfa escape = *automaton_of(rules, escapes(rules), budget);
  const CharacterSet plain = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, last_code_point}};
  Nfa nfa;
  nfa.start = nfa.add_state();
  nfa.accept = nfa.add_state();
  for (const ByteRanges& ranges : byte_sequences(plain, TextForm::plain)) {
    std::uint32_t from = nfa.start;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::uint32_t to = i + 1 == ranges.size() ? nfa.start : nfa.add_state(/*inside=*/true);
      nfa.add_edge(from, ranges[i], to);
      from = to;
    }
  }
  std::vector<std::uint32_t> states;
  for (std::uint32_t i = 0; i < escape.size(); ++i)
    states.push_back(escape.state(i).accepts ? nfa.start : nfa.add_state(/*inside=*/true));
  for (std::uint32_t i = 0; i < escape.size(); ++i)
    for (const DfaEdge& edge : escape.edges(i))
      nfa.add_edge(states[i], {edge.first, edge.last}, states[edge.to]);
  nfa.add_edge(nfa.start, {'\\', '\\'}, states[0]);
  nfa.add_edge(nfa.start, {'"', '"'}, nfa.accept);
  return *determinize(nfa, budget, max_states);
}

Dfa make_plain_string() {
  Budget budget;
  Rules rules;
  const Part any = rules.repeat(rules.characters(CharacterSet::all(), TextForm::json_string), {});
  return *closed(rules, any, budget, max_states);
}

constexpr std::string_view date =
    "((?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)|"
    "(?:(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
    "02-(?:0[1-9]|1[0-9]|2[0-8]))))";
constexpr std::string_view time =
    "((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))";
constexpr std::string_view ipv4 =
    "((?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]"
    "))";
constexpr std::string_view label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";

std::string ipv6() {
  const std::string h = "[0-9a-fA-F]{1,4}";
  const std::string tail = "(?:" + h + ":" + h + "|" + std::string(ipv4) + ")";
  std::string out = "(?:(?:" + h + ":){6}" + tail;
  for (int before = 0; before <= 7; ++before) {
    // `before` groups, "::", and up to 7 - before more.
    const std::string left =
        before == 0 ? "" : h + (before > 1 ? "(?::" + h + "){" + std::to_string(before - 1) + "}" : "");
    out += "|" + left + "::";
    const int room = 7 - before;
    if (room == 0) continue;
    std::string right = h + "(?::" + h + "){0," + std::to_string(room - 1) + "}";
    if (room >= 2) right += "|(?:" + h + ":){0," + std::to_string(room - 2) + "}" + std::string(ipv4);
    out += "(?:" + right + ")?";
  }
  return out + ")";
}

std::string uri() {
  const std::string pchar = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  const std::string user = "(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})";
  const std::string name = "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})";
  const std::string authority = "(?:" + user + "*@)?(?:" + name + "*|\\[" + ipv6() + "\\])(?::[0-9]*)?";
  const std::string path = "(?:/(?:" + pchar + "+(?:/" + pchar + "*)*)?|" + pchar + "+(?:/" + pchar + "*)*)?";
  return "[A-Za-z][A-Za-z0-9+.-]*:(?://" + authority + "(?:/" + pchar + "*)*|" + path + ")(?:\\?(?:" + pchar +
         "|[/?])*)?(?:#(?:" + pchar + "|[/?])*)?";
}

std::string duration() {
  const std::string clock = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  return "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:" + clock + ")?|" +
         clock + ")";
}

std::string expression_of(std::string_view name) {
  const std::string host = std::string(label) + "(?:\\." + std::string(label) + ")*";
  if (name == "date") return std::string(date);
  if (name == "time") return std::string(time);
  if (name == "date-time") return std::string(date) + "[Tt]" + std::string(time);
  if (name == "duration") return duration();
  if (name == "hostname") return host;
  if (name == "email") return std::string(atom) + "(?:\\." + std::string(atom) + ")*@" + host;
  if (name == "ipv4") return std::string(ipv4);
  if (name == "ipv6") return ipv6();
  if (name == "uuid") return "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
  if (name == "uri") return uri();
  return "";
}

Dfa regular(std::string_view expression) {
  Budget budget(Limits{.time = std::chrono::milliseconds(60'000)});
  Rules rules;
  const Part part = parse_regex(rules, expression, RegexDialect::whole_text, TextForm::json_string, budget);
  return *closed(rules, part, budget, 20'000);
}

// Built when they are first asked for, and kept.
std::mutex formats_mutex;
std::map<std::string, std::shared_ptr<const Dfa>, std::less<>> formats;

bool is_format(const std::shared_ptr<const Dfa>& dfa) {
  const std::scoped_lock lock(formats_mutex);
  return std::ranges::any_of(formats, [&dfa](const auto& each) { return each.second == dfa; });
}

Dfa make_format(std::string_view name) {
  Budget budget(Limits{.time = std::chrono::milliseconds(60'000)});
  Dfa result = regular(expression_of(name));
  // Labels with hyphens in the third and fourth place are encodings, of which few are valid.
  if (name == "hostname") result = difference(result, regular("(?:[^.]*\\.)*[^.]{2}--.*"), budget);
  if (name == "email") result = difference(result, regular("[^@]*@(?:[^.]*\\.)*[^.]{2}--.*"), budget);
  return result;
}

}  // namespace

std::shared_ptr<const Dfa> any_string() {
  static const auto dfa = std::make_shared<const Dfa>(make_any_string());
  return dfa;
}

std::shared_ptr<const Dfa> plain_string() {
  static const auto dfa = std::make_shared<const Dfa>(make_plain_string());
  return dfa;
}

std::optional<Dfa> pattern_automaton(std::string_view pattern, Budget& budget) {
  Rules rules;
  const Part part = parse_regex(rules, pattern, RegexDialect::pattern, TextForm::json_string, budget);
  return closed(rules, part, budget, max_states);
}

std::shared_ptr<const Dfa> format_automaton(std::string_view name) {
  const std::scoped_lock lock(formats_mutex);
  if (const auto found = formats.find(name); found != formats.end()) return found->second;
  const std::string expression = expression_of(name);
  if (expression.empty()) return nullptr;
  return formats.emplace(name, std::make_shared<const Dfa>(make_format(name))).first->second;
}

SharedLengths shared_lengths(const std::shared_ptr<const Dfa>& dfa) {
  static std::mutex mutex;
  static std::map<const Dfa*, SharedLengths> known;
  const auto computed = [&dfa] { return std::make_shared<const std::vector<Lengths>>(lengths_of(*dfa)); };
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(dfa.get()); found != known.end()) return found->second;
  // Automata that live as long as the process; others may leave their address to a different one.
  if (dfa == any_string() || is_format(dfa)) return known.emplace(dfa.get(), computed()).first->second;
  return computed();
}

Counts format_counts(std::string_view name) {
  // The limit of host names; for addresses of mail it is narrower than the standard.
  if (name == "hostname" || name == "email") return {0, 253};
  return {};
}

}  // namespace inferno::grammar
