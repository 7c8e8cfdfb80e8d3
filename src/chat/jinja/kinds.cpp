// What kind of thing a value is: its Python type, whether it can be a key, how deep it nests.
#include <algorithm>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/value.h"

namespace inferno::jinja {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

std::string_view sequence_type(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::list: return "list";
    case SequenceKind::tuple: return "tuple";
    case SequenceKind::group: return "_GroupTuple";
  }
  return {};
}

std::string_view view_type(DictViewKind kind) {
  switch (kind) {
    case DictViewKind::keys: return "dict_keys";
    case DictViewKind::values: return "dict_values";
    case DictViewKind::items: return "dict_items";
  }
  return {};
}

}  // namespace

std::string_view type_name(const Value& value) {
  using View = std::string_view;
  return std::visit(
      Overloaded{
          [](const Undefined&) -> View { return "Undefined"; },
          [](const None&) -> View { return "NoneType"; },
          [](bool) -> View { return "bool"; },
          [](std::int64_t) -> View { return "int"; },
          [](double) -> View { return "float"; },
          [](const String& string) -> View { return string.markup ? "Markup" : "str"; },
          [](const std::shared_ptr<const Sequence>& sequence) { return sequence_type(sequence->kind); },
          [](const std::shared_ptr<const Dict>&) -> View { return "dict"; },
          [](const std::shared_ptr<Namespace>&) -> View { return "Namespace"; },
          [](const std::shared_ptr<Iterator>& iterator) { return iterator->python_type; },
          [](const std::shared_ptr<const DictView>& view) { return view_type(view->kind); },
          [](const std::shared_ptr<const Range>&) -> View { return "range"; },
          [](const std::shared_ptr<const MacroValue>&) -> View { return "Macro"; },
          [](const std::shared_ptr<LoopState>&) -> View { return "LoopContext"; },
          [](const std::shared_ptr<Cycler>&) -> View { return "Cycler"; },
          [](const std::shared_ptr<Joiner>&) -> View { return "Joiner"; },
          [](const std::shared_ptr<const Callable>&) -> View { return "builtin_function_or_method"; },
      },
      value.variant());
}

int depth_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  if (const auto* iterator = value.shared<Iterator>()) return iterator->items->depth + 1;
  if (const auto* view = value.shared<const DictView>()) return view->dict->depth + 1;
  if (const auto* cycler = value.shared<Cycler>()) return cycler->items->depth + 1;
  if (const auto* joiner = value.shared<Joiner>()) return depth_of(joiner->separator) + 1;
  if (const auto* callable = value.shared<const Callable>()) return depth_of(callable->self) + 1;
  if (const auto* loop = value.shared<LoopState>()) return loop->value_depth + 1;
  return 0;
}

bool is_hashable(const Value& value) {
  if (value.dict() != nullptr) return false;
  if (const Sequence* sequence = value.sequence()) {
    return sequence->kind != SequenceKind::list &&
           std::all_of(sequence->items.begin(), sequence->items.end(), is_hashable);
  }
  const auto* view = value.shared<const DictView>();
  return view == nullptr || view->kind == DictViewKind::values;
}

}  // namespace inferno::jinja
