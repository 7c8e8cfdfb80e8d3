// M4: the index of shards, the shards themselves, and file names that are paths.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/open_checkpoint.h"
#include "checkpoint/safetensors/shards.h"
#include "hostile/rule.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

constexpr auto corrupt = ErrorKind::corrupt;
constexpr auto not_found = ErrorKind::not_found;
const char* const index_name = "model.safetensors.index.json";

struct Scene {
  const TemporaryDirectory& directory;

  void index(std::string_view json) const { directory.write(index_name, json); }
  void map(std::string_view entries) const { index(fmt::format(R"({{"weight_map": {{{}}}}})", entries)); }
  void shard(std::size_t number, std::vector<SafetensorsData> tensors) const {
    write_safetensors(directory.path() / shard_name(number, 2), tensors);
  }
  std::filesystem::path path(std::string_view name) const { return directory.path() / name; }
};

struct Seed {
  std::string name;
  std::optional<ErrorKind> refused;
  std::function<void(const Scene&)> spoil;  // changes a valid directory of two shards
};

SafetensorsData tensor(std::string name) {
  return patterned_tensor(std::move(name), "F32", {2});
}

Seed index_seed(std::string name, std::optional<ErrorKind> refused, std::string json) {
  return {std::move(name), refused, [json = std::move(json)](const Scene& scene) { scene.index(json); }};
}

Seed path_seed(const std::string& shard) {
  return {"shard named " + shard, corrupt,
          [shard](const Scene& scene) { scene.map(R"("a": ")" + shard + "\""); }};
}

std::string mapped(std::string_view a, std::string_view b) {
  return fmt::format(R"({{"weight_map": {{"a": "{}", "b": "{}"}}}})", a, b);
}

std::vector<Seed> shard_seeds() {
  const std::string one = shard_name(1, 2), two = shard_name(2, 2);
  return {
      {"valid", {}, [](const Scene&) {}},
      index_seed("valid without metadata", {}, mapped(one, two)),
      {"first shard missing", not_found, [=](const Scene& s) { std::filesystem::remove(s.path(one)); }},
      {"second shard missing", not_found, [=](const Scene& s) { std::filesystem::remove(s.path(two)); }},
      {"every shard missing", not_found,
       [=](const Scene& s) {
         std::filesystem::remove(s.path(one));
         std::filesystem::remove(s.path(two));
       }},
      {"a shard too many", corrupt,
       [](const Scene& s) { write_safetensors(s.path(shard_name(3, 3)), std::vector{tensor("c")}); }},
      {"a whole model beside the shards", corrupt,
       [](const Scene& s) { write_safetensors(s.path("model.safetensors"), std::vector{tensor("a")}); }},
      {"the same shard twice", corrupt, [](const Scene& s) { s.shard(2, {tensor("a")}); }},
      {"a weight in two shards", corrupt, [](const Scene& s) { s.shard(2, {tensor("a"), tensor("b")}); }},
      {"a shard of another model", corrupt, [](const Scene& s) { s.shard(2, {tensor("other")}); }},
      {"a shard without tensors", corrupt, [](const Scene& s) { s.shard(2, {}); }},
      {"a shard of no bytes", corrupt, [=](const Scene& s) { s.directory.write(two, std::string_view()); }},
      {"a shard that is text", corrupt,
       [=](const Scene& s) { s.directory.write(two, "version https://git-lfs.github.com/spec/v1\n"); }},
      {"a shard that is a directory", corrupt,
       [=](const Scene& s) {
         std::filesystem::remove(s.path(two));
         std::filesystem::create_directory(s.path(two));
       }},
      {"a shard that is a pipe", corrupt,
       [=](const Scene& s) {
         std::filesystem::remove(s.path(two));
         EXPECT_EQ(::mkfifo(s.path(two).c_str(), 0600), 0);
       }},
      {"a shard that points nowhere", not_found,
       [=](const Scene& s) {
         std::filesystem::remove(s.path(two));
         std::filesystem::create_symlink("nowhere", s.path(two));
       }},
      {"a shard that points to itself", ErrorKind::io,
       [=](const Scene& s) {
         std::filesystem::remove(s.path(two));
         std::filesystem::create_symlink(two, s.path(two));
       }},
      {"an index that is a directory", corrupt,
       [](const Scene& s) {
         std::filesystem::remove(s.path(index_name));
         std::filesystem::create_directory(s.path(index_name));
       }},
      index_seed("shards swapped", corrupt, mapped(two, one)),
      index_seed("both in the first", corrupt, mapped(one, one)),
      index_seed("a tensor that is not there", corrupt,
                 fmt::format(R"({{"weight_map": {{"a": "{}", "b": "{}", "c": "{}"}}}})", one, two, two)),
      index_seed("a tensor given twice", corrupt,
                 fmt::format(R"({{"weight_map": {{"a": "{}", "a": "{}"}}}})", one, two)),
      index_seed("two maps", corrupt,
                 fmt::format(R"({{"weight_map": {{"a": "{0}"}}, "weight_map": {{"b": "{0}"}}}})", one)),
  };
}

