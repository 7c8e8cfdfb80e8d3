// What a template computes with: Python's values as far as templates can see them. Lists, tuples and
// dictionaries never change once made (the sandbox forbids it), so they are shared freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/text.h"

namespace inferno::jinja {

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

// A name or attribute that is not there. Printing it is fine, using it raises `message`.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};
struct String {
  Text text;
  bool markup = false;  // Python's Markup: adding to it escapes the other side
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
  // Everything that a value can hold is one.
  // NOLINTBEGIN(google-explicit-constructor)
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Variant, T &&>)
  Value(T&& value) : data_(std::forward<T>(value)) {}
  Value(Text text) : data_(String{.text = std::move(text)}) {}
  // NOLINTEND(google-explicit-constructor)

  // The alternative, or nullptr when the value is of another kind.
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

enum class SequenceKind : std::uint8_t { list, tuple, group };  // group: what groupby yields, a named tuple

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
  std::vector<std::uint32_t> order;  // indices into entries, sorted by key, when there are many
  int depth = 1;
  HeapCharge charge;

  // nullptr when the key is absent.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

// Mutable, and reachable from itself: the interpreter keeps every namespace until the rendering ends.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  HeapCharge charge;

  const Value* find(std::string_view name) const;
};

// Python's generators and iterators: gone through once, always true, without a length.
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
  // Computed modulo 2^64, because the way to an item may leave 64 bits though the item does not.
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
// A global function, or a method together with the value it was taken from.
struct Callable {
  using Function = Value (*)(Interpreter&, const Value& self, const Arguments&);
  std::string_view name;
  Function function;
  Value self;
  HeapCharge charge;
};

// Makers. Each counts what it allocates and refuses values nested deeper than the budget.
Value make_sequence(Meter& meter, std::vector<Value> items, SequenceKind kind = SequenceKind::list);
Value make_tuple(Meter& meter, std::vector<Value> items);
// Later entries replace earlier ones of an equal key, keeping the earlier place, as Python does.
// Every key must be hashable (see is_hashable).
Value make_dict(Meter& meter, std::vector<DictEntry> entries);
Value make_iterator(Meter& meter, std::vector<Value> items, std::string_view python_type = "generator");
Value make_text(Meter& meter, std::string_view bytes, Origin origin = Origin::trusted);
Value undefined(std::string message);

int depth_of(const Value& value);
bool is_hashable(const Value& value);

// A total order on hashable values that agrees with Python's equality (1 == 1.0 == True).
int compare_keys(const Value& left, const Value& right);

// "str", "int", "list", "NoneType", …: Python's name of the type, for messages.
std::string_view type_name(const Value& value);

}  // namespace inferno::jinja
