// The fields that say what the text of an answer must look like, in the words of several APIs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/constraint/fields.h"

namespace inferno::constraint {
namespace {

using Kind = TextConstraint::Kind;

[[noreturn]] void not_supported(const Field& field, std::string message) {
  throw ConstraintError(field.place, {.kind = grammar::RefusalKind::unsupported,
                                      .pointer = {},
                                      .keyword = {},
                                      .message = std::move(message)});
}

TextConstraint schema_of(const Field& field) {
  const bool is_schema = field && (field.value->is_object() || field.value->is_boolean());
  if (!is_schema) expected("a JSON schema", field);
  return {.kind = Kind::schema, .source = dumped(*field.value), .place = field.place};
}

// vLLM takes a schema also as a text that contains JSON.
TextConstraint schema_or_text(const Field& field) {
  if (!field.value->is_string()) return schema_of(field);
  return {.kind = Kind::schema, .source = text(field), .place = field.place};
}

TextConstraint expression(const Field& field) {
  return {.kind = Kind::regex, .source = text(field), .place = field.place};
}

TextConstraint choice_list(const Field& field) {
  if (!field.value->is_array()) expected("a list of strings", field);
  TextConstraint result{.kind = Kind::choices, .place = field.place};
  for (std::size_t i = 0; i < field.value->size(); ++i) result.choices.push_back(text(element(field, i)));
  return result;
}

// An empty text is no grammar: clients send it for "none".
std::optional<TextConstraint> grammar_rules(const Field& field) {
  std::string source = text(field);
  if (source.empty()) return std::nullopt;
  return TextConstraint{.kind = Kind::grammar, .source = std::move(source), .place = field.place};
}

std::optional<TextConstraint> any_object(const Field& field) {
  if (!flag(field, false)) return std::nullopt;
  return TextConstraint{.kind = Kind::json_object, .place = field.place};
}

// OpenAI's response_format, with the schema beside the type as llama-server takes it; text.format of the
// Responses API and output_config.format of Anthropic's, whose schemas always stand there.
std::optional<TextConstraint> response_format(const Field& field) {
  if (!field.value->is_object()) expected("an object with a \"type\"", field);
  const Field type = member(field, "type");
  const std::string name = text(type);
  const Field beside = member(field, "schema");
  if (name == "text") return std::nullopt;
  if (name == "json_object") {
    return beside ? schema_of(beside) : TextConstraint{.kind = Kind::json_object, .place = field.place};
  }
  if (name == "json_schema") {
    const Field named = member(field, "json_schema");
    flag(member(named ? named : field, "strict"), false);
    if (named) return schema_of(member(named, "schema"));
    // Where chat completions have it.
    const bool is_chat = field.place == "/response_format";
    return schema_of(beside || !is_chat ? beside
                                        : Field{.value = nullptr, .place = field.place + "/json_schema"});
  }
  if (name == "structural_tag" || name == "grammar" || name == "regex" || name == "python") {
    not_supported(type, fmt::format("the response format \"{}\" is not supported", name));
  }
  expected("\"text\", \"json_object\" or \"json_schema\"", type);
}

// Ollama's: "json", or a schema.
std::optional<TextConstraint> ollama_format(const Field& field) {
  if (!field.value->is_string()) return schema_of(field);
  const std::string name = text(field);
  if (name.empty()) return std::nullopt;
  if (name != "json") expected("\"json\" or a JSON schema", field);
  return TextConstraint{.kind = Kind::json_object, .place = field.place};
}

class Candidates {
 public:
  void add(const Field& field, std::optional<TextConstraint> constraint) {
    if (!constraint) return;
    if (found_) {
      reject(field, fmt::format("the answer is already constrained by {}: expected only one constraint",
                                found_->place));
    }
    found_ = std::move(constraint);
  }
  std::optional<TextConstraint> take() { return std::move(found_); }

