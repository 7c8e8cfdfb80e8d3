// A request as the caller builds it: fields by name, checked one by one.
#pragma once

#include <mutex>
#include <string>

#include "chat/json.h"
#include "service/text_model.h"

namespace inferno::library {

// Thread-safe.
class Request {
 public:
  Request() = default;
  // Error{invalid_request} for a field that read_request() would refuse.
  explicit Request(const Json& fields);

  // null removes the field. Error{invalid_request} naming the field if it is unknown or its value is wrong.
  void set(const std::string& name, const Json& value);
  void add_message(const std::string& role, const std::string& text);
  Json fields() const;
  TextRequest read() const;  // errors of read_request()

 private:
  mutable std::mutex mutex_;
  Json fields_ = Json::object();
};

}  // namespace inferno::library
