// How builtins read their arguments, the tests (the words after `is`), and the global functions.
#include "chat/jinja/builtins/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

Callable::Function find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : found->function;
}

Parameters::Parameters(const Meter& meter, std::string_view function, const Arguments& given,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : meter_(meter), function_(function), names_(names), values_(names.size(), nullptr) {
  if (given.positional.size() > names_.size()) {
    refuse(meter, fmt::format("{}() takes at most {} arguments ({} given)", function, names_.size(),
                              given.positional.size()));
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      refuse(meter,
             fmt::format("{}() got an unexpected keyword argument '{}'", function, name.substr(0, 80)));
    }
    const auto index = static_cast<std::size_t>(found - names_.begin());
    if (values_[index] != nullptr) {
      refuse(meter, fmt::format("{}() got multiple values for argument '{}'", function, *found));
    }
    values_[index] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      refuse(meter, fmt::format("{}() is missing its argument '{}'", function, names_[i]));
    }
  }
}

Value Parameters::value(std::size_t index, const Value& otherwise) const {
  return values_[index] == nullptr ? otherwise : *values_[index];
}

bool Parameters::truth(std::size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : is_true(*values_[index]);
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t otherwise) const {
  if (values_[index] == nullptr || values_[index]->is_none()) return otherwise;
  return to_index(meter_, *values_[index], fmt::format("{}(): '{}'", function_, names_[index]));
}

const Text* Parameters::text(std::size_t index) const {
  if (values_[index] == nullptr || values_[index]->is_none()) return nullptr;
  if (const auto* missing = values_[index]->get<Undefined>()) refuse_undefined(meter_, *missing);
  if (!values_[index]->is_string()) {
    refuse(meter_, fmt::format("{}(): '{}' must be str, not {}", function_, names_[index],
                               type_name(*values_[index])));
  }
  return values_[index]->text();
}

// Tests
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

// Global functions
namespace {

constexpr std::string_view weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                         "Thursday", "Friday", "Saturday"};
constexpr std::string_view months[] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};

struct Moment {
  int year, month, day, hour, minute, second;
  int weekday;      // Sunday is 0
  int day_of_year;  // January 1st is 0
};

Moment take_apart(std::chrono::local_seconds time) {
  using namespace std::chrono;
  const local_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - local_seconds(day));
  const local_days new_year(date.year() / January / 1);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<int>(static_cast<unsigned>(date.month())),
          .day = static_cast<int>(static_cast<unsigned>(date.day())),
          .hour = static_cast<int>(clock.hours().count()),
          .minute = static_cast<int>(clock.minutes().count()),
          .second = static_cast<int>(clock.seconds().count()),
          .weekday = static_cast<int>(weekday(day).c_encoding()),
          .day_of_year = static_cast<int>((day - new_year).count())};
}

struct IsoWeek {
  int year, week;
};

// Week 1 is the one with the year's first Thursday.
IsoWeek iso_week(const Moment& m) {
  const int monday_based = (m.weekday + 6) % 7;
  const auto is_leap = [](int year) { return std::chrono::year(year).is_leap(); };
  int year = m.year;
  int week = (m.day_of_year - monday_based + 10) / 7;
  const auto weeks_in = [&](int of_year) {
    // A year has 53 weeks when it starts on a Thursday, or on a Wednesday and is leap.
    const std::chrono::weekday first(
        std::chrono::local_days(std::chrono::year(of_year) / std::chrono::January / 1));
    const unsigned start = first.iso_encoding();
    return start == 4 || (start == 3 && is_leap(of_year)) ? 53 : 52;
  };
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

int twelve_hour(int hour) {
  return hour % 12 == 0 ? 12 : hour % 12;
}

std::optional<std::string> directive(const Moment& m, char letter, bool padded) {
  const auto two = [&](int value) { return padded ? fmt::format("{:02}", value) : fmt::format("{}", value); };
  switch (letter) {
    case 'Y': return fmt::format("{}", m.year);
    case 'C': return two(m.year / 100);
    case 'y': return two(m.year % 100);
    case 'G': return fmt::format("{}", iso_week(m).year);
    case 'g': return two(iso_week(m).year % 100);
    case 'V': return two(iso_week(m).week);
    case 'U': return two((m.day_of_year + 7 - m.weekday) / 7);
    case 'W': return two((m.day_of_year + 7 - (m.weekday + 6) % 7) / 7);
    case 'm': return two(m.month);
    case 'B': return std::string(months[m.month - 1]);
    case 'b':
    case 'h': return std::string(months[m.month - 1].substr(0, 3));
    case 'd': return two(m.day);
    case 'e': return padded ? fmt::format("{:2}", m.day) : fmt::format("{}", m.day);
    case 'j': return padded ? fmt::format("{:03}", m.day_of_year + 1) : fmt::format("{}", m.day_of_year + 1);
    case 'A': return std::string(weekdays[m.weekday]);
    case 'a': return std::string(weekdays[m.weekday].substr(0, 3));
    case 'w': return fmt::format("{}", m.weekday);
    case 'u': return fmt::format("{}", m.weekday == 0 ? 7 : m.weekday);
    case 'H': return two(m.hour);
    case 'k': return padded ? fmt::format("{:2}", m.hour) : fmt::format("{}", m.hour);
    case 'I': return two(twelve_hour(m.hour));
    case 'l':
      return padded ? fmt::format("{:2}", twelve_hour(m.hour)) : fmt::format("{}", twelve_hour(m.hour));
    case 'M': return two(m.minute);
    case 'S': return two(m.second);
    case 'f': return "000000";
    case 'p': return m.hour < 12 ? "AM" : "PM";
    case 'P': return m.hour < 12 ? "am" : "pm";
    case 'z':
    case 'Z': return "";  // a time without a zone
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: return std::nullopt;
  }
}

std::string_view compound(char letter) {
  switch (letter) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'x':
    case 'D': return "%m/%d/%y";
    case 'X':
    case 'T': return "%H:%M:%S";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    default: return {};
  }
}

