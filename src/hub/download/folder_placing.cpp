// A model in a folder of one's own: plain files, with the notes beside them that Hugging Face's tools keep
// too.
//
//   <folder>/<path>
//   <folder>/.cache/huggingface/.gitignore
//   <folder>/.cache/huggingface/download/<path>.metadata     commit, etag and time, a line each
//   <folder>/.cache/huggingface/download/<etag>.<random>.inferno.incomplete
//   <folder>/.cache/huggingface/download/model.inferno.incomplete     while files are missing
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "hub/digest.h"
#include "hub/download/model_placing.h"
#include "hub/durable.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view notes_folder = ".cache/huggingface/download";
constexpr std::string_view unfinished = "model.inferno.incomplete";  // has_unfinished_download() looks for it

struct Note {
  std::string commit, etag;
  std::int64_t time = 0;  // microseconds
};

Note read_note(const fs::path& path) {
  Note note;
  std::ifstream in(path);
  std::string time;
  std::getline(in, note.commit);
  std::getline(in, note.etag);
  std::getline(in, time);
  note.time = std::llround(std::strtod(time.c_str(), nullptr) * 1e6);
  return note;
}

std::int64_t microseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

// Files get their times from a clock that moves in steps of some milliseconds. A change in the step of the
// note would have the note's own time, so only a file of an earlier step is known to be the one the note was
// made for.
bool is_older(const struct stat& file, const Note& note) {
  return microseconds_of(file.st_mtim) < note.time;
}

// The time of that clock in the next step after the file's; waits 50 ms at most, as a file may be of the
// future.
std::int64_t time_after(const struct stat& file) {
  timespec now{};
  for (int tries = 0; tries < 50; ++tries) {
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (microseconds_of(file.st_mtim) < microseconds_of(now)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return microseconds_of(now);
}

}  // namespace

class FolderPlacing : public ModelPlacing {
 public:
  FolderPlacing(const fs::path& folder, const ModelPlan& plan)
      : plan_(plan), folder_(fs::absolute(folder).lexically_normal()) {}

  fs::path folder() const override { return folder_; }

  DownloadItem item(const HubFile& file) override {
    const fs::path relative = safe_path(file.path);
    if (!stays_beneath(folder_, relative)) {
      fail(ErrorKind::invalid_request,
           fmt::format("{}: a folder on the way is a link or a file", (folder_ / relative).string()),
           {.why = "files from a hub are not written through links", .next = "choose another --local-dir"});
    }
    return {.file = file,
            .partial_folder = folder_ / notes_folder,
            .destination = folder_ / relative,
            .lock = folder_ / notes_folder / (file.etag() + ".lock"),
            .is_present = [this, file] { return is_present(file); },
            .on_verified = [this, file] { write_note(file); }};
  }

  void prepare(bool is_complete) override {
    if (is_complete) return;
    make_folders_beneath(folder_, fs::path(notes_folder));
    write_durably(folder_ / ".cache/huggingface/.gitignore", "*");
    write_durably(folder_ / notes_folder / unfinished, plan_.info.commit);
    for (const HubFile& file : plan_.selection.taken) {
      const fs::path parent = safe_path(file.path).parent_path();
      if (!parent.empty()) make_folders_beneath(folder_, parent);
    }
  }

  void note_absent(const std::string&) override {}
  // Every file is verified, whoever fetched it.
  void finish() override {
    std::error_code problem;
    if (fs::remove(folder_ / notes_folder / unfinished, problem)) sync_folder(folder_ / notes_folder);
  }

 private:
  fs::path note_path(const HubFile& file) const {
    return folder_ / notes_folder / safe_path(file.path + ".metadata");
  }

  // Trusted when a note of ours or of Hugging Face's tools says so and the file has not been touched since;
  // hashed otherwise.
  bool is_present(const HubFile& file) const {
    const fs::path path = folder_ / safe_path(file.path);
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (static_cast<std::uint64_t>(status.st_size) != file.size) return false;
    const Note note = read_note(note_path(file));
    if (note.etag == file.etag() && is_older(status, note)) return true;
    return digest_of_file(path, file.etag()) == file.etag();
  }

  void write_note(const HubFile& file) const {
    const fs::path path = note_path(file);
    const Note before = read_note(path);
    struct stat status{};
    if (::stat((folder_ / safe_path(file.path)).c_str(), &status) != 0) return;
    if (before.commit == plan_.info.commit && before.etag == file.etag() && is_older(status, before)) return;
    make_folders_beneath(folder_, path.parent_path().lexically_relative(folder_));
    const std::int64_t now = time_after(status);
    write_durably(path, fmt::format("{}\n{}\n{}.{:06}\n", plan_.info.commit, file.etag(), now / 1'000'000,
                                    now % 1'000'000));
  }

  const ModelPlan& plan_;
  fs::path folder_;
};

std::unique_ptr<ModelPlacing> ModelPlacing::in_folder(const fs::path& folder, const ModelPlan& plan) {
  return std::make_unique<FolderPlacing>(folder, plan);
}

}  // namespace inferno::hub
