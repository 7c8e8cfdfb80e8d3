// libinferno for C++20: owners for the handles of inferno.h, exceptions for its errors, ranges for the parts
// of an answer. Header-only, and nothing that the C interface cannot do.
#ifndef INFERNO_INFERNO_HPP
#define INFERNO_INFERNO_HPP

#include <inferno/inferno.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace inferno {

// what() is the message; why() and next() may be empty.
class Error : public std::runtime_error {
 public:
  explicit Error(const inferno_error& error)
      : std::runtime_error(error.what), status_(error.status), why_(error.why), next_(error.next) {}
  Error(inferno_status status, const std::string& what, std::string next)
      : std::runtime_error(what), status_(status), next_(std::move(next)) {}
  inferno_status status() const noexcept { return status_; }
  const std::string& why() const noexcept { return why_; }
  const std::string& next() const noexcept { return next_; }

 private:
  inferno_status status_;
  std::string why_, next_;
};

namespace detail {

template <class Struct>
Struct sized() {
  Struct made{};
  made.size = sizeof(Struct);
  return made;
}

// Calls a function of inferno.h with an error after `arguments`; throws Error if it fails.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  auto error = sized<inferno_error>();
  if (function(arguments..., &error) != INFERNO_OK) throw Error(error);
}

// A text or an array of the library. What is read at the same time may grow between two calls.
template <class Element, class Function, class... Arguments>
std::vector<Element> copied(Function function, Arguments... arguments) {
  std::vector<Element> memory(256);  // most results fit, so that they are computed once
  while (true) {
    std::size_t needed = 0;
    auto error = sized<inferno_error>();
    const inferno_status status = function(arguments..., memory.data(), memory.size(), &needed, &error);
    if (status == INFERNO_OK) {
      memory.resize(needed);
      return memory;
    }
    if (status != INFERNO_TOO_SMALL) throw Error(error);
    memory.resize(needed + 1);  // a text ends with a NUL byte
  }
}

template <class Function, class... Arguments>
std::string copied_text(Function function, Arguments... arguments) {
  const std::vector<char> text = copied<char>(function, arguments...);
  return {text.begin(), text.end()};
}

// The library would read only what is before a NUL byte.
inline const char* whole(const std::string& text) {
  if (text.find('\0') == std::string::npos) return text.c_str();
  throw Error(INFERNO_INVALID_REQUEST, "a text has a NUL byte inside",
              "set a field with such a text as JSON, where the byte is \\u0000");
}

// A callback that returns whether it wants more. No exception may pass through the library, so the first one
// is kept and ends what is going on.
template <class... Arguments>
struct Listener {
  std::function<bool(Arguments...)> callback;
  std::exception_ptr thrown = nullptr;

  std::int32_t call(Arguments... arguments) noexcept {
    if (thrown) return 1;
    try {
      return callback(arguments...) ? 0 : 1;
    } catch (...) {
      thrown = std::current_exception();
      return 1;
    }
  }
  void rethrow() const {
    if (thrown) std::rethrow_exception(thrown);
  }
};

// Registers an object with a number, as the context of a callback. Inside a callback the library cannot wait
// for the last call when something is freed: a number then finds nothing, where a pointer would dangle.
template <class Object>
class Registered {
 public:
  Registered() = default;
  explicit Registered(Object object) : object_(std::make_shared<Object>(std::move(object))) {
    const std::lock_guard lock(table().mutex);
    number_ = ++table().last;
    table().objects.emplace(number_, object_);
  }
  Registered(Registered&& other) noexcept
      : object_(std::move(other.object_)), number_(std::exchange(other.number_, 0)) {}
  Registered& operator=(Registered&& other) noexcept {
    Registered taken(std::move(other));
    std::swap(object_, taken.object_);
    std::swap(number_, taken.number_);
    return *this;
  }
  ~Registered() {
    if (number_ == 0) return;
    const std::lock_guard lock(table().mutex);
    table().objects.erase(number_);  // object_ is destroyed later, without the lock
  }
  // nullptr after the destructor. The result keeps the object.
  static std::shared_ptr<Object> find(void* context) {
    const std::lock_guard lock(table().mutex);
    const auto found = table().objects.find(reinterpret_cast<std::uintptr_t>(context));
    return found == table().objects.end() ? nullptr : found->second;
  }
  void* context() const { return reinterpret_cast<void*>(number_); }
  const Object* get() const { return object_.get(); }