 private:
  std::optional<TextConstraint> found_;
};

// How each field is read, by its name.
struct Reader {
  const char* name;
  std::optional<TextConstraint> (*read)(const Field& field);
};

template <TextConstraint (*Read)(const Field&)>
std::optional<TextConstraint> always(const Field& field) {
  return Read(field);
}

constexpr Reader fields_of_a_request[] = {
    {"response_format", response_format}, {"json_schema", always<schema_of>},
    {"schema", always<schema_of>},        {"json_object", any_object},
    {"regex", always<expression>},        {"grammar", grammar_rules},
    {"choices", always<choice_list>},     {"guided_json", always<schema_or_text>},
    {"guided_regex", always<expression>}, {"guided_choice", always<choice_list>},
    {"guided_grammar", grammar_rules},    {"format", ollama_format},
    {"output_format", response_format}};

constexpr Reader fields_of_structured_outputs[] = {{"json", always<schema_or_text>},
                                                   {"json_object", any_object},
                                                   {"regex", always<expression>},
                                                   {"choice", always<choice_list>},
                                                   {"grammar", grammar_rules}};

constexpr std::string_view options_of_structured_outputs[] = {"disable_any_whitespace", "disable_fallback",
                                                              "structural_tag", "whitespace_pattern",
                                                              "disable_additional_properties"};

// An unknown word may be a constraint that is not known here.
void check_names(const Field& outputs) {
  bool constrains = false;
  for (const auto& [name, value] : outputs.value->items()) {
    if (value.is_null()) continue;
    const auto has_name = [&](const Reader& reader) { return reader.name == name; };
    const bool is_constraint = std::ranges::any_of(fields_of_structured_outputs, has_name);
    if (!is_constraint &&
        std::ranges::find(options_of_structured_outputs, name) == std::end(options_of_structured_outputs))
      expected("\"json\", \"json_object\", \"regex\", \"choice\" or \"grammar\"",
               member(outputs, name.c_str()));
    constrains = constrains || is_constraint;
  }
  if (!constrains) expected("\"json\", \"json_object\", \"regex\", \"choice\" or \"grammar\"", outputs);
}

void add_structured_outputs(Candidates& candidates, const Field& outputs) {
  if (!outputs) return;
  if (!outputs.value->is_object()) expected("an object", outputs);
  for (const char* name : {"structural_tag", "whitespace_pattern", "disable_additional_properties"}) {
    const Field field = member(outputs, name);
    if (field && *field.value != false) not_supported(field, fmt::format("\"{}\" is not supported", name));
  }
  check_names(outputs);
  const bool compact = flag(member(outputs, "disable_any_whitespace"), false);
  for (const Reader& reader : fields_of_structured_outputs) {
    const Field field = member(outputs, reader.name);
    if (!field) continue;
    auto constraint = reader.read(field);
    if (constraint) constraint->compact = compact;
    candidates.add(field, std::move(constraint));
  }
}

}  // namespace

bool is_text_field(std::string_view name) {
  const auto has_name = [name](const Reader& reader) { return reader.name == name; };
  return name == "structured_outputs" || name == "guided_whitespace_pattern" || name == "text" ||
         name == "output_config" || std::ranges::any_of(fields_of_a_request, has_name);
}

bool is_json(const TextConstraint& constraint) {
  return constraint.kind == Kind::schema || constraint.kind == Kind::json_object;
}

std::optional<TextConstraint> read_text_constraint(const Field& request) {
  Candidates candidates;
  for (const Reader& reader : fields_of_a_request) {
    if (const Field field = member(request, reader.name)) candidates.add(field, reader.read(field));
  }
  const Field pattern = member(request, "guided_whitespace_pattern");
  if (pattern) not_supported(pattern, "\"guided_whitespace_pattern\" is not supported");
  add_structured_outputs(candidates, member(request, "structured_outputs"));
  for (const char* name : {"text", "output_config"}) {
    if (const Field format = member(member(request, name), "format")) {
      candidates.add(format, response_format(format));
    }
  }
  std::optional<TextConstraint> found = candidates.take();
  if (const Field whitespace = member(request, "whitespace")) {
    const std::string name = text(whitespace);
    if (name != "flexible" && name != "compact") expected("\"flexible\" or \"compact\"", whitespace);
    if (found && !is_json(*found))
      reject(whitespace, fmt::format("for JSON only, but the answer is constrained by {}", found->place));
    if (found) found->compact = found->compact || name == "compact";
  }
  return found;
}

}  // namespace inferno::constraint
