// The values a template computes with: Python's, as far as a template can tell. Lists, tuples and
// dictionaries are immutable (Jinja2's sandbox forbids changing them), so they are shared freely. The second
// half declares what Python does with values: operators, conversions and formatting.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value/text.h"

namespace inferno::jinja {

namespace ast {
struct For;
struct Macro;
}  // namespace ast
struct Scope;
class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Iterator;
struct DictView;
struct Range;
struct MacroValue;
struct LoopState;
struct Cycler;
struct Joiner;
struct Callable;

// A name or attribute that does not exist. Printing it is fine, using it fails with `message`.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};
struct String {
  Text text;
  bool markup = false;  // Python's Markup: a string concatenated with it is HTML-escaped
};

class Value {
 public:
  using Variant =
      std::variant<Undefined, None, bool, std::int64_t, double, String, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<Iterator>,
                   std::shared_ptr<const DictView>, std::shared_ptr<const Range>,
                   std::shared_ptr<const MacroValue>, std::shared_ptr<LoopState>, std::shared_ptr<Cycler>,
                   std::shared_ptr<Joiner>, std::shared_ptr<const Callable>>;

  Value() : data_(None{}) {}
  // Implicit: every alternative is a value.
  // NOLINTBEGIN(google-explicit-constructor)
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Variant, T &&>)
  Value(T&& value) : data_(std::forward<T>(value)) {}
  Value(Text text) : data_(String{.text = std::move(text)}) {}
  // NOLINTEND(google-explicit-constructor)

  // The alternative, or nullptr if the value is of another kind.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  T* shared() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  const Variant& variant() const { return data_; }

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_string() const { return std::holds_alternative<String>(data_); }
  const Text* text() const {
    const auto* string = get<String>();
    return string == nullptr ? nullptr : &string->text;
  }
  bool is_markup() const {
    const auto* string = get<String>();
    return string != nullptr && string->markup;
  }
  const Sequence* sequence() const { return shared<const Sequence>(); }
  const Dict* dict() const { return shared<const Dict>(); }

 private:
  Variant data_;
};

enum class SequenceKind : std::uint8_t { list, tuple, group };  // group: the named tuple that groupby yields

struct Sequence {
  std::vector<Value> items;
  SequenceKind kind = SequenceKind::list;
  int depth = 1;
  HeapCharge charge;
};

struct DictEntry {
  Value key;
  Value value;
};

struct Dict {
  std::vector<DictEntry> entries;    // in insertion order
  std::vector<std::uint32_t> order;  // indices into entries, sorted by key; empty for small dictionaries
  int depth = 1;
  HeapCharge charge;

  // nullptr if the key is absent.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

// Mutable, and may contain itself: the interpreter keeps every namespace until the rendering ends.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  HeapCharge charge;

  const Value* find(std::string_view name) const;
};

// Python's generators and iterators: iterated once, always true, without a length.
struct Iterator {
  std::shared_ptr<const Sequence> items;
  std::size_t next = 0;
  std::string_view python_type;  // "generator", "list_reverseiterator"
};

enum class DictViewKind : std::uint8_t { keys, values, items };
struct DictView {
  std::shared_ptr<const Dict> dict;
  DictViewKind kind;
};

struct Range {
  std::int64_t start, stop, step;
  std::int64_t size() const;
  // Computed modulo 2^64, because intermediate results may overflow although the item does not.
  std::int64_t at(std::size_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step));
  }
};

struct Cycler {
  std::shared_ptr<const Sequence> items;
  std::size_t position = 0;
};

struct Joiner {
  Value separator;
  bool used = false;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter;
// A global function, or a method bound to `self`.
struct Callable {
  using Function = Value (*)(Interpreter&, const Value& self, const Arguments&);
  std::string_view name;
  Function function;
  Value self;
  HeapCharge charge;
};

using FilterFunction = Callable::Function;
using TestFunction = bool (*)(Interpreter&, const Value&, const Arguments&);

// Iterates over a value as Python's iter() would.
class Iteration {
 public:
  // Refuses a value that cannot be iterated.
  Iteration(Meter& meter, Value source);
  std::optional<Value> next(Meter& meter);

 private:
  Value source_;
  std::size_t at_ = 0;  // index, or byte offset in a string
};

// A macro together with the scope of its definition.
struct MacroValue {
  std::shared_ptr<const ast::Macro> macro;
  std::string_view name;  // of the macro
  std::shared_ptr<Scope> scope;
  HeapCharge charge;
};

// The value of `loop`. Items are drawn one at a time, because a loop's condition may depend on its body.
struct LoopState {
  LoopState(Meter& meter, Iteration items, std::optional<std::int64_t> size)
      : iteration(std::move(items)), length(size), ahead_charge(&meter, sizeof(LoopState)) {}

