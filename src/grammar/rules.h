// A constraint under construction: what front ends produce, and what other code composes into larger
// constraints (a reply of several messages, tool calls between free text). Parts are small values that refer
// to their Rules; a part may be used any number of times. compile() in grammar.h turns the result into a
// Grammar.
//
//   Rules rules;
//   const Part call = rules.sequence({rules.token({channel}), rules.literal("commentary"),
//   rules.token({message}),
//                                     rules.embed(arguments->rules(), arguments->root()),
//                                     rules.token({call_token})});
//   const auto grammar = compile(std::move(rules), rules.either({call, answer}));
//
// Text is bytes; a token edge is one whole token, by its id, and is the only way to allow a control token.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "grammar/automaton/characters.h"
#include "grammar/automaton/dfa.h"

namespace inferno::grammar {

using SharedLengths = std::shared_ptr<const std::vector<Lengths>>;

enum class Part : std::uint32_t {};
enum class Rule : std::uint32_t {};

// Bounds of a counter, both inclusive.
struct Counts {
  static constexpr std::uint32_t unbounded = 0xFFFFFFFF;
  std::uint32_t min = 0;
  std::uint32_t max = unbounded;
  bool is_free() const { return min == 0 && max == unbounded; }
};

// A JSON object. Declared keys come in this order; undeclared keys follow, each at most once.
struct ObjectParts {
  struct Property {
    std::string key;  // as it stands in the text, with both quotes
    Part value{};
    bool required = false;
  };
  struct Undeclared {
    std::shared_ptr<const Dfa> key;  // after the opening quote, up to and with the closing one
    Part value{};
  };
  std::vector<Property> properties;
  std::vector<Undeclared> undeclared;  // their keys must not overlap, nor contain a declared one
  Counts counts;                       // of all properties together
};

struct ArrayParts {
  std::vector<Part> first;   // by position
  std::optional<Part> rest;  // nothing may follow `first` without it
  Counts counts;
};

class Rules {
 public:
  Rules();

  Part never() const { return Part{0}; }  // no text, not even the empty one
  Part empty() const { return Part{1}; }
  Part literal(std::string_view text);
  // One of these texts; cheap for many.
  Part one_of(std::vector<std::string> texts, Budget& budget);
  Part characters(const CharacterSet& set, TextForm form = TextForm::plain);
  Part sequence(std::vector<Part> parts);
  Part either(std::vector<Part> parts);
  // Costs the same whatever the bounds are.
  Part repeat(Part part, Counts counts);
  Part optional(Part part) { return repeat(part, {0, 1}); }

  // Rules may refer to each other and to themselves, also before they are defined, but not on the left.
  Rule declare(std::string name);
  void define(Rule rule, Part body);
  Part reference(Rule rule);

  // The texts of an automaton. `counts` are in characters, for the content of a JSON string and its closing
  // quote; lengths_of() must have found no gap. `lengths` is its result, if the caller has it.
  Part lexeme(std::shared_ptr<const Dfa> dfa, Counts counts = {}, SharedLengths lengths = nullptr);
  Part object(ObjectParts parts);
  Part array(ArrayParts parts);

  // One of these tokens, whatever their text.
  Part token(std::vector<TokenId> ids);
  // Any one token but these, control tokens and unused ids.
  Part token_except(std::vector<TokenId> ids);
  // Any ordinary tokens, none at all too. Costs no walk of the vocabulary where a token edge ends it.
  Part free_text();
  // Free text that does not contain the marker, and then the marker.
  Part text_up_to(std::string_view marker);
  // Everything that another compiled constraint accepts.
  Part embed(const Rules& other, Part root);

  // The fewest characters of any text of a part; 0 where that is not easily told.
  std::uint64_t min_characters(Part part) const;

  // Blanks after { [ , : and before } ]: none, one space, or a line feed with up to 64 spaces or tabs.
  // Objects and arrays have them unless they are compact.
  void make_compact() { compact_ = true; }
  Part blanks();

 private:
  friend class Analysis;
  friend class Lowering;
  friend class NfaWriter;
  friend class NonEmpty;
  enum class Kind : std::uint8_t {
    never,
    empty,
    literal,
    characters,
    sequence,
    either,
    repeat,
    reference,
    lexeme,
    object,
    array,
    token,
    token_except,
    free_text
  };
  struct Node {
    Kind kind = Kind::never;
    TextForm form = TextForm::plain;
    Counts counts = {};
    std::uint32_t index = 0;  // into the table of its kind
    std::vector<Part> parts = {};
  };
  Part add(Node node);
  const Node& node(Part part) const { return nodes_[static_cast<std::size_t>(part)]; }

  std::vector<Node> nodes_;
  std::vector<std::string> literals_;
  std::vector<CharacterSet> sets_;
  struct Lexeme {
    std::shared_ptr<const Dfa> dfa;
    SharedLengths lengths;  // nullptr unless counted
  };
  std::vector<Lexeme> lexemes_;
  std::vector<ObjectParts> objects_;
  std::vector<ArrayParts> arrays_;
  std::vector<std::vector<TokenId>> tokens_;
  struct RuleEntry {
    std::string name;
    Part body{};
    bool defined = false;
  };
  std::vector<RuleEntry> rules_;
  std::optional<Part> blanks_;
  bool compact_ = false;
};

// The automaton of a part that is made of texts only (no rules, tokens or objects), with bounded repeats
// copied. nullopt if it would be too large.
std::optional<Dfa> automaton_of(const Rules& rules, Part part, Budget& budget, std::size_t max_states = 4000);

}  // namespace inferno::grammar
