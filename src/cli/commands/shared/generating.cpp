#include "cli/commands/shared/generating.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/download/offer.h"
#include "cli/environment.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "model/load.h"
#include "service/answer.h"
#include "service/batch.h"
#include "service/loading/model_files.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_prompt = std::uint64_t{64} << 20, max_batch = std::uint64_t{1} << 30,
                        max_constraint = std::uint64_t{64} << 20;

Json read_json(const std::string& path) {
  const std::string text = read_file(path, max_constraint, Pipes::accept);
  try {
    return parse_json(text, path, LargeIntegers::round);
  } catch (const Error& error) {
    fail(ErrorKind::invalid_request, error.what());
  }
}

// The options as fields of a request, which are read in one place for all.
Json constraint_fields(const GenerateOptions& options) {
  Json fields = Json::object();
  if (!options.schema.empty()) fields["schema"] = read_json(options.schema);
  if (options.json_object) fields["json_object"] = true;
  if (!options.regex.empty()) fields["regex"] = options.regex;
  if (!options.grammar.empty()) fields["grammar"] = read_file(options.grammar, max_constraint, Pipes::accept);
  if (!options.choices.empty()) fields["choices"] = options.choices;
  if (!options.whitespace.empty()) fields["whitespace"] = options.whitespace;
  if (!options.tools.empty()) fields["tools"] = read_json(options.tools);
  if (!options.tool_choice.empty()) fields["tool_choice"] = options.tool_choice;
  return fields;
}

