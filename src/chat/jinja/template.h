// A model's chat template: Jinja as Hugging Face's apply_chat_template sets it up (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, tojson as Python writes it).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chat/jinja/budgets.h"
#include "chat/json.h"

namespace inferno::jinja {

struct Program;

// Bytes [begin, end) of a rendered text.
struct Span {
  std::size_t begin, end;
  bool operator==(const Span&) const = default;
};

struct Rendered {
  std::string text;
  // What came from the variables and not from the template or the model's own files; ascending, not
  // touching. No control token may be recognised in a match that overlaps one of these. Numbers carry no
  // origin and count as the template's, and so do the well-known roles ("user", "assistant", …) of messages,
  // because templates build control tokens from them.
  std::vector<Span> user_spans;
};

// The wall clock where the reader is, to the second.
std::chrono::local_seconds local_now();

struct RenderOptions {
  std::function<std::chrono::local_seconds()> clock = local_now;  // behind strftime_now()
  Budgets budgets;
  // Texts of the model's own files, such as bos_token and eos_token: trusted like the template itself.
  std::map<std::string, std::string> model_texts;
};

// Immutable; may be rendered from several threads at once.
class Template {
 public:
  // `name` is the file it came from, for messages. Error{corrupt} for a template Jinja2 would refuse too,
  // Error{unsupported} for a tag, filter or test that is not known or a template that is too large; each
  // names the line.
  static Template parse(const std::string& source, std::string name, const Budgets& budgets = {});

  // `variables` is an object; its members are the template's variables and user data. Error{unsupported}
  // when the template refuses the conversation (raise_exception: the message is in what()), uses
  // something unknown or passes a budget.
  Rendered render(const Json& variables, const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace inferno::jinja
