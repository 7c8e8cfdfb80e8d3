// `inferno generate`: text from a prompt, for shells and scripts. Only the result goes to stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/utf8.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/download/offer.h"
#include "cli/environment.h"
#include "cli/loading.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "service/answer.h"
#include "service/batch.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_prompt = std::uint64_t{64} << 20, max_batch = std::uint64_t{1} << 30;

struct GenerateOptions {
  std::string model, argument, prompt, file, batch, output, system;
  bool has_argument = false, has_prompt = false, chat = false, json = false, yes = false;
  std::optional<bool> stream;
  int parallel = 16;
  TextRequest request;
  LoadOptions load;
};

std::string read_prompt(const GenerateOptions& options) {
  const int given = static_cast<int>(options.has_argument) + static_cast<int>(options.has_prompt) +
                    static_cast<int>(!options.file.empty());
  if (given > 1) {
    fail(ErrorKind::invalid_request, "the prompt was given more than once",
         {.why = {}, .next = "pass it once: as an argument, with -p or with -f"});
  }
  if (options.has_argument && options.argument != "-") return options.argument;
  if (options.has_prompt) return options.prompt;
  if (!options.file.empty()) return read_file(options.file, max_prompt, Pipes::accept);
  if (!options.has_argument && terminal::is_terminal(STDIN_FILENO)) {
    fail(ErrorKind::invalid_request, "no prompt given",
         {.why = {}, .next = "pass it as an argument, with -p TEXT, with -f FILE, or on standard input"});
  }
  return read_standard_input();
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Where results go: stdout, or a file.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "wb");
    if (file_ == nullptr) fail(ErrorKind::io, fmt::format("{}: cannot write the file", path));
    descriptor_ = ::fileno(file_);
  }
  ~Output() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool write(std::string_view text) const { return terminal::write_out(descriptor_, text); }
  bool is_terminal() const { return terminal::is_terminal(descriptor_); }

 private:
  std::FILE* file_ = nullptr;
  int descriptor_ = STDOUT_FILENO;
};

bool was_interrupted() {
  return SignalWatcher::received() != 0;
}

TextRequest request_of(const GenerateOptions& options) {
  TextRequest request = options.request;
  const std::string prompt = read_prompt(options);
  if (options.chat) {
    request.messages = first_messages(options.system, prompt);
  } else {
    request.prompt = prompt;
  }
  return request;
}

void run_one(const GenerateOptions& options, const TextModel& model, const TextRequest& request) {
  const Output output(options.output);
  const bool is_terminal = output.is_terminal();
  const bool streams = !options.json && options.stream.value_or(is_terminal);
  const SignalWatcher interrupt;
  // A model's text must not control the terminal; a file or a pipe gets every byte.
  const auto shown = [&](const std::string& text) { return is_terminal ? printable(text) : text; };
  bool is_read = true;
  const Answer answer =
      write_answer(model, model.prepare(request), was_interrupted, [&](const ReplyPart& part) {
        const auto* content = std::get_if<ContentDelta>(&part);
        if (streams && content != nullptr) is_read = output.write(shown(content->text));
        return is_read;
      });
  for (const std::string& warning : answer.warnings) fmt::print(stderr, "note: {}\n", printable(warning));
  const bool with_logprobs = request.settings.logprobs.has_value();
  if (options.json) {
    Json json = json_of(answer, model.tokenizer(), with_logprobs);
    json["timings"]["load_ms"] = model.load_seconds() * 1e3;
    output.write(dumped(json));
  } else if (is_read) {
    if (!streams) is_read = output.write(shown(answer.text));
    // On a terminal the shell's prompt belongs on a line of its own.
    if (is_read && (is_terminal || !answer.text.ends_with('\n'))) output.write("\n");
    if (!answer.tool_calls.empty()) {
      fmt::print(stderr, "note: the answer calls tools; --json shows the calls\n");
    }
  }
  if (was_interrupted()) throw Exit{interrupted_code};
}

