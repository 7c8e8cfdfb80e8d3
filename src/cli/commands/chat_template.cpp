// `inferno template`: the prompt that a model gets for a conversation. A command's function has the name of
// its file, which cannot be template.cpp because that is a C++ keyword.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "chat/conversation.h"
#include "chat/make_chat_format.h"
#include "chat/template_format.h"
#include "checkpoint/open_checkpoint.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_conversation = std::uint64_t{64} << 20;

struct TemplateOptions {
  ResolvedModel model;
  std::string messages;
  std::string now;
  std::optional<std::string> bos, eos;
};

// "2025-08-05T14:30:00", "2025-08-05 14:30" or "2025-08-05": local time in any time zone. A Z at the end, as
// many programs print the time, is accepted.
std::chrono::local_seconds parse_now(const std::string& given) {
  const std::string text = given.find(':') != std::string::npos && given.ends_with('Z')
                               ? given.substr(0, given.size() - 1)
                               : given;
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  char separator = 'T';
  int used = 0;
  const int found = std::sscanf(text.c_str(), "%4d-%2u-%2u%n%c%2u:%2u%n:%2u%n", &year, &month, &day, &used,
                                &separator, &hour, &minute, &used, &second, &used);
  using namespace std::chrono;
  const year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  const bool complete = static_cast<std::size_t>(used) == text.size() && (found == 3 || found >= 6);
  const bool in_range = date.ok() && hour < 24 && minute < 60 && second < 60;
  if (!complete || !in_range || (separator != 'T' && separator != ' ')) {
    fail(ErrorKind::invalid_request,
         fmt::format("--now: expected a local time such as 2025-08-05T14:30:00, found \"{}\"", given));
  }
  return local_days(date) + hours(hour) + minutes(minute) + seconds(second);
}

[[noreturn]] void refuse_conversation(ErrorKind kind, const std::string& problem) {
  fail(kind, problem,
       {.why = {}, .next = R"(pass JSON with --messages, such as [{"role": "user", "content": "Hello"}])"});
}

// What --messages names, as JSON with an array "messages".
Json read_messages(const std::string& path) {
  const bool is_stdin = path == "-";
  const std::string text =
      is_stdin ? read_standard_input(max_conversation) : read_file(path, max_conversation, Pipes::accept);
  const std::string name = is_stdin ? "standard input" : path;
  Json conversation;
  try {
    conversation = parse_json(text, name);
  } catch (const Error& error) {
    refuse_conversation(error.kind(), error.what());
  }
  if (conversation.is_array()) conversation = {{"messages", std::move(conversation)}};
  if (!conversation.is_object() || !conversation.contains("messages")) {
    refuse_conversation(
        ErrorKind::invalid_request,
        fmt::format("{}: expected an array of messages, or an object with \"messages\"", name));
  }
  if (!conversation.at("messages").is_array()) {
    refuse_conversation(ErrorKind::invalid_request,
                        fmt::format("{}: messages: expected an array, found {}", name,
                                    conversation.at("messages").type_name()));
  }
  return conversation;
}

// The variables of apply_chat_template: those it always passes are set even if the file does not have them.
Json read_conversation(const std::string& path) {
  Json conversation = read_messages(path);
  for (const char* name : {"tools", "documents"}) {
    if (!conversation.contains(name)) conversation[name] = nullptr;
  }
  if (!conversation.contains("add_generation_prompt")) conversation["add_generation_prompt"] = false;
  return conversation;
}

// As a conversation: every key but messages, tools and add_generation_prompt is a template variable.
Conversation as_conversation(const Json& file) {
  Conversation conversation;
  conversation.variables = Json::object();
  for (const auto& [name, value] : file.items()) {
    if (name == "messages") {
      conversation.messages = value;
    } else if (name == "tools") {
      conversation.tools = value;
    } else if (name == "add_generation_prompt") {
      conversation.add_generation_prompt = value.is_boolean() && value.get<bool>();
    } else {
      conversation.variables[name] = value;
    }
  }
  return conversation;
}

// The tokenizer of a model that may speak native Harmony; nullptr if its template rules that out, so that a
// template is printed even if the tokenizer of its model is not supported.
std::unique_ptr<Tokenizer> harmony_tokenizer(const ModelFiles& files) {
  if (!files.has_tokenizer()) return nullptr;
  const ModelTemplates templates = files.templates();
  if (templates.usual && templates.usual->source.find("<|channel|>") == std::string::npos) return nullptr;
  auto tokenizer = files.tokenizer();
  return is_o200k_harmony(*tokenizer) ? std::move(tokenizer) : nullptr;
}

std::string text_for(const TemplateOptions& options, const Json& file) {
  ChatOptions chat;
  if (!options.now.empty()) chat.clock = [now = parse_now(options.now)] { return now; };
  const bool is_model = std::filesystem::is_directory(options.model.path) || is_gguf_file(options.model.path);
  std::optional<ModelFiles> files;
  if (is_model) {
    files.emplace(options.model.path);
    if (const auto tokenizer = harmony_tokenizer(*files)) {
      return files->chat_format(*tokenizer, chat)->render(as_conversation(file)).text;
    }
  }
  const Json& tools = file.at("tools");
  TemplateSource source = files ? files->chat_template(tools.is_array() && !tools.empty())
                                : read_template_file(options.model.path);
  if (options.bos) source.model_texts["bos_token"] = *options.bos;
  if (options.eos) source.model_texts["eos_token"] = *options.eos;
  jinja::RenderOptions render;
  render.model_texts = source.model_texts;
  render.clock = chat.clock;
  // A .jinja file sees the variables as they are; a model's template sees those of a chat request.
  const Json variables = is_model ? template_variables(as_conversation(file), source.source) : file;
  return parse_template(source).render(variables, render).text;
}

void run(const TemplateOptions& options) {
  const std::string text = text_for(options, read_conversation(options.messages));
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail(ErrorKind::io, "cannot write to stdout");
  }
}

}  // namespace

void chat_template(CommandLine app) {
  const Command command = app.command("template", "Print the text that a model gets for a conversation");
  const auto options = std::make_shared<TemplateOptions>();
  add_model_argument(command, options->model, "a .jinja file").required();
  command
      .option("--messages", options->messages,
              "a file with a JSON object, \"messages\" and other variables, or the array alone; - for stdin")
      .required();
  command.option("--now", options->now, "local time the template sees, such as 2025-08-05T14:30:00");
  command.option("--bos", options->bos, "the bos_token the template sees");
  command.option("--eos", options->eos, "the eos_token the template sees");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
