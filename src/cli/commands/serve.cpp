// `inferno serve`: a model behind an OpenAI-compatible API and a chat page.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/host_name.h"
#include "base/signals.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/jinja/template.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/service_manager.h"
#include "cli/download/offer.h"
#include "cli/environment.h"
#include "cli/loading.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"
#include "server/server.h"

namespace inferno::command {
namespace {

constexpr std::uint64_t max_key_file = 1 << 20;

struct ServeOptions {
  std::string model;
  bool yes = false;
  std::vector<std::string> aliases, keys;
  std::string key_file, template_file, template_variables;
  bool allows_no_key = false;
  double drain_delay = 0, drain_timeout = 30, request_timeout = 600;
  std::array<double, 5> times = {};  // seconds, in the order of time_options
  int max_body_megabytes = 8, max_body_memory_megabytes = 256;
  server::ServerOptions server;
  LoadOptions load;
};

// Seconds on the command line, milliseconds inside.
struct TimeOption {
  const char *names, *help;
  std::chrono::milliseconds server::HttpOptions::* time;
};
constexpr TimeOption time_options[] = {
    {"--header-timeout", "seconds for the head of a request", &server::HttpOptions::head_timeout},
    {"--body-timeout", "seconds between two pieces of a request's body", &server::HttpOptions::body_timeout},
    {"--write-timeout", "seconds that a client may leave an answer unread",
     &server::HttpOptions::write_timeout},
    {"--keep-alive-timeout,--timeout-keep-alive", "seconds that a connection stays open without a request",
     &server::HttpOptions::idle_timeout},
    {"--ping-interval,--sse-ping-interval", "seconds without a token until a stream gets a comment",
     &server::HttpOptions::ping_after},
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int>(seconds * 1000));
}

bool is_wildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

// One key per line; blank lines and lines that begin with # are skipped.
void add_keys(std::vector<std::string>& keys, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    if (!line.empty() && line.front() != '#') keys.emplace_back(line);
    at = end + 1;
  }
}

void add_keys_of_file(std::vector<std::string>& keys, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool is_open = (status.permissions() & fs::perms::others_read) != fs::perms::none;
  if (fs::is_regular_file(status) && is_open) {
    say(fmt::format("warning: every user of this machine can read the keys in {} (chmod 600 {})\n",
                    printable(path), printable(path)));
  }
  add_keys(keys, read_file(path, max_key_file, Pipes::accept));
}

std::vector<std::string> keys_of(const ServeOptions& options, const Environment& environment) {
  std::vector<std::string> keys = options.keys;
  if (!keys.empty()) {
    say("note: other users of this machine can see --api-key in the list of processes; "
        "--api-key-file and INFERNO_API_KEY are not visible\n");
  }
  if (!options.key_file.empty()) add_keys_of_file(keys, options.key_file);
  if (const auto key = environment.get("INFERNO_API_KEY")) keys.push_back(*key);
  if (const auto file = environment.get("INFERNO_API_KEY_FILE")) {
    add_keys_of_file(keys, *file);
  }
  const bool asked = !options.key_file.empty() || environment.get("INFERNO_API_KEY_FILE");
  if (asked && keys.empty()) {
    fail(ErrorKind::invalid_request, "the file of API keys has no key",
         {.why = {}, .next = "write one key per line into it"});
  }
  return keys;
}

void check_reach(const ServeOptions& options) {
  const std::string& host = options.server.http.host;
  if (is_loopback(host) || !options.server.access.keys.empty()) return;
  if (options.allows_no_key) {
    say(fmt::format("warning: everyone who can reach {} may use this server: it has no API key\n", host));
    return;
  }
  fail(ErrorKind::invalid_request,
       fmt::format("--host {}: other machines could use this server without a key", host),
       {.why = {},
        .next = "set INFERNO_API_KEY or pass --api-key-file FILE; to serve without a key pass --no-key"});
}

