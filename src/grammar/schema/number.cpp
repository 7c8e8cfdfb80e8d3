#include "grammar/schema/number.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/rules.h"

namespace inferno::grammar {
namespace {

constexpr std::size_t max_states = 20'000;
constexpr std::size_t max_digits_of_multiple = 15;

// Texts of numbers by comparison with a bound, built digit by digit from the end of the bound.
class Bounds {
 public:
  explicit Bounds(Rules& rules) : rules_(rules) {}

  Part digits(std::uint32_t min, std::uint32_t max = Counts::unbounded) {
    return rules_.repeat(range('0', '9'), {min, max});
  }
  Part range(char first, char last) {
    if (first > last) return rules_.never();
    return rules_.characters({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
  }
  Part any_fraction() { return rules_.optional(rules_.sequence({rules_.literal("."), digits(1)})); }
  Part any_whole() {
    return rules_.either({rules_.literal("0"), rules_.sequence({range('1', '9'), digits(0)})});
  }

  // Not negative, and at least (at most) the bound, which is not negative either.
  Part at_least(const Decimal& bound, bool inclusive) {
    const auto length = static_cast<std::uint32_t>(bound.whole.size());
    const Part longer = rules_.sequence({range('1', '9'), digits(length), any_fraction()});
    const Part larger = bound.whole == "0" ? rules_.sequence({range('1', '9'), any_fraction()})
                                           : rules_.sequence({larger_digits(bound.whole), any_fraction()});
    const Part same =
        rules_.sequence({rules_.literal(bound.whole), fraction_at_least(bound.fraction, inclusive)});
    return rules_.either({longer, larger, same});
  }
  Part at_most(const Decimal& bound, bool inclusive) {
    const auto length = static_cast<std::uint32_t>(bound.whole.size());
    std::vector<Part> parts;
    if (bound.whole != "0") {
      parts.push_back(rules_.sequence({rules_.literal("0"), any_fraction()}));
      if (length > 1)
        parts.push_back(rules_.sequence({range('1', '9'), digits(0, length - 2), any_fraction()}));
      parts.push_back(rules_.sequence({smaller_digits(bound.whole), any_fraction()}));
    }
    parts.push_back(
        rules_.sequence({rules_.literal(bound.whole), fraction_at_most(bound.fraction, inclusive)}));
    return rules_.either(std::move(parts));
  }

 private:
  // The same number of digits, no leading zero.
  Part larger_digits(std::string_view bound) {
    Part result = rules_.never();
    for (std::size_t i = bound.size(); i-- > 0;) {
      const auto rest = static_cast<std::uint32_t>(bound.size() - i - 1);
      const Part here = rules_.sequence({range(static_cast<char>(bound[i] + 1), '9'), digits(rest, rest)});
      result = rules_.either({here, rules_.sequence({rules_.literal(bound.substr(i, 1)), result})});
    }
    return result;
  }
  Part smaller_digits(std::string_view bound) {
    Part result = rules_.never();
    for (std::size_t i = bound.size(); i-- > 0;) {
      const auto rest = static_cast<std::uint32_t>(bound.size() - i - 1);
      const char least = i == 0 ? '1' : '0';
      const Part here = rules_.sequence({range(least, static_cast<char>(bound[i] - 1)), digits(rest, rest)});
      result = rules_.either({here, rules_.sequence({rules_.literal(bound.substr(i, 1)), result})});
    }
    return result;
  }

  Part zeros(std::uint32_t min) { return rules_.repeat(rules_.literal("0"), {min, Counts::unbounded}); }
  Part some_nonzero() { return rules_.sequence({zeros(0), range('1', '9'), digits(0)}); }

  Part fraction_at_least(std::string_view bound, bool inclusive) {
    if (bound.empty())
      return inclusive ? any_fraction() : rules_.sequence({rules_.literal("."), some_nonzero()});
    Part result = inclusive ? digits(0) : some_nonzero();
    for (std::size_t i = bound.size(); i-- > 0;) {
      const Part here = rules_.sequence({range(static_cast<char>(bound[i] + 1), '9'), digits(0)});
      result = rules_.either({here, rules_.sequence({rules_.literal(bound.substr(i, 1)), result})});
    }
    return rules_.sequence({rules_.literal("."), result});
  }
  Part fraction_at_most(std::string_view bound, bool inclusive) {
    if (bound.empty())
      return inclusive ? rules_.optional(rules_.sequence({rules_.literal("."), zeros(1)})) : rules_.never();
    Part result = inclusive ? zeros(0) : rules_.never();
    for (std::size_t i = bound.size(); i-- > 0;) {
      // The bound has digits after this one, so that stopping here stays below it.
      const Part stop = i + 1 < bound.size() ? rules_.either({rules_.empty(), result}) : result;
      const Part here = rules_.sequence({range('0', static_cast<char>(bound[i] - 1)), digits(0)});
      result = rules_.either({here, rules_.sequence({rules_.literal(bound.substr(i, 1)), stop})});
    }
    return rules_.optional(rules_.sequence({rules_.literal("."), result}));
  }

  Rules& rules_;
};

[[noreturn]] void refuse_size(std::string_view keyword, std::string message) {
  throw RefusedError({.kind = RefusalKind::limit,
                      .pointer = {},
                      .keyword = std::string(keyword),
                      .message = std::move(message)});
}

Dfa automaton(Rules& rules, Part part, Budget& budget) {
  return automaton_of(rules, part, budget, max_states).value();
}

// All numbers on one side of a bound, without exponents.
Dfa one_side(const NumberBound& bound, bool below, Budget& budget) {
  const auto automaton = [&](const Rules& rules, Part part) {
    auto dfa = automaton_of(rules, part, budget, max_states);
    if (!dfa)
      refuse_size(
          below ? "maximum" : "minimum",
          fmt::format("a bound of {} digits needs more than {} states (limit {})",
                      bound.value.whole.size() + bound.value.fraction.size(), max_states, max_states));
    return std::move(*dfa);
  };
  Rules rules;
  Bounds bounds(rules);
  const Part all = rules.sequence({bounds.any_whole(), bounds.any_fraction()});
  Decimal size = bound.value;
  size.negative = false;
  // A negative number is below a bound when its size is above the bound's.
  const bool towards_zero = below != bound.value.negative;
  const Part near =
      towards_zero ? bounds.at_most(size, bound.inclusive) : bounds.at_least(size, bound.inclusive);
  const Part minus = rules.literal("-");
  if (bound.value.negative) {
    const Part negative = rules.sequence({minus, near});
    return automaton(rules, below ? negative : rules.either({negative, all}));
  }
  if (!below) return automaton(rules, near);
  // Not "-0", which a bound of zero may exclude.
  const Part negative = rules.sequence({minus, bounds.at_least({}, /*inclusive=*/false)});
  return automaton(rules, rules.either({negative, near}));
}

Part exponent(Rules& rules, Bounds& bounds) {
  const Part sign = rules.optional(rules.characters({{'+', '+'}, {'-', '-'}}));
  return rules.optional(rules.sequence({rules.characters({{'E', 'E'}, {'e', 'e'}}), sign, bounds.digits(1)}));
}

enum class Sign { any, not_negative, positive, not_positive, negative };

// Bounds of zero need no comparison, so that exponents may stay.
std::optional<Sign> sign_only(const NumberLimits& limits) {
  if (limits.without_exponent || limits.fractions_only) return std::nullopt;
  if (limits.least && limits.most) return std::nullopt;
  if (limits.least && limits.least->value.is_zero())
    return limits.least->inclusive ? Sign::not_negative : Sign::positive;
  if (limits.most && limits.most->value.is_zero())
    return limits.most->inclusive ? Sign::not_positive : Sign::negative;
  return limits.least || limits.most ? std::nullopt : std::optional(Sign::any);
}

Dfa number_by_sign(Sign sign, Budget& budget) {
  Rules rules;
  Bounds bounds(rules);
  const Part minus = rules.literal("-");
  const Part any = rules.sequence({bounds.any_whole(), bounds.any_fraction(), exponent(rules, bounds)});
  const Part nonzero = rules.sequence({bounds.at_least({}, /*inclusive=*/false), exponent(rules, bounds)});
  Part part = any;
  switch (sign) {
    case Sign::any: part = rules.sequence({rules.optional(minus), any}); break;
    case Sign::not_negative: break;
    case Sign::positive: part = nonzero; break;
    case Sign::not_positive:
      part = rules.either({rules.literal("0"), rules.sequence({minus, nonzero})});
      break;
    case Sign::negative: part = rules.sequence({minus, nonzero}); break;
  }
  return automaton(rules, part, budget);
}

std::optional<std::uint64_t> scaled(const Decimal& value, std::size_t places) {
  std::string digits = value.whole + value.fraction;
  if (value.fraction.size() > places) return std::nullopt;
  digits.append(places - value.fraction.size(), '0');
  if (digits.size() > max_digits_of_multiple) return std::nullopt;
  return std::stoull(digits);
}

Dfa numbers_of(bool whole, Budget& budget) {
  Rules rules;
  Bounds bounds(rules);
  const Part fraction = whole ? rules.empty() : bounds.any_fraction();
  return automaton(rules, rules.sequence({rules.optional(rules.literal("-")), bounds.any_whole(), fraction}),
                   budget);
}

// A fraction that is not zero.
Dfa not_whole(Budget& budget) {
  Rules rules;
  Bounds bounds(rules);
  const Part zeros = rules.repeat(rules.literal("0"), {});
  return automaton(rules,
                   rules.sequence({rules.optional(rules.literal("-")), bounds.any_whole(), rules.literal("."),
                                   zeros, bounds.range('1', '9'), bounds.digits(0)}),
                   budget);
}

}  // namespace

std::string Decimal::text() const {
  std::string out = negative && !is_zero() ? "-" + whole : whole;
  if (!fraction.empty()) out += "." + fraction;
  return out;
}

std::optional<Decimal> parse_decimal(std::string_view text, int max_digits) {
  Decimal result;
  result.negative = text.starts_with("-");
  if (result.negative) text.remove_prefix(1);
  long exponent = 0;
  if (const auto at = text.find_first_of("eE"); at != std::string_view::npos) {
    std::string_view digits = text.substr(at + 1);
    const bool minus = digits.starts_with("-");
    if (minus || digits.starts_with("+")) digits.remove_prefix(1);
    for (const char digit : digits) exponent = std::min(exponent * 10 + (digit - '0'), 1'000'000L);
    if (minus) exponent = -exponent;
    text = text.substr(0, at);
  }
  const auto point = std::min(text.find('.'), text.size());
  std::string digits = std::string(text.substr(0, point));
  if (point < text.size()) digits += text.substr(point + 1);
  long place = static_cast<long>(point) + exponent;  // of the point in `digits`
  if (std::abs(place) > max_digits || digits.size() > static_cast<std::size_t>(max_digits))
    return std::nullopt;
  if (place <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - place), '0');
    place = 1;
  }
  if (digits.size() < static_cast<std::size_t>(place))
    digits.append(static_cast<std::size_t>(place) - digits.size(), '0');
  result.whole = digits.substr(0, static_cast<std::size_t>(place));
  result.fraction = digits.substr(static_cast<std::size_t>(place));
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size() - 1));
  while (!result.fraction.empty() && result.fraction.back() == '0') result.fraction.pop_back();
  if (result.is_zero()) result.negative = false;
  return result;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = 0;
  if (a.whole.size() != b.whole.size())
    order = a.whole.size() < b.whole.size() ? -1 : 1;
  else if (a.whole != b.whole)
    order = a.whole < b.whole ? -1 : 1;
  else if (a.fraction != b.fraction)
    order = a.fraction < b.fraction ? -1 : 1;
  return a.negative ? -order : order;
}

