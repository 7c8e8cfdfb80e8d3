// Numbers of a schema, exactly as decimal digits, and the automata of the texts that satisfy their bounds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton/dfa.h"

namespace inferno::grammar {

struct Decimal {
  bool negative = false;
  std::string whole = "0";  // without leading zeros
  std::string fraction;     // without trailing zeros

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  bool is_whole() const { return fraction.empty(); }
  std::string text() const;
};

// nullopt if the exponent makes it longer than `max_digits`.
std::optional<Decimal> parse_decimal(std::string_view text, int max_digits = 1000);
int compare(const Decimal& a, const Decimal& b);
// Whether the number is a multiple; nullopt where that is too large to be told.
std::optional<bool> is_multiple(const Decimal& number, const Decimal& of);

struct NumberBound {
  Decimal value;
  bool inclusive = true;
};

struct NumberLimits {
  std::optional<NumberBound> least;
  std::optional<NumberBound> most;
  bool without_exponent = false;
  bool whole_only = false;
  bool fractions_only = false;  // numbers that are not whole
};

// Whole numbers have no fraction and no exponent; an exponent is allowed only where no bound but zero must be
// compared with. RefusedError{limit} with the keyword minimum or maximum, and without a place, if that is too
// large for an automaton.
Dfa number_automaton(const NumberLimits& limits, Budget& budget);
// Of numbers without an exponent. RefusedError{limit} with the keyword multipleOf, as above.
Dfa multiples_automaton(const Decimal& of, Budget& budget);

}  // namespace inferno::grammar
