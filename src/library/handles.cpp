#include "library/handles.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/error.h"

namespace inferno::library {
namespace {

constexpr std::uint64_t kinds = 4;  // a handle is kinds * number + kind

std::string_view name_of(std::uint64_t kind) {
  switch (static_cast<HandleKind>(kind)) {
    case HandleKind::model: return "inferno_model";
    case HandleKind::request: return "inferno_request";
    case HandleKind::answer: return "inferno_answer";
  }
  return "handle";
}

void check_kind(HandleKind kind, std::uint64_t id) {
  const auto wanted = static_cast<std::uint64_t>(kind);
  if (id == 0) {
    fail(
        ErrorKind::invalid_request, fmt::format("{}: expected a handle, found none", name_of(wanted)),
        {.why = "the id is 0: the call that should have made the handle failed or was not made", .next = {}});
  }
  if (id % kinds != wanted) {
    fail(ErrorKind::invalid_request,
         fmt::format("{} {}: this number is of no {}", name_of(wanted), id, name_of(wanted)));
  }
}

[[noreturn]] void refuse_stale(HandleKind kind, std::uint64_t id) {
  fail(ErrorKind::invalid_request,
       fmt::format("{} {}: not a live handle", name_of(static_cast<std::uint64_t>(kind)), id),
       {.why = kind == HandleKind::model ? "the model was unloaded, or never loaded"
                                         : "it was freed, or never made",
        .next = {}});
}

}  // namespace

std::uint64_t HandleTable::add(HandleKind kind, std::shared_ptr<void> object) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = kinds * ++last_ + static_cast<std::uint64_t>(kind);
  objects_.emplace(id, std::move(object));
  return id;
}

std::shared_ptr<void> HandleTable::find(HandleKind kind, std::uint64_t id) const {
  check_kind(kind, id);
  {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(id);
    if (found != objects_.end()) return found->second;
  }
  refuse_stale(kind, id);
}

std::shared_ptr<void> HandleTable::remove(HandleKind kind, std::uint64_t id) {
  check_kind(kind, id);
  {
    const std::lock_guard lock(mutex_);
    if (auto found = objects_.extract(id)) return std::move(found.mapped());
  }
  refuse_stale(kind, id);
}

HandleTable& handle_table() {
  static HandleTable& table = *new HandleTable;
  return table;
}

inferno_model new_handle(std::shared_ptr<Model> model) {
  return {handle_table().add(HandleKind::model, std::move(model))};
}
inferno_request new_handle(std::shared_ptr<Request> request) {
  return {handle_table().add(HandleKind::request, std::move(request))};
}
inferno_answer new_handle(std::shared_ptr<Answer> answer) {
  return {handle_table().add(HandleKind::answer, std::move(answer))};
}

std::shared_ptr<Model> object_of(inferno_model handle) {
  return std::static_pointer_cast<Model>(handle_table().find(HandleKind::model, handle.id));
}
std::shared_ptr<Request> object_of(inferno_request handle) {
  return std::static_pointer_cast<Request>(handle_table().find(HandleKind::request, handle.id));
}
std::shared_ptr<Answer> object_of(inferno_answer handle) {
  return std::static_pointer_cast<Answer>(handle_table().find(HandleKind::answer, handle.id));
}

std::shared_ptr<Model> remove_handle(inferno_model handle) {
  return std::static_pointer_cast<Model>(handle_table().remove(HandleKind::model, handle.id));
}
std::shared_ptr<Request> remove_handle(inferno_request handle) {
  return std::static_pointer_cast<Request>(handle_table().remove(HandleKind::request, handle.id));
}
std::shared_ptr<Answer> remove_handle(inferno_answer handle) {
  return std::static_pointer_cast<Answer>(handle_table().remove(HandleKind::answer, handle.id));
}

}  // namespace inferno::library