  const ast::For* statement = nullptr;
  std::shared_ptr<Scope> outer;
  Iteration iteration;
  std::deque<Value> ahead;             // drawn, but not yet visited
  std::optional<std::int64_t> length;  // nullopt: not known before the end
  std::int64_t index0 = -1;
  std::int64_t depth0 = 0;
  Value current, before, last_changed;
  bool has_changed_before = false;
  bool finished = false;
  int value_depth = 0;
  HeapCharge ahead_charge;
};

// These charge the meter for what they allocate and refuse values nested deeper than the budget.
Value make_sequence(Meter& meter, std::vector<Value> items, SequenceKind kind = SequenceKind::list);
Value make_tuple(Meter& meter, std::vector<Value> items);
// Among entries with equal keys, the position of the first and the value of the last are kept, as in Python.
// Every key must be hashable (see is_hashable).
Value make_dict(Meter& meter, std::vector<DictEntry> entries);
Value make_iterator(Meter& meter, std::vector<Value> items, std::string_view python_type = "generator");
Value make_text(Meter& meter, std::string_view bytes, Origin origin = Origin::trusted);
Value undefined(std::string message);

// Fails with the message of an undefined value.
[[noreturn]] void refuse_undefined(const Meter& meter, const Undefined& value);

// Python's name of the type, for messages: "str", "int", "list", "NoneType", …
std::string_view type_name(const Value& value);
int depth_of(const Value& value);
bool is_hashable(const Value& value);
bool is_iterable(const Value& value);
bool is_true(const Value& value);
// len(); nullopt for a value without a length.
std::optional<std::int64_t> length_of(const Value& value);
std::optional<std::int64_t> as_integer(const Value& value);  // int or bool
std::optional<double> as_number(const Value& value);         // int, bool or float

// An integer index or count; refuses other types. True and False are integers to Python.
std::int64_t to_index(const Meter& meter, const Value& value, std::string_view what);
std::vector<Value> to_vector(Meter& meter, const Value& iterable);

// A total order on hashable values that agrees with Python's equality (1 == 1.0 == True).
int compare_keys(const Value& left, const Value& right);

// Operators, attributes and subscripts (operations.cpp)
enum class ArithmeticOperator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOperator : std::uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

bool equals(Meter& meter, const Value& left, const Value& right);
bool compare(Meter& meter, CompareOperator operation, const Value& left, const Value& right);
bool contains(Meter& meter, const Value& container, const Value& item);
Value arithmetic(Meter& meter, ArithmeticOperator operation, const Value& left, const Value& right);
// +operand, or -operand if `negative`.
Value apply_sign(Meter& meter, const Value& operand, bool negative);

// object.name and object[index]; undefined if there is no such thing. Follows Jinja2's Environment.getattr
// and Environment.getitem.
Value get_attribute(Meter& meter, const Value& object, std::string_view name);
Value get_item(Meter& meter, const Value& object, const Value& index);
Value get_slice(Meter& meter, const Value& object, const Value& start, const Value& stop, const Value& step);

// Conversions (conversions.cpp)
// str(): what {{ }} prints.
Text to_text(Meter& meter, const Value& value);
// repr(): how a value is printed inside a list.
Text to_repr(Meter& meter, const Value& value);

// repr(float): the shortest digits that read back the same, "1.0", "1e+16", "inf", "nan".
std::string format_float(double value);
// float(text): nullopt if Python raises ValueError. Underscores between digits, "inf" and "nan" are accepted.
std::optional<double> parse_float(std::string_view text);
// int(text, base): nullopt if Python raises ValueError. `overflowed`: a valid number, but beyond 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflowed);

// HTML escaping, needed because Markup + str escapes in Python.
Text escape_html(Meter& meter, const Text& text);
Value concatenate_strings(Meter& meter, const String& left, const String& right);

struct JsonStyle {
  bool ensure_ascii = false;  // Hugging Face's default, not Python's
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; nullopt: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// json.dumps().
Text to_json(Meter& meter, const Value& value, const JsonStyle& style);

// "%s" % arguments and "{}".format(arguments) (formatting.cpp)
Value format_percent(Meter& meter, const String& format, const Value& arguments);
Value format_braces(Meter& meter, const String& format, const Arguments& arguments);

}  // namespace inferno::jinja
