// A model's chat template: Jinja as Hugging Face's apply_chat_template configures it (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, tojson as Python writes it).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chat/jinja/value/meter.h"
#include "chat/json_fwd.h"

namespace inferno::jinja {

struct Program;

// Bytes [begin, end) of a rendered text.
struct Span {
  std::size_t begin, end;
  bool operator==(const Span&) const = default;
};

struct Rendered {
  std::string text;
  // The bytes that came from the variables and not from the template or the model's own files; ascending, not
  // adjacent. A control token must not be recognised if it overlaps one of these. Numbers count as the
  // template's, and so do the well-known roles ("user", "assistant", …) of messages, because templates build
  // control tokens from them.
  std::vector<Span> user_spans;
};

// The local time, to the second.
std::chrono::local_seconds local_now();

struct RenderOptions {
  std::function<std::chrono::local_seconds()> clock = local_now;  // for strftime_now()
  Budgets budgets;
  // Texts from the model's own files, such as bos_token and eos_token: trusted like the template itself.
  std::map<std::string, std::string> model_texts;
};

// Immutable; several threads may render it at once.
class Template {
 public:
  // `name` is the file it came from, for messages. Error{corrupt} for a template that Jinja2 would reject,
  // too; Error{unsupported} for an unknown tag, filter or test and for a template that is too large. Messages
  // name the line.
  static Template parse(const std::string& source, std::string name, const Budgets& budgets = {});

  // `variables` is an object; its members are the template's variables and count as user data.
  // Error{unsupported} if the template rejects the conversation (raise_exception: its message is in what()),
  // uses something unknown or exceeds a budget.
  Rendered render(const Json& variables, const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace inferno::jinja
