// The live handles of the process: the library's only global state. A handle is a number that is looked up
// here, so a stale one is an error and not an access to freed memory.
#pragma once

#include <inferno/inferno.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace inferno::library {

class Model;
class Request;
class Answer;

enum class HandleKind : std::uint64_t { model = 1, request = 2, answer = 3 };

// Thread-safe. Numbers are given once and never again, so a stale one cannot mean another object.
class HandleTable {
 public:
  std::uint64_t add(HandleKind kind, std::shared_ptr<void> object);
  // Error{invalid_request} saying what is wrong with the handle.
  std::shared_ptr<void> find(HandleKind kind, std::uint64_t id) const;
  std::shared_ptr<void> remove(HandleKind kind, std::uint64_t id);

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<void>> objects_;
};

// Of the process. Never destroyed: models that are still loaded when the process ends may have threads that
// run.
HandleTable& handle_table();

inferno_model new_handle(std::shared_ptr<Model> model);
inferno_request new_handle(std::shared_ptr<Request> request);
inferno_answer new_handle(std::shared_ptr<Answer> answer);

std::shared_ptr<Model> object_of(inferno_model handle);
std::shared_ptr<Request> object_of(inferno_request handle);
std::shared_ptr<Answer> object_of(inferno_answer handle);

// The handle is stale afterwards; the object lives as long as a call uses it.
std::shared_ptr<Model> remove_handle(inferno_model handle);
std::shared_ptr<Request> remove_handle(inferno_request handle);
std::shared_ptr<Answer> remove_handle(inferno_answer handle);

}  // namespace inferno::library