// datetime.strftime in the C locale. nullopt, with the reason in `problem`, for an unknown directive.
std::optional<std::string> format_time(std::chrono::local_seconds time, std::string_view format,
                                       std::string& problem) {
  const Moment moment = take_apart(time);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    bool padded = true;
    if (format[i + 1] == '-' && i + 2 < format.size()) {
      padded = false;
      ++i;
    }
    const char letter = format[++i];
    if (const std::string_view longer = compound(letter); !longer.empty()) {
      out += *format_time(time, longer, problem);
    } else if (const auto text = directive(moment, letter, padded)) {
      out += *text;
    } else {
      problem = fmt::format("strftime_now() does not know '%{}'", letter);
      return std::nullopt;
    }
  }
  return out;
}

Value raise_exception(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "raise_exception", arguments, {"message"}, 1);
  const Text message = to_text(meter, *given[0]);
  fail(ErrorKind::unsupported,
       fmt::format("{}, line {}: {}", meter.template_name(), meter.line(), message.view()),
       {.why = "the model's chat template rejects the conversation", .next = {}});
}

Value strftime_now(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "strftime_now", arguments, {"format"}, 1);
  const Text* format = given.text(0);
  if (format == nullptr) refuse(meter, "strftime_now() needs a format");
  constexpr std::size_t max_format_bytes = 4096;
  if (format->size() > max_format_bytes) refuse(meter, "strftime_now() got a format longer than 4096 bytes");
  std::string problem;
  const auto text = format_time(interpreter.now(), format->view(), problem);
  if (!text) refuse(meter, problem);
  return make_text(meter, *text, format->has_user_bytes() ? Origin::user : Origin::trusted);
}

Value range(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  if (arguments.positional.empty() || !arguments.named.empty()) {
    refuse(meter, "range() takes one to three positional arguments");
  }
  const Parameters given(meter, "range", arguments, {"start", "stop", "step"}, 1);
  const auto number = [&](std::size_t index) { return to_index(meter, *given[index], "range()"); };
  Range result{0, 0, 1};
  if (given[1] == nullptr) {
    result.stop = number(0);
  } else {
    result.start = number(0);
    result.stop = number(1);
    if (given[2] != nullptr) result.step = number(2);
  }
  if (result.step == 0) refuse(meter, "range() arg 3 must not be zero");
  if (result.size() > meter.budgets().range) {
    refuse(meter,
           fmt::format("the template exceeds its limit of {} items in a range", meter.budgets().range));
  }
  return std::make_shared<const Range>(result);
}

// dict(mapping_or_pairs, **more)
std::vector<DictEntry> dict_entries(Interpreter& interpreter, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  std::vector<DictEntry> entries;
  if (arguments.positional.size() > 1) refuse(meter, "dict expected at most 1 argument");
  for (const Value& source : arguments.positional) {
    if (source.dict() != nullptr) {
      entries = source.dict()->entries;
      continue;
    }
    for (const Value& pair : to_vector(meter, source)) {
      std::vector<Value> parts = to_vector(meter, pair);
      if (parts.size() != 2 || !is_hashable(parts[0])) refuse(meter, "dict() needs pairs with hashable keys");
      entries.push_back({std::move(parts[0]), std::move(parts[1])});
    }
  }
  for (const auto& [name, value] : arguments.named) entries.push_back({make_text(meter, name), value});
  return entries;
}

Value dict(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  return make_dict(interpreter.meter(), dict_entries(interpreter, arguments));
}

Value make_space(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Value initial = make_dict(meter, dict_entries(interpreter, arguments));
  std::vector<std::pair<std::string, Value>> attributes;
  for (const DictEntry& entry : initial.dict()->entries) {
    if (!entry.key.is_string()) continue;  // such a key can never be read as an attribute
    attributes.emplace_back(std::string(entry.key.text()->view()), entry.value);
  }
  return interpreter.make_namespace(std::move(attributes));
}

Value cycler(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  if (arguments.positional.empty() || !arguments.named.empty())
    refuse(meter, "cycler() needs at least one item");
  const Value items = make_tuple(meter, arguments.positional);
  return std::make_shared<Cycler>(
      Cycler{.items = *items.get<std::shared_ptr<const Sequence>>(), .position = 0});
}

Value joiner(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Meter& meter = interpreter.meter();
  const Parameters given(meter, "joiner", arguments, {"sep"});
  Value separator = given.value(0, Text::constant(", "));
  meter.check_depth(depth_of(separator), "nested values");
  return std::make_shared<Joiner>(Joiner{.separator = std::move(separator), .used = false});
}

constexpr Builtin globals[] = {
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"range", range},
    {"dict", dict},
    {"namespace", make_space},
    {"cycler", cycler},
    {"joiner", joiner},
};

}  // namespace

Callable::Function find_global(std::string_view name) {
  return find_builtin(globals, name);
}

}  // namespace inferno::jinja