void set_body_limits(ServeOptions& options) {
  if (options.max_body_memory_megabytes < options.max_body_megabytes) {
    fail(ErrorKind::invalid_request,
         fmt::format("--max-body-memory {}: less than one request may have (--max-body {})",
                     options.max_body_memory_megabytes, options.max_body_megabytes),
         {.why = {}, .next = "raise --max-body-memory or lower --max-body"});
  }
  server::HttpOptions& http = options.server.http;
  http.max_body = static_cast<std::size_t>(options.max_body_megabytes) << 20;
  http.max_body_memory = static_cast<std::size_t>(options.max_body_memory_megabytes) << 20;
}

// Browsers send scheme, host and port, and nothing else could ever be equal to it.
void check_origins(const std::vector<std::string>& origins) {
  for (const std::string& origin : origins) {
    const std::size_t scheme = origin.find("://");
    const bool is_origin = (origin.starts_with("http://") || origin.starts_with("https://")) &&
                           scheme + 3 < origin.size() && origin.find('/', scheme + 3) == std::string::npos;
    if (is_origin || origin == "*") continue;
    fail(ErrorKind::invalid_request, fmt::format("--cors-origin {}: not an origin", origin),
         {.why = {},
          .next = "write it as browsers send it, such as https://chat.example or http://localhost:3000"});
  }
}

// Before anything is loaded, and before clients can connect.
void check_template(const std::string& given) {
  if (given.empty()) return;
  const std::string what = fmt::format("--chat-template-file {}", quote(given));
  if (given.find("{%") != std::string::npos || given.find("{{") != std::string::npos) {
    fail(ErrorKind::invalid_request, "--chat-template-file: expected a file, found a template",
         {.why = {}, .next = "write the template to a file and pass its path"});
  }
  if (!std::filesystem::exists(given)) {
    fail(ErrorKind::not_found, what + ": no such file",
         {.why = "templates are known by the model, not by names such as chatml",
          .next = "leave it out to use the model's own, or pass a file with a Jinja template"});
  }
  jinja::Template::parse(read_file(given, jinja::Budgets{}.source_bytes), printable(given));
}

ResolvedModel chosen_model(const ServeOptions& options, const Environment& environment) {
  Catalogue catalogue(catalogue_settings(environment));
  if (!options.model.empty()) {
    return resolve_or_download(catalogue, options.model, options.yes, environment);
  }
  say("model: builtin (choose another with inferno serve MODEL)\n");
  return catalogue.builtin();
}

// What a path is called in the API: clients need not know where files are on this machine.
std::string served_name(const std::string& given, const ResolvedModel& resolved) {
  if (given.empty() || !std::filesystem::exists(given)) return resolved.name;
  const std::filesystem::path path = std::filesystem::weakly_canonical(given);
  return path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
}

std::string url_of(const ServeOptions& options, int port) {
  const auto& http = options.server.http;
  const bool is_ipv6 = http.host.find(':') != std::string::npos;
  std::string host = is_ipv6 ? "[" + http.host + "]" : http.host;
  if (is_wildcard(http.host)) host = "localhost";
  return fmt::format("{}://{}:{}", http.certificate_file.empty() ? "http" : "https", host, port);
}

void print_ready(const ServeOptions& options, const std::string& url, const TextModel& model) {
  const std::string key = options.server.access.keys.empty() ? "none" : "YOUR_KEY";
  const EngineStats stats = model.engine().stats();
  const int context = model.engine().context();
  fmt::print("ready in {:.1f} s: {} as \"{}\"\n", model.load_seconds(), model.name(),
             options.server.settings.names[0]);
  if (options.server.settings.has_page) fmt::print("chat page   {}/\n", url);
  fmt::print("OpenAI      export OPENAI_BASE_URL={}/v1 OPENAI_API_KEY={}\n", url, key);
  fmt::print("Anthropic   export ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY={}\n", url, key);
  fmt::print("context     {} tokens; the KV cache of {} holds {} of this length\n", context,
             human_size(stats.cache_bytes),
             stats.full_sequences == 1 ? "one request" : fmt::format("{} requests", stats.full_sequences));
  fmt::print("KV cache    {}, {} bytes a token\n", name_of(stats.cache_types), stats.cache_token_bytes);
  fmt::print("at once     up to {} answers; {} more requests may wait\n", stats.max_sequences,
             options.load.model.max_waiting);
  if (is_loopback(options.server.http.host)) {
    fmt::print("reach       only this machine; --host 0.0.0.0 with an API key opens it to others\n");
  } else if (is_wildcard(options.server.http.host)) {
    fmt::print("reach       every address of this machine; elsewhere use its name in place of localhost\n");
  }
  const int model_context = model.engine().limits().model_context;
  const int wanted = options.load.model.context == 0 ? model_context : options.load.model.context;
  if (context < wanted) {
    say(
        fmt::format("warning: the context has {} tokens instead of {} because the KV cache holds no more; "
                    "--kv-cache-memory-bytes gives it more memory\n",
                    context, wanted));
  }
  std::fflush(stdout);
}