void run_batch_file(const GenerateOptions& options, const TextModel& model) {
  const std::string text =
      options.batch == "-" ? read_standard_input() : read_file(options.batch, max_batch, Pipes::accept);
  std::vector<BatchLine> lines =
      parse_batch(text, {.request = options.request, .chat = options.chat, .system = options.system});
  const Output output(options.output);
  const SignalWatcher interrupt;
  std::optional<ProgressBar> bar;
  if (options.load.shows_meter) bar.emplace(lines.size());
  const BatchOutcome outcome =
      run_batch(model, std::move(lines), options.parallel,
                {.write = [&](const Json& result) { return output.write(dumped(result)); },
                 .is_cancelled = was_interrupted,
                 .progress =
                     [&](std::size_t results, std::size_t tokens) {
                       if (bar) bar->show(results, tokens);
                     }});
  bar.reset();
  if (outcome.cancelled) throw Exit{interrupted_code};
  if (outcome.failed > 0) {
    fmt::print(stderr, "error: {} of {} lines failed; their results give the reasons\n", outcome.failed,
               outcome.written);
    throw Exit{1};
  }
}

void check_options(const GenerateOptions& options) {
  const bool is_batch = !options.batch.empty();
  if (options.request.settings.logprobs && !options.json && !is_batch) {
    fail(ErrorKind::invalid_request, "--logprobs needs --json",
         {.why = "plain text cannot show log probabilities", .next = {}});
  }
  if (is_batch && (options.has_argument || options.has_prompt || !options.file.empty())) {
    fail(ErrorKind::invalid_request, "--batch and a prompt: expected only one",
         {.why = "each line of the batch file has its own prompt", .next = {}});
  }
  if (is_batch && options.stream.value_or(false)) {
    fmt::print(stderr,
               "note: --stream has no effect with --batch: a line is written when its answer is complete\n");
  }
}

ResolvedModel chosen_model(const GenerateOptions& options, const Environment& environment) {
  Catalogue catalogue(catalogue_settings(environment));
  if (!options.model.empty()) {
    return resolve_or_download(catalogue, options.model, options.yes, hub_settings(environment));
  }
  fmt::print(stderr, "model: builtin (choose another with -m MODEL)\n");
  return catalogue.builtin();
}

void run(GenerateOptions& options) {
  terminal::ignore_closed_pipes();
  check_options(options);
  if (!options.system.empty()) options.chat = true;
  const bool is_batch = !options.batch.empty();
  // The prompt is read first: a mistake there should not cost the time to load a model.
  std::optional<TextRequest> request;
  if (!is_batch) request = request_of(options);
  const Environment environment = Environment::of_process();
  options.load.model.parallel = is_batch ? options.parallel : 1;
  options.load.shows_meter = environment.allows_redrawing(terminal::is_terminal(STDERR_FILENO));
  const auto model = load_text_model(chosen_model(options, environment), options.load);
  if (is_batch) return run_batch_file(options, *model);
  for (const std::string& note : notes_on_effects(*model, *request)) fmt::print(stderr, "note: {}\n", note);
  run_one(options, *model, *request);
}

void add_input_options(Command command, GenerateOptions& options) {
  const Option argument = command.option("PROMPT", options.argument, "the text to continue; - for stdin");
  const Option prompt = command.option("-p,--prompt", options.prompt, "the same, as an option");
  command.option("-f,--file", options.file, "the same, from a file");
  command.option("-m,--model", options.model, std::string(model_help)).check([](const std::string& name) {
    return name.empty() ? "expected a model, found an empty name" : "";
  });
  command.flag("-y,--yes", options.yes, "download a missing model without asking");
  command.flag("--chat", options.chat, "the prompt is a message, put into the model's chat template");
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
  add_sampling_options(command, options->request.settings);
  add_load_options(command, options->load);
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