std::vector<Seed> document_seeds() {
  std::vector<Seed> seeds = {
      index_seed("no bytes", corrupt, ""),
      index_seed("a list", corrupt, "[]"),
      index_seed("a string", corrupt, "\"x\""),
      index_seed("no map", corrupt, R"({"metadata": {"total_size": 16}})"),
      index_seed("an empty map", corrupt, R"({"weight_map": {}})"),
      index_seed("a map that is a list", corrupt, R"({"weight_map": ["model-00001-of-00002.safetensors"]})"),
      index_seed("a map that is null", corrupt, R"({"weight_map": null})"),
      index_seed("a shard that is a number", corrupt, R"({"weight_map": {"a": 1}})"),
      index_seed("a shard that is a list", corrupt, R"({"weight_map": {"a": ["x.safetensors"]}})"),
      index_seed("a shard that is an object", corrupt, R"({"weight_map": {"a": {"b": "x.safetensors"}}})"),
      index_seed("lists 100,000 deep", corrupt, R"({"metadata":)" + std::string(100000, '[')),
      index_seed("cut short", corrupt, R"({"weight_map": {"a": "model-0000)"),
      index_seed("broken UTF-8", corrupt, "{\"weight_map\": {\"a\": \"\xFF.safetensors\"}}"),
  };
  for (const char* shard :
       {"../../etc/passwd", "../model.safetensors", "..", ".", "", "/etc/passwd", "/tmp/x.safetensors",
        "a/b.safetensors", "./model.safetensors", "..\\\\x.safetensors", "C:\\\\x.safetensors",
        "\\\\\\\\host\\\\x.safetensors", "x.safetensors\\u0000", "x\\n.safetensors", "\\u001b[2J.safetensors",
        "x.bin", "config.json", "x.safetensors/"}) {
    seeds.push_back(path_seed(shard));
  }
  seeds.push_back(path_seed(std::string(300, 'x') + ".safetensors"));
  return seeds;
}

void expect_verdicts(const std::vector<Seed>& seeds) {
  for (const Seed& seed : seeds) {
    const TemporaryDirectory directory;
    directory.write("config.json", R"({"model_type": "llama"})");
    write_sharded_safetensors(directory.path(),
                              std::vector<std::vector<SafetensorsData>>{{tensor("a")}, {tensor("b")}});
    seed.spoil({directory});
    const Verdict verdict =
        judge({directory.path().native(), 1u << 20, [&] { open_checkpoint(directory.path()); }});
    EXPECT_EQ(verdict.broken, "") << seed.name << ": " << verdict.message;
    EXPECT_EQ(verdict.refused, seed.refused) << seed.name << ": " << verdict.message;
  }
}

TEST(HostileIndex, HasAtLeastTwentyFiveSeeds) {
  EXPECT_GE(shard_seeds().size() + document_seeds().size(), 25u);
}
TEST(HostileIndex, ShardSeeds) {
  expect_verdicts(shard_seeds());
}
TEST(HostileIndex, DocumentSeeds) {
  expect_verdicts(document_seeds());
}

TEST(HostileIndex, CutAtEveryByteAndEveryBitFlipped) {
  const std::string text =
      fmt::format(R"({{"metadata": {{"total_size": 16}}, "weight_map": {{"a": "{}", "b": "{}"}}}})",
                  shard_name(1, 2), shard_name(2, 2));
  Sweep cuts;
  for (std::size_t size = 0; size < text.size(); ++size) {
    cuts.add("cut to " + std::to_string(size),
             {index_name, size, [&] { parse_safetensors_index(text.substr(0, size), index_name); }});
  }
  EXPECT_TRUE(cuts.result());
  EXPECT_EQ(cuts.loaded(), 0u);
  Sweep flips;
  std::string flipped = text;
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1u << (bit % 8));
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ mask);
    flips.add("bit " + std::to_string(bit),
              {index_name, flipped.size(), [&] { parse_safetensors_index(flipped, index_name); }});
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ mask);
  }
  EXPECT_TRUE(flips.result());
}

}  // namespace
}  // namespace inferno