 private:
  struct Table {
    std::mutex mutex;
    std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects;
    std::uintptr_t last = 0;
  };
  // Never destroyed: models that are still loaded when the program ends call on.
  static Table& table() {
    static Table* const forever = new Table;
    return *forever;
  }

  std::shared_ptr<Object> object_;
  std::uintptr_t number_ = 0;
};

// Owns a handle and frees it.
template <class Handle, inferno_status (*release)(Handle, inferno_error*)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, Handle{0})) {}
  // Frees what it owned before it returns.
  Owner& operator=(Owner&& other) noexcept {
    const Owner old(std::exchange(handle_, other.give_up()));
    return *this;
  }
  ~Owner() {
    if (handle_.id != 0) release(handle_, nullptr);
  }
  Handle get() const { return handle_; }
  Handle give_up() { return std::exchange(handle_, Handle{0}); }

 private:
  Handle handle_{0};
};

}  // namespace detail

inline std::string version() {
  return inferno_version();
}
// INFERNO_ABI of the library, which may differ from that of the header.
inline std::int32_t abi() {
  return inferno_abi();
}

// Fields by name, as docs/library.md lists them. Texts with a NUL byte inside are refused.
class Request {
 public:
  Request() {
    inferno_request made{0};
    detail::call(inferno_request_new, &made);
    owner_ = Owner(made);
  }
  static Request from_json(const std::string& json) {
    inferno_request made{0};
    detail::call(inferno_request_from_json, detail::whole(json), &made);
    return Request(made);
  }
  Request copy() const {
    inferno_request made{0};
    detail::call(inferno_request_copy, handle(), &made);
    return Request(made);
  }

  Request& set(const std::string& name, const std::string& text) { return set(name, detail::whole(text)); }
  Request& set(const std::string& name, const char* text) {
    detail::call(inferno_request_set_text, handle(), detail::whole(name), text);
    return *this;
  }
  Request& set(const std::string& name, bool flag) { return set_json(name, flag ? "true" : "false"); }
  Request& set(const std::string& name, std::floating_point auto number) {
    detail::call(inferno_request_set_number, handle(), detail::whole(name), static_cast<double>(number));
    return *this;
  }
  Request& set(const std::string& name, std::integral auto integer) {
    if (!std::in_range<std::int64_t>(integer)) return set_json(name, std::to_string(integer));
    detail::call(inferno_request_set_integer, handle(), detail::whole(name),
                 static_cast<std::int64_t>(integer));
    return *this;
  }
  Request& set_json(const std::string& name, const std::string& json) {
    detail::call(inferno_request_set_json, handle(), detail::whole(name), detail::whole(json));
    return *this;
  }
  Request& add_message(const std::string& role, const std::string& text) {
    detail::call(inferno_request_add_message, handle(), detail::whole(role), detail::whole(text));
    return *this;
  }
  std::string json() const { return detail::copied_text(inferno_request_json, handle()); }
  inferno_request handle() const { return owner_.get(); }

 private:
  using Owner = detail::Owner<inferno_request, inferno_request_free>;
  explicit Request(inferno_request made) : owner_(made) {}
  Owner owner_;
};

struct Part {
  inferno_part_kind kind = INFERNO_PART_NONE;
  std::string text, id;
  int call = 0;
};

class Model;

// for (const Part& part : answer) …; destroying it cancels the answer, and so does assigning another one.
class Answer {
 public:
  Answer() = default;
  Answer(Answer&&) noexcept = default;
  Answer& operator=(Answer&& other) noexcept {
    owner_ = std::move(other.owner_);  // first, because it waits for the last call of the old callback
    listener_ = std::move(other.listener_);
    return *this;
  }
  ~Answer() = default;

