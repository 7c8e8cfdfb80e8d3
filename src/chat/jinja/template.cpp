#include "chat/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/syntax/parser.h"
#include "chat/json.h"

namespace inferno::jinja {
namespace {

Text user_text(Meter& meter, const std::string& text) {
  if (utf8::first_invalid(text)) {
    fail(ErrorKind::invalid_request, "a message contains text that is not UTF-8");
  }
  return Text(meter, text, Origin::user);
}

// Templates build control tokens from roles ('<|' + message.role + '|>'), so the well-known ones count as the
// template's own text. Nothing else in a message does.
bool is_known_role(std::string_view role) {
  constexpr std::string_view roles[] = {"system",   "developer", "user",        "assistant",   "tool",
                                        "function", "ipython",   "environment", "observation", "model"};
  return std::find(std::begin(roles), std::end(roles), role) != std::end(roles);
}

// The position of a value in the variables: only a member of `messages` has a role.
enum class Place { anywhere, messages, message };

Value to_value(Meter& meter, const Json& json, int depth, Place place);

Value to_list(Meter& meter, const Json& json, int depth, Place place) {
  const Place inside = place == Place::messages ? Place::message : Place::anywhere;
  std::vector<Value> items;
  items.reserve(json.size());
  for (const Json& item : json) items.push_back(to_value(meter, item, depth + 1, inside));
  return make_sequence(meter, std::move(items));
}

Value to_dict(Meter& meter, const Json& json, int depth, Place place) {
  std::vector<DictEntry> entries;
  entries.reserve(json.size());
  for (const auto& [key, item] : json.get_ref<const Json::object_t&>()) {
    const bool is_role = place == Place::message && key == "role" && item.is_string() &&
                         is_known_role(item.get_ref<const std::string&>());
    Value value = is_role ? make_text(meter, item.get_ref<const std::string&>())
                          : to_value(meter, item, depth + 1, Place::anywhere);
    entries.push_back({user_text(meter, key), std::move(value)});
  }
  return make_dict(meter, std::move(entries));
}

Value to_value(Meter& meter, const Json& json, int depth, Place place) {
  meter.check_depth(depth, "nested variables");
  meter.step();
  switch (json.type()) {
    case Json::value_t::null:
    case Json::value_t::discarded: return None{};
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer: return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        refuse(meter, "a variable contains an integer beyond 64 bits");
      }
      return json.get<std::int64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return user_text(meter, json.get_ref<const std::string&>());
    case Json::value_t::array: return to_list(meter, json, depth, place);
    case Json::value_t::object: return to_dict(meter, json, depth, place);
    case Json::value_t::binary: break;
  }
  refuse(meter, "a variable contains binary data");
}

Rendered finish(const Text& text) {
  Rendered rendered;
  rendered.text.reserve(text.size());
  text.for_each_run([&](std::string_view bytes, Origin origin) {
    const std::size_t begin = rendered.text.size();
    rendered.text.append(bytes);
    if (origin == Origin::user) rendered.user_spans.push_back({begin, rendered.text.size()});
  });
  return rendered;
}

}  // namespace

std::chrono::local_seconds local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  using namespace std::chrono;
  const local_days day(year(parts.tm_year + 1900) / month(static_cast<unsigned>(parts.tm_mon + 1)) /
                       std::chrono::day(static_cast<unsigned>(parts.tm_mday)));
  return day + hours(parts.tm_hour) + minutes(parts.tm_min) + seconds(parts.tm_sec);
}

Template Template::parse(const std::string& source, std::string name, const Budgets& budgets) {
  return Template(std::make_shared<const Program>(jinja::parse(source, std::move(name), budgets)));
}

Rendered Template::render(const Json& variables, const RenderOptions& options) const {
  if (!variables.is_object()) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: the variables must be an object, not {}", program_->name, variables.type_name()));
  }
  Meter meter(options.budgets, program_->name);
  Interpreter interpreter(*program_, meter, options.clock);
  for (const auto& [name, text] : options.model_texts) {
    interpreter.define(name, Text(meter, text, Origin::trusted));
  }
  for (const auto& [name, json] : variables.get_ref<const Json::object_t&>()) {
    const Place place = name == "messages" ? Place::messages : Place::anywhere;
    if (interpreter.reads(name)) interpreter.define(name, to_value(meter, json, 1, place));
  }
  return finish(interpreter.run());
}

}  // namespace inferno::jinja
