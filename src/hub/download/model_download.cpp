#include "hub/download/model_download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/sizes.h"
#include "hub/cache/layout.h"
#include "hub/digest.h"
#include "hub/files.h"
#include "hub/names/hub_file.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {

// Where the files of a download go, with their metadata.
class ModelDownload::Placing {
 public:
  virtual ~Placing() = default;
  virtual std::filesystem::path folder() const = 0;
  virtual DownloadItem item(const HubFile& file) = 0;
  // Creates folders and the list of files before the first byte is fetched. If the model is complete, nothing
  // will be written, and a read-only place is no error.
  virtual void prepare(bool is_complete) = 0;
  virtual void note_absent(const std::string& path) = 0;
  virtual void finish() = 0;  // after the last file
};

namespace {

namespace fs = std::filesystem;

constexpr std::string_view cache_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

bool is_file_of(const fs::path& path, std::uint64_t size) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == size;
}

// Without symbolic links: a hard link, or a copy.
void place_without_link(const fs::path& blob, const fs::path& path, std::uint64_t size) {
  if (is_file_of(path, size)) return;
  const fs::path temporary = path.parent_path() / ("." + random_name() + ".tmp");
  if (::link(blob.c_str(), temporary.c_str()) != 0) {
    fs::copy_file(blob, temporary);
    const Descriptor copy(::open(temporary.c_str(), O_RDWR | O_CLOEXEC));
    if (!copy.is_open()) fail_for_file(temporary, "cannot be opened", errno);
    sync_file(copy.number(), temporary);
  }
  rename_durably(temporary, path);
}

// The shared cache: blobs named by their hashes, links to them by commit, and a ref that names the commit.
class CachePlacing : public ModelDownload::Placing {
 public:
  CachePlacing(const HubSettings& settings, const ModelPlan& plan)
      : plan_(plan),
        cache_(settings.cache),
        layout_(CacheLayout(settings.cache).repository(plan.name)),
        may_link_(settings.may_link) {
    for (const HubFile& file : plan.selection.taken) same_content_[file.etag()].push_back(file.path);
  }

  fs::path folder() const override { return layout_.snapshot(plan_.info.commit); }

  DownloadItem item(const HubFile& file) override {
    const fs::path blob = layout_.blob(file.etag());
    const fs::path partials = layout_.blobs();
    const std::uint64_t size = file.size;
    return {.file = file,
            .partial_folder = partials,
            .destination = blob,
            .lock = layout_.lock(file.etag()),
            .is_present = [blob, size] { return is_file_of(blob, size); },
            .on_verified = [this, file] { place(file); }};
  }

  void prepare(bool is_complete) override {
    try {
      make_folders_beneath(layout_.folder(), "blobs");
      make_folders_beneath(layout_.folder(), "trees");
      // Other tools expect these two from the beginning.
      make_folders_beneath(layout_.folder(), "refs");
      make_folders_beneath(layout_.folder(), "snapshots");
      if (!fs::exists(cache_.tag())) write_durably(cache_.tag(), cache_tag);
      // The list of files comes first, so that the model counts as partial until all of them are present.
      write_durably(layout_.tree(plan_.info.commit), tree_text(plan_.listing));
    } catch (const Error&) {
      if (!is_complete) throw;
    }
    if (!is_complete) {
      const fs::path locks = layout_.lock(plan_.selection.taken.front().etag()).parent_path();
      make_folders_beneath(cache_.root(), locks.lexically_relative(cache_.root()));
    }
  }

  void note_absent(const std::string& path) override {
    const fs::path marker = layout_.no_exist(plan_.info.commit, path);
    make_folders_beneath(layout_.folder(), marker.parent_path().lexically_relative(layout_.folder()));
    write_durably(marker, "");
  }

  void finish() override {
    const std::string revision = plan_.name.revision_or_main();
    if (is_commit(revision)) return;
    const fs::path ref = layout_.ref(revision);
    make_folders_beneath(layout_.folder(), ref.parent_path().lexically_relative(layout_.folder()));
    write_durably(ref, plan_.info.commit);
  }

 private:
  void place(const HubFile& file) {
    for (const std::string& path : same_content_.at(file.etag())) {
      const fs::path link = layout_.snapshot_file(plan_.info.commit, path);
      make_folders_beneath(layout_.folder(), link.parent_path().lexically_relative(layout_.folder()));
      if (may_link_) {
        link_durably(RepositoryLayout::link_target(path, file.etag()), link);
      } else {
        place_without_link(layout_.blob(file.etag()), link, file.size);
      }
    }
  }

  const ModelPlan& plan_;
  CacheLayout cache_;
  RepositoryLayout layout_;
  bool may_link_;
  std::map<std::string, std::vector<std::string>> same_content_;
};

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

// File times come from a clock with a step of some milliseconds. A file that changes in the same step as the
// note has the note's time, so only a file with an earlier time is certainly the one that the note describes.
bool is_older(const struct stat& file, const Note& note) {
  return microseconds_of(file.st_mtim) < note.time;
}

// The time of that clock once it is past the file's; waits at most 50 ms, because a file's time may be in the
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