  // nullopt at the end, a part of kind INFERNO_PART_NONE if the time runs out.
  std::optional<Part> next(std::chrono::milliseconds patience = std::chrono::milliseconds(-1)) {
    auto part = detail::sized<inferno_part>();
    detail::call(inferno_answer_next, handle(), static_cast<std::int64_t>(patience.count()), &part);
    if (part.kind == INFERNO_PART_END) return std::nullopt;
    return Part{part.kind, std::string(part.text, part.length), part.id, part.call};
  }

  class Iterator {
   public:
    using value_type = Part;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Answer& answer) : answer_(&answer), part_(answer.next()) {}
    const Part& operator*() const { return *part_; }
    const Part* operator->() const { return &*part_; }
    Iterator& operator++() {
      part_ = answer_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !part_; }

   private:
    Answer* answer_;
    std::optional<Part> part_;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  // Cancels the answer as soon as a stop is requested, for as long as the result lives.
  auto cancel_with(std::stop_token token) const {
    const auto cancel = [handle = handle()] { inferno_answer_cancel(handle, nullptr); };
    return std::stop_callback<decltype(cancel)>(std::move(token), cancel);
  }
  void cancel() { detail::call(inferno_answer_cancel, handle()); }
  // Whether the answer is over; drops parts that were not read. Throws what its callback has thrown.
  bool wait(std::chrono::milliseconds patience = std::chrono::milliseconds(-1)) {
    std::int32_t is_over = 0;
    detail::call(inferno_answer_wait, handle(), static_cast<std::int64_t>(patience.count()), &is_over);
    if (is_over != 0 && listener_.get() != nullptr) listener_.get()->rethrow();
    return is_over != 0;
  }

  std::string text(inferno_part_kind kind = INFERNO_PART_CONTENT) const {
    return detail::copied_text(inferno_answer_text, handle(), kind);
  }
  std::string tool_calls() const { return detail::copied_text(inferno_answer_tool_calls, handle()); }
  std::string json() const { return detail::copied_text(inferno_answer_json, handle()); }
  inferno_usage usage() const {
    auto found = detail::sized<inferno_usage>();
    detail::call(inferno_answer_usage, handle(), &found);
    return found;
  }
  inferno_answer handle() const { return owner_.get(); }

 private:
  friend class Model;
  using Owner = detail::Owner<inferno_answer, inferno_answer_free>;
  using PartListener = detail::Listener<const inferno_part&>;
  // Before the owner, which waits for the last call when it frees the answer.
  detail::Registered<PartListener> listener_;
  Owner owner_;
};

struct LoadOptions {
  inferno_load_options values = detail::sized<inferno_load_options>();  // texts must exist while loading
  // false cancels; an exception does, too, and is thrown to the caller of Model.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress = {};
  std::function<void(inferno_log_level level, std::string_view message)> log = {};  // exceptions are ignored
};

inline inferno_plan_result plan(const std::string& name, const LoadOptions& options = {}) {
  auto found = detail::sized<inferno_plan_result>();
  detail::call(inferno_plan, detail::whole(name), &options.values, &found);
  return found;
}

inline std::string list_models(const LoadOptions& options = {}) {
  return detail::copied_text(inferno_list_models, &options.values);
}

// Throws an error with status INFERNO_DEVICE if the machine computes something else than the reference.
inline std::string self_test(const LoadOptions& options = {}) {
  return detail::copied_text(inferno_self_test, &options.values);
}

