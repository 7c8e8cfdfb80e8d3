#include "cli/cached_repository.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/model_resolution.h"

namespace inferno {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
         });
}

[[noreturn]] void refuse(const std::string& name, const std::string& place) {
  fail(ErrorKind::unsupported, fmt::format("{}: not in the hub's cache but elsewhere: {}", name, place),
       {.why = "other places are only read", .next = "use the program that put it there"});
}

}  // namespace

CachedChoice find_cached_repository(const std::string& given, const Environment& environment) {
  const std::string name = known_name(given, environment);
  const hub::ParsedName parsed = hub::parse_model_name(name);
  if (std::holds_alternative<std::filesystem::path>(parsed)) refuse(name, "a path");
  CachedChoice choice = {{{}, hub::RepositoryLayout("-", "-"), {}, 0, 0}, std::get<hub::ModelName>(parsed)};
  const std::vector<FoundModel> found = models_here(environment);
  if (choice.wanted.organisation.empty()) {
    const FoundModel* model = find_model(name, found);
    if (model != nullptr && !model->cached) refuse(name, model->place);
    if (model != nullptr) choice.wanted.organisation = model->cached->name.organisation;
  }
  for (const auto& cache : model_places(environment).hub_caches) {
    for (hub::CachedRepository& repository : hub::scan_cache(cache)) {
      if (!same_letters(repository.name.id(), choice.wanted.id())) continue;
      choice.repository = std::move(repository);
      return choice;
    }
  }
  if (const FoundModel* model = find_model(name, found)) refuse(name, model->place);
  fail(ErrorKind::not_found, fmt::format("{}: not in the hub's cache", choice.wanted.text()),
       {.why = {}, .next = "inferno list shows what there is"});
}

}  // namespace inferno