// Whether standard input is a pipe or a file: `cat text | inferno generate "Summarize"`.
bool has_piped_input() {
  struct stat status{};
  return ::fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

std::string given_prompt(const GenerateOptions& options) {
  if (options.has_argument) return options.argument;
  return options.has_prompt ? options.prompt : read_file(options.file, max_prompt, Pipes::accept);
}

// The model that answers, resolved when it is first asked for: short prompts are read before.
class ChosenModel {
 public:
  explicit ChosenModel(const GenerateOptions& options) : options_(options) {}

  const Environment& environment() const { return environment_; }
  const ResolvedModel& get() {
    if (!model_) model_ = find();
    return *model_;
  }

 private:
  ResolvedModel find() const {
    Catalogue catalogue(catalogue_settings(environment_));
    if (!options_.model.empty())
      return resolve_or_download(catalogue, options_.model, options_.yes, environment_);
    if (!options_.quiet) say("model: builtin (choose another with -m MODEL)\n");
    return catalogue.builtin();
  }

  const GenerateOptions& options_;
  const Environment environment_ = Environment::of_process();
  std::optional<ResolvedModel> model_;
};

// Refuses standard input that cannot fit the context while it is read, before it fills the memory. The model
// is not asked about the first megabyte.
class InputLimit {
 public:
  InputLimit(const GenerateOptions& options, ChosenModel& model) : options_(options), model_(model) {}

  void check(std::size_t bytes) {
    if (bytes <= unasked) return;
    if (!max_bytes_) find();
    if (bytes <= *max_bytes_) return;
    fail(ErrorKind::invalid_request,
         fmt::format("standard input: more than {} bytes cannot fit a context of {} tokens",
                     grouped(std::max(*max_bytes_, unasked)), grouped(context_)),
         {.why = {},
          .next = context_ < model_context_
                      ? fmt::format("shorten it, or choose a longer --context (the model's maximum is {})",
                                    grouped(model_context_))
                      : "shorten it: this is the model's maximum context"});
  }

 private:
  static constexpr std::uint64_t unasked = std::uint64_t{1} << 20;

  // No token stands for more bytes than the longest one.
  void find() {
    const ModelFiles files(model_.get().path);
    model_context_ = static_cast<std::uint64_t>(describe_model(*files.checkpoint()).spec.context);
    const std::uint64_t longest = files.tokenizer()->max_token_bytes();
    const int asked = options_.load.model.context;
    context_ = asked > 0 ? std::min(static_cast<std::uint64_t>(asked), model_context_) : model_context_;
    max_bytes_ = longest == 0 ? std::numeric_limits<std::uint64_t>::max() : longest * context_;
  }

  const GenerateOptions& options_;
  ChosenModel& model_;
  std::optional<std::uint64_t> max_bytes_;
  std::uint64_t context_ = 0, model_context_ = 0;
};

// `what` is read from standard input. If nothing comes for a while, a note says what the program waits for.
std::string read_input(const GenerateOptions& options, ChosenModel& model, std::string_view what,
                       std::string_view skip_advice) {
  InputLimit limit(options, model);
  const bool is_silent = options.quiet || terminal::is_terminal(STDIN_FILENO);
  return read_standard_input(
      max_prompt, {.received = [&](std::size_t bytes) { limit.check(bytes); },
                   .waiting =
                       [&] {
                         if (!is_silent)
                           say(fmt::format("note: waiting for {} on standard input{}\n", what, skip_advice));
                       }});
}

std::string read_prompt(const GenerateOptions& options, ChosenModel& model) {
  const int given = static_cast<int>(options.has_argument) + static_cast<int>(options.has_prompt) +
                    static_cast<int>(!options.file.empty());
  if (given > 1) {
    fail(ErrorKind::invalid_request, "the prompt was given more than once",
         {.why = {}, .next = "pass it once: as an argument, with -p or with -f"});
  }
  const bool is_dash = options.has_argument ? options.argument == "-" : options.file == "-";
  if (given == 1 && !is_dash) {
    std::string prompt = given_prompt(options);
    // A file such as <(command) may be the standard input itself.
    const std::string more =
        has_piped_input() ? read_input(options, model, "the rest of the prompt", "; </dev/null skips it")
                          : "";
    return more.empty() ? prompt : prompt + "\n\n" + more;
  }
  const Advice advice = {.why = {},
                         .next = "pass it as an argument, with -p TEXT, with -f FILE, or on standard input"};
  if (!is_dash && terminal::is_terminal(STDIN_FILENO)) {
    fail(ErrorKind::invalid_request, "no prompt given", advice);
  }
  std::string prompt = read_input(options, model, "the prompt", "");
  if (prompt.find_first_not_of(" \t\r\n") == std::string::npos) {
    fail(ErrorKind::invalid_request, "no prompt given: standard input is empty", advice);
  }
  return prompt;
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
    if (file_ == nullptr)
      fail(ErrorKind::io, fmt::format("{}: cannot write the file: {}", path, std::strerror(errno)),
           {.why = {}, .next = "choose another file, or check the folder and its permissions"});
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

// The prompt as it is; whether it is a message is decided when the model is known.
TextRequest request_of(const GenerateOptions& options, ChosenModel& model) {
  TextRequest request = options.request;
  take_constraint(request, constraint_fields(options));
  request.prompt = read_prompt(options, model);
  return request;
}

// A model that was made for conversations gets a message unless the user wants the text to be continued. A
// prompt with control tokens is a text that was made for the model.
void make_message(const GenerateOptions& options, const TextModel& model, TextRequest& request) {
  const bool is_expected = model.chat() != nullptr && !options.raw && !request.parse_special;
  if (!options.chat && !is_expected) return;
  if (!options.chat && !options.quiet && options.mentions_raw)
    say("note: a chat model answers the prompt; --raw continues it\n");
  request.messages = first_messages(options.system, *request.prompt);
  request.prompt.reset();
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
  for (const std::string& warning : options.quiet ? std::vector<std::string>{} : answer.warnings)
    say(fmt::format("note: {}\n", printable(warning)));
  const bool with_logprobs = request.settings.logprobs.has_value();
  if (options.json) {
    output.write(dumped(json_of(answer, model, with_logprobs)));
  } else if (is_read) {
    if (!streams) is_read = output.write(shown(answer.text));
    // On a terminal the shell's prompt belongs on a line of its own.
    if (is_read && (is_terminal || !answer.text.ends_with('\n'))) output.write("\n");
    if (!answer.tool_calls.empty()) {
      say("note: the answer calls tools; --json shows the calls\n");
    }
  }
  if (was_interrupted()) throw Exit{interrupted_code};
}

void run_batch_file(const GenerateOptions& options, const TextModel& model) {
  const std::string text = options.batch == "-" ? read_standard_input(max_batch)
                                                : read_file(options.batch, max_batch, Pipes::accept);
  std::vector<BatchLine> lines = parse_batch(text, {.request = options.request,
                                                    .constraint = constraint_fields(options),
                                                    .chat = options.chat,
                                                    .system = options.system});
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
    say(fmt::format("error: {} of {} lines failed; their results give the reasons\n", outcome.failed,
                    outcome.written));
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
    say("note: --stream has no effect with --batch: a line is written when its answer is complete\n");
  }
}

}  // namespace

void generate_answers(GenerateOptions& options) {
  terminal::ignore_closed_pipes();
  check_options(options);
  if (!options.system.empty()) options.chat = true;
  const bool is_batch = !options.batch.empty();
  // The prompt is read first: a mistake there should not cost the time to load a model.
  std::optional<TextRequest> request;
  ChosenModel chosen(options);
  if (!is_batch) request = request_of(options, chosen);
  options.load.model.parallel = is_batch ? options.parallel : 1;
  options.load.quiet = options.quiet;
  options.load.shows_meter =
      !options.quiet && chosen.environment().allows_redrawing(terminal::is_terminal(STDERR_FILENO));
  const auto model = load_text_model(chosen.get(), options.load);
  if (is_batch) return run_batch_file(options, *model);
  make_message(options, *model, *request);
  for (const std::string& note : notes_on_effects(*model, *request)) {
    if (!options.quiet) say(fmt::format("note: {}\n", note));
  }
  run_one(options, *model, *request);
}

}  // namespace inferno