std::optional<bool> is_multiple(const Decimal& number, const Decimal& of) {
  const std::size_t places = std::max(number.fraction.size(), of.fraction.size());
  const auto a = scaled(number, places);
  const auto b = scaled(of, places);
  if (!a || !b || *b == 0) return std::nullopt;
  return *a % *b == 0;
}

Dfa number_automaton(const NumberLimits& limits, Budget& budget) {
  if (const auto sign = sign_only(limits); sign && !limits.whole_only) return number_by_sign(*sign, budget);
  Dfa result = limits.fractions_only ? not_whole(budget) : numbers_of(limits.whole_only, budget);
  if (limits.least) result = intersection(result, one_side(*limits.least, /*below=*/false, budget), budget);
  if (limits.most) result = intersection(result, one_side(*limits.most, /*below=*/true, budget), budget);
  return result;
}

// The remainder of the digits so far is the state; after the point, the number of digits still to come.
Dfa multiples_automaton(const Decimal& of, Budget& budget) {
  const std::size_t places = of.fraction.size();
  const auto modulus = scaled(of, places);
  if (!modulus)
    refuse_size("multipleOf", fmt::format("multipleOf has {} digits (limit {})", of.whole.size() + places,
                                          max_digits_of_multiple));
  const std::uint64_t states = *modulus * (places + 3);
  if (states > max_states)
    refuse_size("multipleOf", fmt::format("multipleOf needs {} states (limit {})", states, max_states));
  const auto m = static_cast<std::uint32_t>(*modulus);
  // States: 0 start, 1 after the minus, 2 after a leading zero, then m for the digits before the point, and
  // m for each number of digits after it.
  const auto before = [](std::uint32_t remainder) { return 3 + remainder; };
  const auto after_point = [m](std::uint32_t remainder, std::size_t seen) {
    return static_cast<std::uint32_t>(3 + m * (1 + seen) + remainder);
  };
  std::vector<std::uint64_t> power(places + 1, 1);  // 10^k mod m
  for (std::size_t k = 1; k <= places; ++k) power[k] = power[k - 1] * 10 % m;
  const auto divides = [&](std::uint32_t remainder, std::size_t seen) {
    return remainder * power[places - seen] % m == 0;
  };
  Dfa result;
  std::vector<DfaEdge> edges;
  const auto add_digits = [&](std::uint32_t remainder, char first, auto&& to) {
    for (char digit = first; digit <= '9'; ++digit)
      edges.push_back({static_cast<std::uint8_t>(digit), static_cast<std::uint8_t>(digit),
                       to(static_cast<std::uint32_t>(
                           (remainder * 10ULL + static_cast<std::uint64_t>(digit - '0')) % m))});
  };
  const DfaEdge point = {'.', '.', after_point(0, 0)};
  const DfaEdge zero = {'0', '0', 2};
  edges = {{'-', '-', 1}, zero};
  add_digits(0, '1', before);
  result.add_state(edges, false, false);
  edges = {zero};
  add_digits(0, '1', before);
  result.add_state(edges, false, false);
  edges.clear();
  if (places > 0) edges.push_back(point);
  result.add_state(edges, true, false);
  for (std::uint32_t remainder = 0; remainder < m; ++remainder) {
    edges.clear();
    if (places > 0) edges.push_back({'.', '.', after_point(remainder, 0)});
    add_digits(remainder, '0', before);
    result.add_state(edges, divides(remainder, 0), false);
    budget.spend(256);
  }
  for (std::size_t seen = 0; seen <= places; ++seen) {
    for (std::uint32_t remainder = 0; remainder < m; ++remainder) {
      edges.clear();
      if (seen < places)
        add_digits(remainder, '0', [&](std::uint32_t next) { return after_point(next, seen + 1); });
      else
        edges.push_back({'0', '0', after_point(remainder, seen)});
      result.add_state(edges, seen > 0 && divides(remainder, seen), false);
      budget.spend(256);
    }
  }
  return result.trimmed();
}

}  // namespace inferno::grammar
