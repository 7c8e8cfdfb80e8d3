// F16: the tree of a commit, and the selection of its files. No selected name leads out of the folder.
#include <set>

#include "fuzz/guard.h"
#include "hub/cache/scan.h"
#include "hub/names/hub_file.h"
#include "hub/names/safe_path.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  const auto tree = hub::parse_tree(fuzz::text(data, size));
  if (!tree) return 0;
  hub::models_in({.folder = "/nowhere", .present = {}, .listing = *tree, .bytes_elsewhere = {}});
  for (const char* pattern : {"", "*"}) {
    hub::SelectionRules rules;
    if (*pattern != '\0') rules.include = {pattern};
    try {
      std::set<std::string> taken;
      for (const hub::HubFile& file : hub::select_files(*tree, rules).taken) {
        if (!hub::unsafe_reason(file.path).empty() || !taken.insert(file.path).second) std::abort();
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal || error.kind() == ErrorKind::io) std::abort();
    }
  }
  return 0;
}