// A folder of the user's own: plain files, with the same notes beside them that Hugging Face's tools keep.
//
//   <folder>/<path>
//   <folder>/.cache/huggingface/.gitignore
//   <folder>/.cache/huggingface/download/<path>.metadata     commit, etag and time, a line each
//   <folder>/.cache/huggingface/download/<etag>.<random>.inferno.incomplete
//   <folder>/.cache/huggingface/download/model.inferno.incomplete     while files are missing
class FolderPlacing : public ModelDownload::Placing {
 public:
  FolderPlacing(const fs::path& folder, const ModelPlan& plan)
      : plan_(plan), folder_(fs::absolute(folder).lexically_normal()) {
    std::error_code ignored;
    if (fs::exists(folder_, ignored) && !fs::is_directory(folder_, ignored)) {
      fail(ErrorKind::invalid_request, fmt::format("{}: exists and is not a folder", folder.string()),
           {.why = {}, .next = "choose another --local-dir"});
    }
  }

  fs::path folder() const override { return folder_; }

  DownloadItem item(const HubFile& file) override {
    const fs::path relative = safe_path(file.path);
    if (!stays_beneath(folder_, relative)) {
      fail(ErrorKind::invalid_request,
           fmt::format("{}: a parent folder is a link or a file", (folder_ / relative).string()),
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
  void finish() override {
    std::error_code problem;
    if (fs::remove(folder_ / notes_folder / unfinished, problem)) sync_folder(folder_ / notes_folder);
  }

 private:
  fs::path note_path(const HubFile& file) const {
    return folder_ / notes_folder / safe_path(file.path + ".metadata");
  }

  // A file is trusted if a note of Inferno or Hugging Face's tools is newer than the file; otherwise it is
  // hashed.
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

// The hub serves larger files only through its own protocol.
constexpr std::uint64_t max_bytes_over_http = 50'000'000'000;

void require_servable(const HubFile& file, const HubSettings& settings) {
  if (file.size <= max_bytes_over_http || settings.endpoint_source != "default") return;
  fail(
      ErrorKind::unsupported, fmt::format("{}: {} is too large for HTTP", file.path, human_size(file.size)),
      {.why = "the hub serves files over 50 GB only through its Xet protocol, which Inferno does not support",
       .next = "fetch it with Hugging Face's own tool (hf download): Inferno finds it in the same cache"});
}

// The file lists of some mirrors have no hashes; the headers of the files do.
void complete(HubFile& file, HubClient& client, const ModelPlan& plan) {
  if (!file.etag().empty()) return;
  const RemoteFile remote = client.head(plan.name.id(), plan.info.commit, file.path);
  if (remote.etag.empty()) {
    fail(ErrorKind::network, fmt::format("{}: the hub reports no hash", file.path),
         {.why = "Inferno accepts only files that it can verify",
          .next = "use another hub: unset HF_ENDPOINT"});
  }
  (remote.etag.size() == 64 ? file.sha256 : file.git_oid) = remote.etag;
  if (remote.size != 0) file.size = remote.size;
}

}  // namespace

ModelPlan plan_model(HubClient& client, const ModelName& name, const SelectionRules& rules) {
  ModelPlan plan;
  plan.name = name;
  plan.info = client.info(name.id(), name.revision_or_main());
  plan.listing = client.tree(name.id(), plan.info.commit);
  plan.selection = select_files(plan.listing, rules);
  for (HubFile& file : plan.selection.taken) {
    complete(file, client, plan);
    require_servable(file, client.settings());
  }
  if (!plan.info.gated.empty()) client.check_access(name.id());
  return plan;
}

ModelDownload::ModelDownload(const HubClient& client, ModelPlan plan, const ModelPlace& place,
                             IsCancelled is_cancelled)
    : plan_(std::move(plan)) {
  if (!place.local_folder.empty()) {
    placing_ = std::make_unique<FolderPlacing>(place.local_folder, plan_);
  } else if (client.settings().cache.empty()) {
    fail(ErrorKind::io, "no folder for models: neither HOME nor HF_HOME is set",
         {.why = {}, .next = "export HF_HOME=/some/folder, or use --local-dir"});
  } else {
    placing_ = std::make_unique<CachePlacing>(client.settings(), plan_);
  }
  std::vector<DownloadItem> items;
  std::set<std::filesystem::path> destinations;
  for (const HubFile& file : plan_.selection.taken) {
    DownloadItem item = placing_->item(file);
    // Files with the same content are one blob with several links.
    if (destinations.insert(item.destination).second) items.push_back(std::move(item));
  }
  // Large files first, so that the last connection is not left with the largest one.
  std::ranges::stable_sort(
      items, [](const DownloadItem& a, const DownloadItem& b) { return a.file.size > b.file.size; });
  DownloadSource source = {.id = plan_.name.id(),
                           .commit = plan_.info.commit,
                           .on_absent = [this](const std::string& path) { placing_->note_absent(path); }};
  download_ = std::make_unique<Download>(client.settings(), std::move(source), std::move(items), place.jobs,
                                         client.gate(), std::move(is_cancelled));
}

ModelDownload::~ModelDownload() = default;

std::filesystem::path ModelDownload::folder() const {
  return placing_->folder();
}

void ModelDownload::require_space() const {
  download_->require_space();
}

void ModelDownload::run() {
  const DownloadProgress before = download_->progress();
  placing_->prepare(before.have == before.size);
  download_->run();
  placing_->finish();
}

DownloadProgress ModelDownload::progress() const {
  return download_->progress();
}

}  // namespace inferno::hub
