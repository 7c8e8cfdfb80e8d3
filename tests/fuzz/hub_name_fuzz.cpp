// F17: names from users and hubs that become paths. Every path stays below the cache.
#include "base/utf8.h"
#include "fuzz/guard.h"
#include "hub/cache/layout.h"
#include "hub/names/file_selection.h"
#include "hub/names/safe_path.h"

namespace {

using namespace inferno;
namespace fs = std::filesystem;

// An Error is fine; a path out of the cache is not.
void expect_beneath(const std::function<fs::path()>& make) {
  try {
    const std::string path = make().lexically_normal().string();
    if (!path.starts_with("/cache/models--") && !path.starts_with("/cache/.locks/")) std::abort();
    if (path.find('\0') != std::string::npos || path.find("/../") != std::string::npos ||
        path.ends_with("/.."))
      std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text(data, size));
  const hub::CacheLayout cache("/cache");
  const auto model = cache.repository(hub::parse_hub_name("org/name"));
  const std::string commit(40, 'c');
  expect_beneath([&] { return model.snapshot_file(commit, text); });
  expect_beneath([&] { return model.no_exist(commit, text); });
  expect_beneath([&] { return model.ref(text); });
  expect_beneath([&] { return model.blob(text); });
  expect_beneath([&] { return model.lock(text); });
  expect_beneath([&] { return model.tree(text); });
  expect_beneath([&] { return cache.repository({"org", text, "", "", ""}).folder(); });
  try {
    const hub::ModelName name = hub::parse_hub_name(text);
    expect_beneath([&] { return cache.repository(name).ref(name.revision_or_main()); });
    if (!name.path.empty())
      expect_beneath([&] { return cache.repository(name).snapshot_file(commit, name.path); });
    if (hub::parse_hub_name(name.text()) != name) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_request) std::abort();
  }
  if (quote(text).find('\x1b') != std::string::npos) std::abort();
  return 0;
}
