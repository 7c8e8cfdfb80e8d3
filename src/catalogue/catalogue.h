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
};

// The meaning of a name; the model may be missing or incomplete.
struct ModelMatch {
  std::string name;                                // as it was given
  std::optional<std::filesystem::path> path = {};  // the name is a path that exists
  const FoundModel* here = nullptr;                // on this machine, complete or not
  std::optional<hub::ModelName> hub_name = {};     // `name` by the rules of the hub; nullopt outside it
  std::optional<hub::ModelName> download = {};     // what to ask the hub for if it is not complete here

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

  // A model that can be loaded, or why it cannot: Error{not_found} with what is here and the command that
  // downloads it, also for a model of which only a part is here.
  ResolvedModel resolve(const std::string& name) const;
  ResolvedModel resolve(const FoundModel& model) const;
  ResolvedModel builtin() const;

  // The repository of a model that look_up() found, or whose download has only begun. Error{not_found} if no
  // cache has it; Error{unsupported} if it is in a store that is only read.
  CachedMatch cached(const ModelMatch& match) const;

 private:
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

// Error{not_found} with what is missing and `inferno download …`, unless the model is complete.
void require_complete(const FoundModel& model);

// Error{not_found} for the path of a partial file, a partial snapshot of a hub cache, or a folder into which
// a download has not finished.
void require_complete(const std::filesystem::path& path);

}  // namespace inferno
