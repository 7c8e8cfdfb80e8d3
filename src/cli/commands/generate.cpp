// `inferno generate`: text from a prompt, for shells and scripts. Only the result goes to stdout.
#include <memory>

#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/generating.h"

namespace inferno::command {
namespace {

void add_input_options(Command command, GenerateOptions& options) {
  const Option argument =
      command.option("PROMPT", options.argument, "the message or the text to continue; - for stdin");
  const Option prompt = command.option("-p,--prompt", options.prompt, "the same, as an option");
  command.option("-f,--file", options.file, "the same, from a file; - for stdin");
  command.option("-m,--model", options.model, std::string(model_help)).check([](const std::string& name) {
    return name.empty() ? "expected a model, found an empty name" : "";
  });
  command.flag("-y,--yes", options.yes, "download a missing model without asking");
  const Option chat = command.flag("--chat", options.chat,
                                   "the prompt is a message; the default for a model with a chat template");
  command.flag("--raw", options.raw, "continue the prompt as it is").excludes(chat);
  command.flag("-q,--quiet", options.quiet, "print nothing on stderr but errors");
  command.option("--system", options.system, "the system prompt; implies --chat");
  command.option("--reasoning-effort", options.request.reasoning_effort, "with --chat: low, medium or high")
      .check(effort_problem);
  command.flag("--think,!--no-think", options.request.think, "with --chat: reason before answering, or not");
  command.flag("--parse-special", options.request.parse_special,
               "control tokens spelled in the prompt are control tokens, not text");
  command.after_parsing([&options, argument, prompt] {
    options.has_argument = argument.was_given();
    options.has_prompt = prompt.was_given();
  });
}

void add_constraint_options(Command command, GenerateOptions& options) {
  const std::vector<Option> texts = {
      command.option("--schema", options.schema, "the answer is JSON that fits this file's JSON schema"),
      command.flag("--json-object", options.json_object, "the answer is any JSON object"),
      command.option("--regex", options.regex, "the whole answer matches this regular expression"),
      command.option("--grammar", options.grammar, "the answer fits this file's grammar, in GBNF"),
      command.option("--choice", options.choices, "the answer is one of these texts; may be repeated")};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) texts[i].excludes(texts[j]);
  }
  command.option("--whitespace", options.whitespace, "blanks in an answer of JSON: flexible, compact")
      .one_of({"flexible", "compact"});
  command.option("--tools", options.tools,
                 "with --chat: a file with a JSON array of tools, as OpenAI's API has them");
  command.option("--tool-choice", options.tool_choice,
                 "auto, none, required, or the name of a function to call");
}

}  // namespace

void generate(CommandLine app) {
  const Command command = app.command("generate", "Write text from a prompt, or answer a file of requests");
  const auto options = std::make_shared<GenerateOptions>();
  add_input_options(command, *options);
  const Option stream = command.flag("--stream,!--no-stream", options->stream,
                                     "show text as it is generated; the default on a terminal");
  command.flag("--json", options->json, "the result as JSON, with counts, timings, seed and finish reason")
      .excludes(stream);
  command.option("--batch", options->batch, "a file of requests, one JSON object per line; - for stdin");
  command.option("--parallel", options->parallel, "with --batch: concurrent requests")
      .range(1, 1024)
      .shows_default();
  command.option("-o,--output", options->output, "write the result to this file instead of stdout");
  add_constraint_options(command, *options);
  add_sampling_options(command, options->request.settings);
  add_load_options(command, options->load);
  command.run([options] { generate_answers(*options); });
}

}  // namespace inferno::command
