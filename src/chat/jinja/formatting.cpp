#include "chat/jinja/formatting.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/operations.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

constexpr std::int64_t widest_field = 1'000'000;

// "%(name)-08.3f"
class PercentFormatter {
 public:
  PercentFormatter(Meter& meter, const String& format, const Value& arguments)
      : meter_(meter),
        format_(format.text),
        view_(format.text.view()),
        escapes_(format.markup),
        arguments_(arguments) {}

  Text run() {
    while (at_ < view_.size()) {
      const std::size_t percent = std::min(view_.find('%', at_), view_.size());
      out_.append(meter_, format_.slice(at_, percent - at_));
      at_ = percent;
      if (at_ < view_.size()) conversion();
    }
    const Sequence* tuple = positional();
    const std::size_t given = tuple != nullptr ? tuple->items.size() : 1;
    // A single mapping or list may go unused, as in Python.
    const bool must_be_used =
        tuple != nullptr || (arguments_.dict() == nullptr && arguments_.sequence() == nullptr);
    if (must_be_used && used_ < given && !named_)
      refuse(meter_, "not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  const Sequence* positional() const {
    const Sequence* sequence = arguments_.sequence();
    return sequence != nullptr && sequence->kind != SequenceKind::list ? sequence : nullptr;
  }

  char letter() {
    if (at_ >= view_.size()) refuse(meter_, "incomplete format");
    return view_[at_];
  }

  Value next_argument() {
    const Sequence* tuple = positional();
    const std::size_t index = used_++;
    if (tuple == nullptr && index == 0) return arguments_;
    if (tuple == nullptr || index >= tuple->items.size())
      refuse(meter_, "not enough arguments for format string");
    return tuple->items[index];
  }

  Value named_argument() {
    const std::size_t end = view_.find(')', at_);
    if (end == std::string_view::npos) refuse(meter_, "incomplete format key");
    if (arguments_.dict() == nullptr) refuse(meter_, "format requires a mapping");
    const Value* found = arguments_.dict()->find(view_.substr(at_ + 1, end - at_ - 1));
    if (found == nullptr) {
      refuse(meter_, fmt::format("'{}'", view_.substr(at_ + 1, std::min<std::size_t>(end - at_ - 1, 80))));
    }
    at_ = end + 1;
    named_ = true;
    return *found;
  }

  std::int64_t number() {
    if (letter() == '*') {
      ++at_;
      return to_index(meter_, next_argument(), "a format width");
    }
    std::int64_t value = 0;
    while (letter() >= '0' && letter() <= '9') {
      value = value * 10 + (view_[at_++] - '0');
      if (value > widest_field) refuse(meter_, "a format field is too wide");
    }
    return value;
  }

  void flags(FormatSpec& spec) {
    for (;; ++at_) {
      const char flag = letter();
      if (flag == '-') {
        spec.align = '<';
      } else if (flag == '0') {
        if (spec.align == 0) spec.align = '=';
        if (spec.align == '=') spec.fill = "0";
      } else if (flag == '+') {
        spec.sign = '+';
      } else if (flag == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (flag == '#') {
        spec.alternate = true;
      } else {
        return;
      }
    }
  }

  void conversion() {
    ++at_;
    std::optional<Value> named;
    if (letter() == '(') named = named_argument();
    FormatSpec spec;
    flags(spec);
    spec.width = number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (letter() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(0, number());
    }
    while (letter() == 'l' || letter() == 'h' || letter() == 'L') ++at_;
    const char type = view_[at_++];
    if (type == '%') return out_.append(meter_, "%", Origin::trusted);
    write(type, spec, named ? *named : next_argument());
  }

  void write(char type, FormatSpec spec, const Value& value) {
    if (type == 's' || type == 'r' || type == 'a' || type == 'c') {
      spec.type = 's';
      if (spec.align != '<') spec.align = '>';
      spec.fill = " ";
      const bool is_code = type == 'c' && as_integer(value);
      Text shown = type == 'r' || type == 'a' ? to_repr(meter_, value) : to_text(meter_, value);
      if (is_code) {
        std::string character;
        utf8::append(character, static_cast<char32_t>(*as_integer(value) & 0xFFFF));
        shown = Text(meter_, character, Origin::trusted);
      }
      if (escapes_ && !value.is_markup()) shown = escape_html(meter_, shown);
      return out_.append(meter_, format_value(meter_, shown, spec));
    }
    if (const auto* missing = value.get<Undefined>()) refuse_undefined(meter_, *missing);
    if (!as_number(value)) {
      refuse(meter_, fmt::format("%{} format: a number is required, not {}", type, type_name(value)));
    }
    const bool is_float = std::string_view("eEfFgG").find(type) != std::string_view::npos;
    if (!is_float && std::string_view("diuxXo").find(type) == std::string_view::npos) {
      refuse(meter_, fmt::format("unsupported format character '{}'", type));
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    const auto* number = value.get<double>();
    const bool truncates = !is_float && number != nullptr;
    if (truncates && !(std::fabs(*number) < 9e18)) refuse(meter_, "the number is beyond 64 bits");
    const Value shown = truncates ? Value(static_cast<std::int64_t>(*number)) : value;
    out_.append(meter_, format_value(meter_, shown, spec));
  }

  Meter& meter_;
  const Text& format_;
  std::string_view view_;
  bool escapes_;  // Markup escapes what is put into it
  const Value& arguments_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool named_ = false;
  Text out_;
};

}  // namespace

Value format_percent(Meter& meter, const String& format, const Value& arguments) {
  return String{PercentFormatter(meter, format, arguments).run(), format.markup};
}

}  // namespace inferno::jinja
