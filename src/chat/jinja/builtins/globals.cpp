// The functions that a template can call without defining them.
#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "chat/jinja/builtins/builtins.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/value/operations.h"

namespace inferno::jinja {
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
