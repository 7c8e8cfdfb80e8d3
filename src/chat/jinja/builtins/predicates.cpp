// Jinja's tests, the words after `is`.
#include <fmt/format.h>

#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/value/operations.h"

namespace inferno::jinja {
namespace {

using Test = bool (*)(Meter&, const Value&);

// Tests without arguments.
template <Test test>
bool plain(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Parameters none(interpreter.meter(), "test", arguments, {});
  return test(interpreter.meter(), value);
}

template <CompareOperator operation>
bool comparison(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "test", arguments, {"other"}, 1);
  return compare(interpreter.meter(), operation, value, *given[0]);
}

bool remainder_is(Meter& meter, const Value& value, std::int64_t divisor, std::int64_t rest) {
  const Value remainder = arithmetic(meter, ArithmeticOperator::modulo, value, divisor);
  return equals(meter, remainder, rest);
}

bool divisible(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "divisibleby", arguments, {"num"}, 1);
  return equals(meter, arithmetic(meter, ArithmeticOperator::modulo, value, *given[0]), std::int64_t{0});
}

bool same_as(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Parameters given(interpreter.meter(), "sameas", arguments, {"other"}, 1);
  // Identity, as far as Python guarantees it: equal values of the same type.
  return value.variant().index() == given[0]->variant().index() &&
         equals(interpreter.meter(), value, *given[0]);
}

template <bool upper>
bool is_cased(Meter& meter, const Value& value) {
  bool cased = false;
  const Text text = to_text(meter, value);
  const std::string_view view = text.view();
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    if (is_title(point.value) || (upper ? is_lower(point.value) : is_upper(point.value))) return false;
    cased = cased || (upper ? is_upper(point.value) : is_lower(point.value));
    at += point.bytes;
  }
  return cased;
}

bool is_sequence(Meter&, const Value& value) {
  return value.is_undefined() || value.is_string() || value.sequence() != nullptr ||
         value.dict() != nullptr || value.shared<const Range>() != nullptr;
}

bool is_callable(Meter&, const Value& value) {
  return value.is_undefined() || value.shared<const Callable>() != nullptr ||
         value.shared<const MacroValue>() != nullptr || value.shared<LoopState>() != nullptr ||
         value.shared<Joiner>() != nullptr;
}

template <bool expected>
bool is_flag(Meter&, const Value& value) {
  const auto* flag = value.get<bool>();
  return flag != nullptr && *flag == expected;
}

template <auto find>
bool names_a(Meter&, const Value& value) {
  return value.is_string() && find(value.text()->view()) != nullptr;
}

struct TestEntry {
  std::string_view name;
  TestFunction function;
};

constexpr TestEntry tests[] = {
    {"odd", plain<[](Meter& m, const Value& v) { return remainder_is(m, v, 2, 1); }>},
    {"even", plain<[](Meter& m, const Value& v) { return remainder_is(m, v, 2, 0); }>},
    {"divisibleby", divisible},
    {"defined", plain<[](Meter&, const Value& v) { return !v.is_undefined(); }>},
    {"undefined", plain<[](Meter&, const Value& v) { return v.is_undefined(); }>},
    {"filter", plain<names_a<find_filter>>},
    {"test", plain<names_a<find_test>>},
    {"none", plain<[](Meter&, const Value& v) { return v.is_none(); }>},
    {"boolean", plain<[](Meter&, const Value& v) { return v.get<bool>() != nullptr; }>},
    {"false", plain<is_flag<false>>},
    {"true", plain<is_flag<true>>},
    {"integer", plain<[](Meter&, const Value& v) { return v.get<std::int64_t>() != nullptr; }>},
    {"float", plain<[](Meter&, const Value& v) { return v.get<double>() != nullptr; }>},
    {"lower", plain<is_cased<false>>},
    {"upper", plain<is_cased<true>>},
    {"string", plain<[](Meter&, const Value& v) { return v.is_string(); }>},
    {"mapping", plain<[](Meter&, const Value& v) { return v.dict() != nullptr; }>},
    {"number", plain<[](Meter&, const Value& v) { return as_number(v).has_value(); }>},
    {"sequence", plain<is_sequence>},
    {"iterable",
     plain<[](Meter&, const Value& v) { return is_iterable(v) || v.shared<LoopState>() != nullptr; }>},
    {"callable", plain<is_callable>},
    {"sameas", same_as},
    {"escaped", plain<[](Meter&, const Value& v) { return v.is_markup(); }>},
    {"in", comparison<CompareOperator::in>},
    {"==", comparison<CompareOperator::equal>},
    {"eq", comparison<CompareOperator::equal>},
    {"equalto", comparison<CompareOperator::equal>},
    {"!=", comparison<CompareOperator::not_equal>},
    {"ne", comparison<CompareOperator::not_equal>},
    {">", comparison<CompareOperator::greater>},
    {"gt", comparison<CompareOperator::greater>},
    {"greaterthan", comparison<CompareOperator::greater>},
    {">=", comparison<CompareOperator::greater_equal>},
    {"ge", comparison<CompareOperator::greater_equal>},
    {"<", comparison<CompareOperator::less>},
    {"lt", comparison<CompareOperator::less>},
    {"lessthan", comparison<CompareOperator::less>},
    {"<=", comparison<CompareOperator::less_equal>},
    {"le", comparison<CompareOperator::less_equal>},
};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const TestEntry& entry : tests) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace inferno::jinja
