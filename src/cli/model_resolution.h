// Which model a name means: a path, a model on this machine under any of its names, or one to download. The
// one way for every command that takes a MODEL.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "cli/model_discovery.h"

namespace inferno {

struct ResolvedModel {
  std::string name;            // for people
  std::filesystem::path path;  // for open_checkpoint()
};

// An address on HF_ENDPOINT becomes the name of its model; every other name stays as it is.
std::string known_name(const std::string& name, const Environment& environment);

// The model of `found` that a name means, whole or partial; nullptr when none does. In this order: its whole
// name; the hub's rules for a hub name (alias, revision, quantization); its name without an organization, or
// with the end of a file's name behind a colon, where only one model answers to it. Case does not matter.
// Error{invalid_request} with the names when several answer.
const FoundModel* find_model(const std::string& name, std::span<const FoundModel> found);

// The same, or why not: Error{not_found} with what there is and the command that downloads it. A partial
// model is an Error{not_found} too: it is never loaded.
const FoundModel& require_model(const std::string& name, std::span<const FoundModel> found);

// Error{not_found} with what is missing and `inferno download …`, unless the model is whole.
void require_complete(const FoundModel& model);

// Whether a path that a user gives may be loaded: Error{not_found} for a partial file, a partial snapshot of
// a hub's cache, and a folder into which a download has not finished.
void require_whole(const std::filesystem::path& path);

// A path that is there is taken when it is whole, "builtin" is unpacked, and everything else is required of
// this machine.
ResolvedModel resolve_model(const std::string& name, const Environment& environment);

// The name of a model for people, where all that is known is its path: "org/name" for a snapshot of the hub's
// cache, else the last part of the path.
std::string model_title(const std::filesystem::path& path);

// The answer to a numbered list: a number from 1 or a name. nullptr when it is neither.
const FoundModel* chosen_model(std::string_view answer, std::span<const FoundModel> found);

// The command that brings this model here or completes it; empty for one that no hub has.
std::string download_command(const std::string& name);

}  // namespace inferno
