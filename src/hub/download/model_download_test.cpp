#include "hub/download/model_download.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "hub/cache/scan.h"
#include "hub/digest.h"
#include "hub/http/scene.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string commit(40, 'c');

std::string hash(const std::string& text, std::size_t digits) {
  Digest digest(std::string(digits, '0'), text.size());
  digest.update(std::as_bytes(std::span(text)));
  return digest.hex();
}

// A hub with one model: a small file and a large one.
struct Scene {
  explicit Scene(const std::string& name) : home(fs::path(testing::TempDir()) / name) {
    fs::remove_all(home);
  }

  fs::path home;
  std::string config = "{}", weights = std::string(100'000, 'w');
  std::string served = weights;  // the bytes that the server sends for the weights
  std::string gate = "false";

  std::string reply(const std::string& request) const {
    if (request.find("/revision/") != std::string::npos) {
      return answer(200, R"({"id":"org/name","sha":")" + commit + R"(","gated":)" + gate + "}");
    }
    if (request.find("/tree/") != std::string::npos) {
      return answer(200, fmt::format(R"([{{"type":"file","path":"config.json","size":{},"oid":"{}"}},)"
                                     R"({{"type":"file","path":"sub/model.safetensors","size":1,"oid":"{}",)"
                                     R"("lfs":{{"oid":"{}","size":{}}}}}])",
                                     config.size(), hash(config, 40), std::string(40, 'b'), hash(weights, 64),
                                     weights.size()));
    }
    const std::string told = "X-Repo-Commit: " + commit + "\r\n";
    if (request.find("/config.json") != std::string::npos) return answer(200, config, told);
    return answer(200, served, told);
  }

  fs::path download(const fs::path& local = {}, bool links = true) const {
    const SmallServer hub([this](const std::string& request) { return reply(request); });
    HubSettings settings;
    settings.endpoint = hub.url();
    settings.endpoint_source = "HF_ENDPOINT";
    settings.cache = home / "hub";
    settings.may_link = links;
    settings.time_scale = 1e-3;
    HubClient client(settings);
    ModelPlan plan = plan_model(client, parse_hub_name("org/name"), {.include = {"*"}});
    ModelDownload download(client, std::move(plan), {.local_folder = local, .jobs = 2}, {});
    download.require_space();
    download.run();
    EXPECT_EQ(download.progress().have, download.progress().size);
    requests = hub.requests().size();
    return download.folder();
  }

  fs::path model() const { return home / "hub/models--org--name"; }
  mutable std::size_t requests = 0;
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ModelDownload, WritesTheLayoutOfTheSharedCache) {
  const Scene scene("cache");
  const fs::path folder = scene.download();
  EXPECT_EQ(folder, scene.model() / "snapshots" / commit);
  EXPECT_EQ(content(folder / "sub/model.safetensors"), scene.weights);
  EXPECT_EQ(fs::read_symlink(folder / "sub/model.safetensors"), "../../../blobs/" + hash(scene.weights, 64));
  EXPECT_EQ(fs::read_symlink(folder / "config.json"), "../../blobs/" + hash(scene.config, 40));
  EXPECT_EQ(content(scene.model() / "refs/main"), commit);
  EXPECT_TRUE(fs::exists(scene.model() / "trees" / (commit + ".json")));
  EXPECT_THAT(content(scene.home / "hub/CACHEDIR.TAG"), HasSubstr("8a477f597d28d172789f06886806bc55"));
}

TEST(ModelDownload, FetchesNothingTwice) {
  const Scene scene("again");
  scene.download();
  scene.download();
  EXPECT_EQ(scene.requests, 2U);  // model info and file list
}

TEST(ModelDownload, RefusesBytesWithAnotherHash) {
  Scene scene("wrong");
  scene.served[50'000] = 'x';
  try {
    scene.download();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr(hash(scene.weights, 64)));
    EXPECT_THAT(error.what(), HasSubstr(hash(scene.served, 64)));
  }
  EXPECT_FALSE(fs::exists(scene.model() / "blobs" / hash(scene.weights, 64)));
  EXPECT_FALSE(fs::exists(scene.model() / "refs/main"));
  for (const auto& entry : fs::directory_iterator(scene.model() / "blobs")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(hash(scene.weights, 64)));
  }
}

