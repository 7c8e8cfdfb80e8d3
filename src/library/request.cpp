#include "library/request.h"

#include "base/error.h"
#include "service/request_fields.h"

namespace inferno::library {

Request::Request(const Json& fields) {
  if (!fields.is_object()) {
    fail(ErrorKind::invalid_request,
         std::string("expected a JSON object of fields, found ") + fields.type_name());
  }
  for (const auto& [name, value] : fields.items()) set(name, value);
}

void Request::set(const std::string& name, const Json& value) {
  if (!value.is_null()) check_request_field(name, value);
  const std::lock_guard lock(mutex_);
  if (value.is_null()) {
    fields_.erase(name);
  } else {
    fields_[name] = value;
  }
}

void Request::add_message(const std::string& role, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Json& messages = fields_["messages"];
  if (messages.is_null()) messages = Json::array();
  messages.push_back({{"role", role}, {"content", text}});
}

Json Request::fields() const {
  const std::lock_guard lock(mutex_);
  return fields_;
}

TextRequest Request::read() const {
  return read_request(fields(), {});
}

}  // namespace inferno::library