// Destroying it unloads the model, and so does assigning another one. Not in a callback, where a model cannot
// be unloaded: it would stay loaded until the process ends.
class Model {
 public:
  explicit Model(const std::string& name, LoadOptions options = {}) {
    detail::Listener<std::uint64_t, std::uint64_t> progress{std::move(options.progress)};
    if (progress.callback) {
      options.values.progress = [](void* context, std::uint64_t done, std::uint64_t total) {
        return static_cast<decltype(progress)*>(context)->call(done, total);
      };
      options.values.progress_context = &progress;
    }
    if (options.log) {
      log_ = detail::Registered(std::move(options.log));
      options.values.log = [](void* context, inferno_log_level level, const char* message) {
        const auto log = decltype(log_)::find(context);
        try {
          if (log) (*log)(level, message);
        } catch (...) {  // there is no caller to report it to
        }
      };
      options.values.log_context = log_.context();
    }
    inferno_model made{0};
    auto error = detail::sized<inferno_error>();
    const inferno_status status = inferno_model_load(detail::whole(name), &options.values, &made, &error);
    owner_ = Owner(made);
    progress.rethrow();
    if (status != INFERNO_OK) throw Error(error);
  }
  Model(Model&&) noexcept = default;
  Model& operator=(Model&& other) noexcept {
    owner_ = std::move(other.owner_);  // first, because the old model may log until it is unloaded
    log_ = std::move(other.log_);
    return *this;
  }
  ~Model() = default;

  // Refused in a callback, and the model then stays what it was.
  void unload() {
    detail::call(inferno_model_unload, handle());
    owner_.give_up();
  }

  Answer ask(const Request& request) const {
    inferno_answer made{0};
    detail::call(inferno_ask, handle(), request.handle(), &made);
    Answer answer;
    answer.owner_ = Answer::Owner(made);
    return answer;
  }
  // The parts go to `callback`, which returns false to cancel; see inferno_part_callback. An exception in it
  // cancels the answer and is thrown by Answer::wait(). The answer may be destroyed in its own callback,
  // which is not called again.
  Answer ask(const Request& request, std::function<bool(const inferno_part&)> callback) const {
    Answer answer;
    answer.listener_ = detail::Registered(Answer::PartListener{std::move(callback)});
    const inferno_part_callback call = [](void* context, inferno_answer, const inferno_part* part) {
      const auto listener = decltype(answer.listener_)::find(context);
      return listener ? listener->call(*part) : 1;
    };
    inferno_answer made{0};
    detail::call(inferno_ask_with_callback, handle(), request.handle(), call, answer.listener_.context(),
                 &made);
    answer.owner_ = Answer::Owner(made);
    return answer;
  }

  inferno_description describe() const {
    auto found = detail::sized<inferno_description>();
    detail::call(inferno_model_describe, handle(), &found);
    return found;
  }
  inferno_statistics statistics() const {
    auto found = detail::sized<inferno_statistics>();
    detail::call(inferno_model_statistics, handle(), &found);
    return found;
  }
  std::string chat_template() const { return detail::copied_text(inferno_model_template, handle()); }
  std::vector<std::int32_t> tokenize(const std::string& text, std::uint32_t flags = 0) const {
    return detail::copied<std::int32_t>(inferno_tokenize, handle(), detail::whole(text), flags);
  }
  std::string detokenize(std::span<const std::int32_t> tokens, std::uint32_t flags = 0) const {
    return detail::copied_text(inferno_detokenize, handle(), tokens.data(), tokens.size(), flags);
  }
  std::string prompt_text(const Request& request) const {
    return detail::copied_text(inferno_prompt_text, handle(), request.handle());
  }
  std::vector<std::int32_t> prompt_tokens(const Request& request) const {
    return detail::copied<std::int32_t>(inferno_prompt_tokens, handle(), request.handle());
  }
  void keep_prefix(const Request& request) const {
    detail::call(inferno_prefix_keep, handle(), request.handle());
  }
  void drop_prefixes() const { detail::call(inferno_prefix_drop, handle()); }
  // [rows, vocabulary]
  std::vector<float> logits(std::span<const std::int32_t> tokens, std::size_t rows = 1) const {
    return detail::copied<float>(inferno_logits, handle(), tokens.data(), tokens.size(), rows);
  }
  inferno_model handle() const { return owner_.get(); }

 private:
  using Owner = detail::Owner<inferno_model, inferno_model_unload>;
  detail::Registered<std::function<void(inferno_log_level, std::string_view)>> log_;  // before the owner
  Owner owner_;
};

}  // namespace inferno

#endif