// Loads in the background, so that /health answers and signals are seen meanwhile.
int serve_until_signal(const ServeOptions& options, ResolvedModel resolved, ServiceManager& manager) {
  SignalWatcher watcher(stop_signals);
  server::Server server(options.server);
  server.start();
  const std::string url = url_of(options, server.port());
  fmt::print("listening on {}\n", url);
  std::fflush(stdout);
  manager.notify(fmt::format("STATUS=Loading {}", options.server.settings.names[0]));
  auto loading = std::async(std::launch::async, [&options, resolved = std::move(resolved)] {
    return std::shared_ptr<const TextModel>(load_text_model(resolved, options.load));
  });
  std::shared_ptr<const TextModel> model;
  // An engine that has failed shows no sign of life, so that the service manager starts another one.
  const auto keep_alive = [&] {
    if (model == nullptr || model->engine().healthy()) {
      manager.keep_alive(model == nullptr ? 0 : model->engine().heartbeat_age());
    }
  };
  while (SignalWatcher::received() == 0) {
    constexpr std::chrono::milliseconds pause(10);
    keep_alive();
    if (model != nullptr) {
      std::this_thread::sleep_for(pause);
    } else if (loading.wait_for(pause) == std::future_status::ready) {
      model = loading.get();
      server.set_model(model);
      print_ready(options, url, *model);
      manager.notify(fmt::format("READY=1\nSTATUS=Serving {} at {}", options.server.settings.names[0], url));
    }
  }
  watcher.clear();
  manager.notify("STOPPING=1\nSTATUS=Finishing running answers");
  if (model == nullptr) {
    // Reading weights cannot be interrupted. Only requests that wait for them get an answer first.
    if (options.server.waits_for_model) server.drain([] { return SignalWatcher::received() != 0; });
    std::_Exit(0);
  }
  say(fmt::format("stopping: running answers have {:g} s; a second signal ends at once\n",
                  options.drain_timeout));
  const bool finished = server.drain([&] {
    keep_alive();
    return SignalWatcher::received() != 0;
  });
  if (!finished) say("stopped before all answers were finished\n");
  return 0;
}

void run(ServeOptions& options) {
  terminal::ignore_closed_pipes();
  const Environment environment = Environment::of_process();
  server::ServerOptions& server = options.server;
  server.access.keys = keys_of(options, environment);
  set_body_limits(options);
  for (std::size_t i = 0; i < std::size(time_options); ++i) {
    server.http.*time_options[i].time = milliseconds(options.times[i]);
  }
  ServiceManager manager(environment);
  server.http.listeners = manager.sockets();
  server.waits_for_model = !manager.sockets().empty();
  if (std::string host = manager.host(); !host.empty()) server.http.host = std::move(host);
  server.access.is_loopback = is_loopback(server.http.host);
  check_reach(options);
  check_origins(server.access.cors_origins);
  check_template(options.template_file);
  server.drain_delay = milliseconds(options.drain_delay);
  server.drain_timeout = milliseconds(options.drain_timeout);
  server.settings.max_request_time = milliseconds(options.request_timeout);
  // Every thread of the server writes to the log, so none may wait for its reader.
  const auto log = std::make_shared<terminal::LineWriter>(STDERR_FILENO);
  server.log.write = [log](std::string_view line) { log->write(line); };
  server.settings.version = version;
  if (server.settings.worker.empty()) {
    std::array<char, 256> name = {};
    if (::gethostname(name.data(), name.size() - 1) == 0) server.settings.worker = name.data();
  }
  if (!options.template_variables.empty()) {
    server.settings.template_variables = parse_json(options.template_variables, "--chat-template-kwargs");
    if (!server.settings.template_variables.is_object()) {
      fail(ErrorKind::invalid_request, "--chat-template-kwargs: expected a JSON object");
    }
  }
  options.load.model.chat_template_file = options.template_file;
  if (options.load.model.max_waiting == 0) options.load.model.max_waiting = 2 * options.load.model.parallel;
  ResolvedModel resolved = chosen_model(options, environment);
  std::vector<std::string>& names = server.settings.names = options.aliases;
  // Responses need a name even if any is answered.
  std::ranges::stable_partition(names, [](const std::string& name) { return name != "*"; });
  if (names.empty() || names.front() == "*") {
    names.insert(names.begin(), served_name(options.model, resolved));
  }
  options.load.shows_meter = environment.allows_redrawing(terminal::is_terminal(STDERR_FILENO));
  if (const int code = serve_until_signal(options, std::move(resolved), manager)) throw Exit{code};
}