TEST(ModelDownload, RefusesAnotherLength) {
  Scene scene("length");
  for (const std::size_t length : {0, 99'999, 100'001}) {
    scene.served.resize(length, 'w');
    EXPECT_THROW(scene.download(), Error) << length;
  }
}

TEST(ModelDownload, WritesPlainFilesIfLinksAreDisabled) {
  const Scene scene("unlinked");
  const fs::path folder = scene.download({}, /*links=*/false);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "sub/model.safetensors")));
  EXPECT_EQ(content(folder / "sub/model.safetensors"), scene.weights);
}

TEST(ModelDownload, FillsALocalFolderAndWritesNotes) {
  const Scene scene("local");
  const fs::path folder = scene.home / "mine";
  scene.download(folder);
  EXPECT_EQ(content(folder / "sub/model.safetensors"), scene.weights);
  EXPECT_THAT(content(folder / ".cache/huggingface/download/sub/model.safetensors.metadata"),
              testing::StartsWith(commit + "\n" + hash(scene.weights, 64) + "\n"));
  std::ofstream(folder / "config.json") << "[]";
  fs::remove(folder / ".cache/huggingface/download/sub/model.safetensors.metadata");
  scene.download(folder);
  EXPECT_EQ(content(folder / "config.json"), "{}");  // the same length, but other content
  EXPECT_EQ(scene.requests, 3U);                     // the large file was hashed, not fetched
}

// The clock of file times has steps, so a change right after the note may have the note's time.
TEST(ModelDownload, HashesAFileWithTheTimeOfItsNote) {
  const Scene scene("young");
  const fs::path folder = scene.home / "mine";
  const fs::path file = folder / "config.json";
  const auto time_of_note = [&] {
    const std::string note = content(folder / ".cache/huggingface/download/config.json.metadata");
    const std::string time = note.substr(note.rfind('\n', note.size() - 2) + 1);
    return timespec{std::stol(time), 1000 * std::stol(time.substr(time.find('.') + 1))};
  };
  const auto write_at = [&](const std::string& text, const timespec& time) {
    std::ofstream(file) << text;
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  };
  scene.download(folder);
  timespec time = time_of_note();
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_LT(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
            time.tv_sec * 1'000'000'000 + time.tv_nsec);
  write_at("[]", time);
  scene.download(folder);
  EXPECT_EQ(content(file), "{}");
  time = time_of_note();
  --time.tv_sec;
  write_at("[]", time);  // older than its note, therefore not hashed
  scene.download(folder);
  EXPECT_EQ(content(file), "[]");
}

TEST(ModelDownload, TellsAnIncompleteFolderFromACompleteOne) {
  Scene scene("lacking");
  const fs::path folder = scene.home / "mine";
  scene.served = std::string(scene.weights.size(), 'x');
  EXPECT_THROW(scene.download(folder), Error);
  EXPECT_TRUE(has_unfinished_download(folder));
  const fs::path mark = folder / ".cache/huggingface/download/model.inferno.incomplete";
  EXPECT_TRUE(fs::exists(mark));
  scene.served = scene.weights;
  scene.download(folder);
  EXPECT_FALSE(fs::exists(mark));
}

TEST(ModelDownload, DoesNotWriteThroughALinkInALocalFolder) {
  const Scene scene("planted");
  fs::create_directories(scene.home / "mine");
  fs::create_directories(scene.home / "outside");
  fs::create_directory_symlink(scene.home / "outside", scene.home / "mine/sub");
  EXPECT_THROW(scene.download(scene.home / "mine"), Error);
  EXPECT_TRUE(fs::is_empty(scene.home / "outside"));
}

}  // namespace
}  // namespace inferno::hub
