// `inferno convert`: writes a Hugging Face model as one GGUF file of a chosen type.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/streams.h"
#include "model/export/gguf_export.h"
#include "service/loading/gguf_keys.h"
#include "service/loading/model_files.h"
#include "tensor/quantize.h"
#include "text/gguf/export_vocabulary.h"

namespace inferno::command {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  ResolvedModel model;
  std::string output;
  std::string type = "bf16";
  std::string experts, name;
  int threads = 0;
  bool force = false, json = false, no_vocabulary = false;
};

struct TypeTotal {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};
using TypeTotals = std::map<std::string, TypeTotal>;

WeightFormat format_for(const std::string& option, std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto format = format_named(name);
  if (format && (can_quantize(*format) || (option == "--experts" && *format == WeightFormat::mxfp4)))
    return *format;
  fail(
      ErrorKind::invalid_request,
      fmt::format("{} {}: expected f32, f16, bf16, q8_0, q4_0, q4_k or q6_k", option, name),
      {.why = name == "mxfp4" ? "MXFP4 weights are kept, but other weights cannot be converted to MXFP4" : "",
       .next = {}});
}

void require_free(const ConvertOptions& options) {
  const fs::path output = output_path(options.output);
  if (fs::is_directory(output)) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: expected a file to write, found a folder", options.output));
  }
  if (!options.force && fs::exists(output)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: the file already exists", options.output),
         {.why = {}, .next = "choose another name, or add --force to replace it"});
  }
}

void add_keys(OutgoingGguf& file, GgufKeys keys) {
  std::ranges::move(keys, std::back_inserter(file.keys));
}

std::string name_for(const ConvertOptions& options) {
  if (!options.name.empty()) return options.name;
  // The last part of "org/name" or of a path. A key must be UTF-8.
  const fs::path name = fs::path(options.model.name).lexically_normal();
  return printable((name.has_filename() ? name : name.parent_path()).filename().string());
}

GgufExport gather(const ConvertOptions& options, ThreadPool& pool) {
  const ModelFiles files(options.model.path);
  const auto checkpoint = files.checkpoint();
  ExportOptions wanted = {.type = format_for("--type", options.type), .experts = {}};
  if (!options.experts.empty()) wanted.experts = format_for("--experts", options.experts);
  GgufExport out = export_gguf(*checkpoint, wanted, pool);
  out.file.keys.insert(out.file.keys.begin() + 2, {"general.name", name_for(options)});
  if (!files.has_tokenizer_json() || options.no_vocabulary) {
    out.notes.push_back(fmt::format("{}: the file has no vocabulary and can be used with token ids only",
                                    files.has_tokenizer_json() ? "--no-vocabulary" : "no tokenizer.json"));
    return out;
  }
  const ExportedVocabulary exported = export_vocabulary(options.model.path, out.spec.vocab);
  add_keys(out.file, vocabulary_keys(exported.vocabulary));
  add_keys(out.file, generation_keys(files.generation_config(), exported.vocabulary));
  add_keys(out.file, template_keys(files.templates()));
  out.notes.insert(out.notes.end(), exported.notes.begin(), exported.notes.end());
  return out;
}

// One line that is redrawn on a terminal; elsewhere one line every ten percent.
class ProgressLine {
 public:
  explicit ProgressLine(const OutgoingGguf& file) : file_(file) {
    for (const OutgoingTensor& tensor : file.tensors) all_ += tensor.bytes();
  }
  void operator()(std::size_t index) {
    const auto percent = static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(all_));
    done_ += file_.tensors[index].bytes();
    if (terminal_) {
      say(fmt::format("\r\033[K{:>3} %  {} of {}  {}", percent, index + 1, file_.tensors.size(),
                      file_.tensors[index].name));
      std::fflush(stderr);
    } else if (percent / 10 > shown_) {
      shown_ = percent / 10;
      say(fmt::format("{} %\n", percent));
    }
  }
  void finish() const { say(terminal_ ? "\r\033[K" : "100 %\n"); }

 private:
  const OutgoingGguf& file_;
  std::uint64_t all_ = 0, done_ = 0;
  int shown_ = 0;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

TypeTotals totals_of(const OutgoingGguf& file) {
  TypeTotals totals;
  for (const OutgoingTensor& tensor : file.tensors) {
    TypeTotal& total = totals[std::string(name_of(tensor.format))];
    ++total.tensors;
    total.bytes += tensor.bytes();
  }
  return totals;
}

void print_json(const ConvertOptions& options, const GgufExport& out, double seconds) {
  Json types = Json::object();
  for (const auto& [type, total] : totals_of(out.file)) {
    types[type] = {{"tensors", total.tensors}, {"bytes", total.bytes}};
  }
  const Json report = {{"file", options.output},
                       {"bytes", fs::file_size(options.output)},
                       {"architecture", std::get<std::string>(out.file.keys.front().second)},
                       {"tensors", out.file.tensors.size()},
                       {"types", types},
                       {"keys", out.file.keys.size()},
                       {"notes", out.notes},
                       {"seconds", seconds}};
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_report(const ConvertOptions& options, const GgufExport& out, double seconds) {
  for (const std::string& note : out.notes) say(fmt::format("note: {}\n", printable(note)));
  fmt::print("wrote {}: {}, {} tensors, {} keys, {:.1f} s\n", options.output,
             human_size(fs::file_size(options.output)), out.file.tensors.size(), out.file.keys.size(),
             seconds);
  for (const auto& [type, total] : totals_of(out.file)) {
    fmt::print("  {:<6} {:>5} tensors {:>10}\n", type, total.tensors, human_size(total.bytes));
  }
}

void run(const ConvertOptions& options) {
  require_free(options);
  const auto start = std::chrono::steady_clock::now();
  ThreadPool pool(options.threads);
  const GgufExport out = gather(options, pool);
  ProgressLine progress(out.file);
  write_gguf(options.output, out.file, [&](std::size_t index) { progress(index); });
  progress.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) return print_json(options, out, seconds);
  print_report(options, out, seconds);
}

}  // namespace

void convert(CommandLine app) {
  const Command command = app.command("convert", "Convert a Hugging Face model to a GGUF file");
  const auto options = std::make_shared<ConvertOptions>();
  add_model_argument(command, options->model).required();
  command.option("-o,--output", options->output, "the GGUF file to write").required();
  command.option("--type", options->type, "type of matrices: f32, f16, bf16, q8_0, q4_0, q4_k or q6_k")
      .shows_default();
  command.option("--experts", options->experts,
                 "type of experts; by default MXFP4 is kept and others use --type");
  command.option("--name", options->name, "the model's name in the file; the directory's if not given");
  command.flag("--no-vocabulary", options->no_vocabulary, "leave out the tokenizer and the chat template");
  command.option("--threads", options->threads, "CPU threads; 0: one per usable core")
      .range(0, 1024)
      .shows_default();
  command.flag("--force", options->force, "replace the file if it exists");
  command.flag("--json", options->json, "print JSON");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