void add_address_options(Command command, ServeOptions& options) {
  server::HttpOptions& http = options.server.http;
  command.option("--host", http.host, "the address to listen on; 0.0.0.0 for all, which needs an API key")
      .shows_default()
      .group("Network");
  command.option("--port", http.port, "0: any free port, which is printed")
      .range(0, 65535)
      .shows_default()
      .group("Network");
  command.option("--api-key", options.keys, "a key that clients must send; may be given several times")
      .separated_by(',')
      .single_value()
      .group("Network");
  command.option("--api-key-file", options.key_file, "a file with one key per line").group("Network");
  command.flag("--no-key,--insecure-no-auth", options.allows_no_key, "serve other machines without a key")
      .group("Network");
  command
      .option("--ssl-cert-file,--ssl-certfile", http.certificate_file,
              "serve HTTPS: the certificate chain, PEM")
      .group("Network");
  command.option("--ssl-key-file,--ssl-keyfile", http.key_file, "its private key, PEM").group("Network");
  command
      .option("--allowed-host", options.server.access.allowed_hosts,
              "a further name in the Host header that is answered on a loopback address")
      .single_value()
      .group("Network");
  command
      .option("--cors-origin,--cors-origins", options.server.access.cors_origins,
              "an origin whose web pages may use the server; may be given several times")
      .single_value()
      .group("Network");
  command.option("--max-connections", http.max_connections, "open connections")
      .range(1, 1 << 20)
      .shows_default()
      .group("Network");
  command
      .option("--max-connections-per-address", http.max_connections_per_address,
              "open connections from one address other than loopback; raise it behind a proxy")
      .range(1, 1 << 20)
      .shows_default()
      .group("Network");
  command.option("--max-body", options.max_body_megabytes, "size limit of a request, in MiB")
      .range(1, 1024)
      .shows_default()
      .group("Network");
  command
      .option("--max-body-memory", options.max_body_memory_megabytes,
              "size limit of all requests together that are being read, in MiB; further ones get 503")
      .range(1, 1 << 20)
      .shows_default()
      .group("Network");
}

void add_time_options(Command command, ServeOptions& options) {
  for (std::size_t i = 0; i < std::size(time_options); ++i) {
    double& seconds = options.times[i];
    seconds = std::chrono::duration<double>(options.server.http.*time_options[i].time).count();
    command.option(time_options[i].names, seconds, time_options[i].help)
        .range(0.001, 86400.0)
        .shows_default()
        .group("Network");
  }
  command
      .option("--request-timeout", options.request_timeout,
              "seconds from the arrival of a request to its last token")
      .range(0.1, 86400.0)
      .shows_default()
      .group("Network");
  command
      .option("--drain-delay", options.drain_delay,
              "after a signal, accept connections for this many seconds more")
      .range(0.0, 3600.0)
      .shows_default()
      .group("Network");
  command
      .option("--drain-timeout,--shutdown-timeout", options.drain_timeout,
              "then let running answers finish for this many seconds")
      .range(0.0, 86400.0)
      .shows_default()
      .group("Network");
}

