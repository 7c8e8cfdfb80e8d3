// Resolves a MODEL argument: a path, a model on this machine under any of its names, or one on the hub. All
// commands use it to get from a name to files.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "catalogue/inventory.h"
#include "catalogue/resolved_model.h"

namespace inferno {

struct CatalogueSettings {
  ModelPlaces places = {};
  std::vector<std::filesystem::path> unpack_folders = {};  // for the built-in model, the preferred one first
  // Addresses of this hub are names too. A function, because only names need it and its variable may be
  // invalid.
  std::function<std::string()> hub_endpoint = [] { return "https://huggingface.co"; };
  // Bytes of memory for a model, which decide what an alias means; 0: unknown.
  std::function<std::uint64_t()> memory = [] { return std::uint64_t{0}; };
  std::function<bool()> is_offline = [] { return false; };  // then errors do not advise a download
};

// The meaning of a name; the model may be missing or incomplete.
struct ModelMatch {
  std::string name;                                // as it was given
  std::optional<std::filesystem::path> path = {};  // the name is a path that exists
  const FoundModel* here = nullptr;                // on this machine, complete or not
  std::optional<hub::ModelName> download = {};     // what to ask the hub for if it is not complete here
  std::uint64_t download_bytes = 0;                // approximately; 0: unknown

  bool is_complete() const { return path || (here != nullptr && here->is_complete()); }
};

// A repository of a hub cache, for commands that work on the cache itself.
struct CachedMatch {
  const hub::CachedRepository& repository;
  hub::ModelName wanted;  // with the revision and quantization that were asked for
};

// Not thread-safe. Results point into the inventory: they are valid until refresh().
class Catalogue {
 public:
  explicit Catalogue(CatalogueSettings settings) : settings_(std::move(settings)) {}

  // Scanned on first use and kept: resolving a path needs no scan, resolving names only one.
  const Inventory& inventory() const;
  void refresh() { inventory_.reset(); }  // after a download

  // Error{invalid_request} with the names if several models match.
  ModelMatch look_up(const std::string& name) const;

  // The same without paths, for commands that maintain stored models: a folder called org/name in the working
  // directory does not hide the model.
  ModelMatch look_up_stored(const std::string& name) const;

  // A model that can be loaded, or why it cannot: Error{not_found} with what is here and the command that
  // downloads it, also for a model of which only a part is here.
  ResolvedModel resolve(const std::string& name) const;
  ResolvedModel resolve(const FoundModel& model) const;
  // The built-in model: a build without it takes one that is called so in a folder of models.
  // Error{unsupported} if there is none.
  ResolvedModel builtin() const;

  // What `inferno download NAME` fetches, without asking the hub. Error{not_found} with names that were
  // perhaps meant for a short name that means nothing, Error{invalid_request} for a path, the built-in model
  // and one of a store that is only read.
  hub::ModelName to_download(const std::string& name) const;

  // download_advice() under this catalogue's settings.
  std::string download_advice(const std::string& what) const;

  // The repository of a model in a hub cache, even if its download has only begun. org/name means the cache,
  // whatever other stores and the working directory have under that name. Error{not_found} if no cache has
  // it; Error{invalid_request} if `name` is a path, the built-in model, or only in a store that is
  // only read.
  CachedMatch cached(const std::string& name) const;

 private:
  [[noreturn]] void fail_not_here(const ModelMatch& match) const;

  CatalogueSettings settings_;
  mutable std::optional<Inventory> inventory_;
};

// The model that a name means, complete or not; nullptr if there is none. In this order: its whole name; its
// name without the organization, or with the end of a file's name after a colon, if that is unique; the hub's
// rules for a hub name (alias, revision, quantization). Case does not matter.
const FoundModel* find_model(const std::string& name, std::span<const FoundModel> found,
                             std::string_view hub_endpoint = "https://huggingface.co");

// Whether a model can be called `name`, by the rules for local names above.
bool answers_to(const FoundModel& model, std::string_view name);

// What an error advises for a model that has to be downloaded: the command with `what` after it or, if the
// hub may not be asked, what else there is.
std::string download_advice(const std::string& what, bool is_offline);

// Error{not_found} with what is missing and download_advice() unless the model is complete.
void require_complete(const FoundModel& model, bool is_offline);

// The folder of a model, if `path` is a .safetensors file in it; any other path as it is. Error{unsupported}
// if the weights are alone.
std::filesystem::path folder_of_weights(const std::filesystem::path& path);

// Error{not_found} for the path of a partial file, a partial snapshot of a hub cache, or a folder into which
// a download has not finished.
void require_complete(const std::filesystem::path& path, bool is_offline);

}  // namespace inferno
