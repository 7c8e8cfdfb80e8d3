// A model in the shared cache: blobs by their hashes, links to them by commit, and a name for the commit.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/error.h"
#include "hub/cache/tree_file.h"
#include "hub/download/model_placing.h"
#include "hub/durable.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
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

// Where links are not wanted or not possible: a second name for the same bytes, or a copy.
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

}  // namespace

class CachePlacing : public ModelPlacing {
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
      // Other tools that look at the cache want these two from the beginning.
      make_folders_beneath(layout_.folder(), "refs");
      make_folders_beneath(layout_.folder(), "snapshots");
      if (!fs::exists(cache_.tag())) write_durably(cache_.tag(), cache_tag);
      // What the model consists of comes first: until all of it is there, it is known to be partial.
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

std::unique_ptr<ModelPlacing> ModelPlacing::in_cache(const HubSettings& settings, const ModelPlan& plan) {
  if (settings.cache.empty()) {
    fail(ErrorKind::io, "no folder for models: neither HOME nor HF_HOME is set",
         {.why = {}, .next = "export HF_HOME=/some/folder, or use --local-dir"});
  }
  return std::make_unique<CachePlacing>(settings, plan);
}

}  // namespace inferno::hub