void add_api_options(Command command, ServeOptions& options) {
  server::ServerSettings& settings = options.server.settings;
  command
      .option("-a,--alias,--served-model-name", options.aliases,
              "names of the model in the API, the first one in responses; * for any")
      .separated_by(',');
  command.option("--chat-template-file,--chat-template", options.template_file,
                 "a Jinja file instead of the model's own template");
  command.option("--chat-template-kwargs,--default-chat-template-kwargs", options.template_variables,
                 "template variables as a JSON object, below those of a request");
  command.choice("--reasoning-format", settings.reasoning_format,
                 {{"both", server::ReasoningFormat::both},
                  {"auto", server::ReasoningFormat::both},
                  {"reasoning", server::ReasoningFormat::reasoning},
                  {"reasoning_content", server::ReasoningFormat::reasoning_content},
                  {"deepseek", server::ReasoningFormat::reasoning_content},
                  {"none", server::ReasoningFormat::none}},
                 "the fields of a message that have the model's reasoning; none: it stays in the content");
  command
      .option("--reasoning-effort", settings.reasoning_effort,
              "the default of requests: none, minimal, low, medium, high, xhigh or max")
      .check(effort_problem);
  command.option("--worker", settings.worker,
                 "the name in the header x-inferno-worker; the host name unless given");
  command.flag("!--no-timings", settings.timings, "leave \"timings\" and \"inferno\" out of responses");
  command.flag("!--no-metrics", settings.has_metrics, "no /metrics");
  command.flag("--public-metrics", options.server.public_metrics, "/metrics without the API key");
  command.flag("!--no-ui,!--no-webui", settings.has_page, "no chat page at /");
  command.choice("--log-format", options.server.log.format,
                 {{"text", server::LogFormat::text}, {"json", server::LogFormat::json}},
                 "one line per request on stderr");
  command.choice("--log-level", options.server.log.level,
                 {{"debug", server::LogLevel::debug},
                  {"info", server::LogLevel::info},
                  {"warning", server::LogLevel::warning},
                  {"error", server::LogLevel::error},
                  {"off", server::LogLevel::off}},
                 "the least important lines to write");
}

void add_model_options(Command command, ServeOptions& options) {
  TextModelOptions& model = options.load.model;
  command.option("MODEL,-m,--model,--hf,--hf-repo", options.model, std::string(model_help));
  command.flag("-y,--yes", options.yes, "download a missing model without asking");
  add_load_options(command, options.load);
  command.option("--np,--parallel,--max-num-seqs", model.parallel, "answers at once")
      .range(1, 1024)
      .shows_default();
  command
      .option("--max-queue", model.max_waiting,
              "requests that may wait; further ones get 429; 0: twice --parallel")
      .range(0, 1 << 20)
      .shows_default();
  command
      .option("-b,--batch-size,--max-num-batched-tokens", model.max_step_tokens,
              "tokens of one step; 0: chosen")
      .range(0, 1 << 20)
      .shows_default();
  command
      .option(
          "--kv-cache-memory-bytes",
          [&model](const std::string& text) { model.cache_bytes = *parse_size(text); },
          "memory for the KV cache, such as 8G or 4800M, or in bytes; 0: chosen (default: 0)")
      .check([](const std::string& text) -> std::string {
        if (parse_size(text)) return "";
        return fmt::format("expected a size such as 8G, 4800M or 8000000000, found {}", quote(text));
      })
      .value_name("SIZE");
  command.option(
      "--ngl,--gpu-layers,--n-gpu-layers",
      [&model](const std::string& layers) {
        if (layers == "0") model.device.device = "cpu";
      },
      "0: the CPU; any other number: all layers on the GPU");
}

}  // namespace

void serve(CommandLine app) {
  const Command command =
      app.command("serve", "Serve a model over HTTP: OpenAI's and Anthropic's APIs and a chat page");
  const auto options = std::make_shared<ServeOptions>();
  options->load.model.parallel = 16;
  add_model_options(command, *options);
  add_api_options(command, *options);
  add_address_options(command, *options);
  add_time_options(command, *options);
  add_sampling_options(command, options->server.settings.defaults, "logprobs");
  command.flags_of_others();
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
