#include "hub/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/cache/layout.h"
#include "hub/http/url.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

using Json = nlohmann::json;

constexpr int max_depth = 64;
constexpr int max_pages = 1'000;
constexpr std::size_t max_files = 200'000;
constexpr std::size_t max_refs_named = 12;
constexpr std::size_t max_quote = 300;

// nullopt for text that is not JSON, and for JSON nested more than max_depth deep.
std::optional<Json> parse_json(const std::string& text) {
  bool too_deep = false;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > max_depth;
    return !too_deep;
  };
  Json parsed = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (too_deep || parsed.is_discarded()) return std::nullopt;
  return parsed;
}

// null when absent.
const Json& field(const Json& object, const char* name) {
  static const Json absent;
  if (!object.is_object()) return absent;
  const auto found = object.find(name);
  return found == object.end() ? absent : *found;
}

std::string text_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_boolean() && value.get<bool>();
}

// nullopt when absent, negative or not a whole number.
std::optional<std::uint64_t> count_field(const Json& object, const char* name) {
  const Json& value = field(object, name);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  return std::nullopt;
}

std::vector<std::string> text_list(const Json& array) {
  std::vector<std::string> texts;
  if (!array.is_array()) return texts;
  for (const Json& one : array) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

std::string models_url(const HubSettings& settings, const std::string& id) {
  return fmt::format("{}/api/models/{}", settings.endpoint, percent_encoded(id, Slash::kept));
}

[[noreturn]] void fail_not_a_hub(const HubSettings& settings, const std::string& what) {
  fail(ErrorKind::network, fmt::format("{}: unexpected response: {}", settings.endpoint, what),
       {.why = "a proxy or a network's login page may have answered instead",
        .next = "check HF_ENDPOINT and the network, then run again"});
}

Json parsed(const Response& response, const HubSettings& settings, const char* what) {
  auto json = parse_json(response.body);
  if (!json) fail_not_a_hub(settings, fmt::format("{} is not JSON", what));
  return std::move(*json);
}

// Link: <https://…>; rel="next", among others.
std::string next_page(const std::string& link) {
  for (std::size_t begin = link.find('<'); begin != std::string::npos; begin = link.find('<', begin + 1)) {
    const std::size_t end = link.find('>', begin);
    if (end == std::string::npos) return {};
    const std::string_view after = std::string_view(link).substr(end, link.find('<', end) - end);
    if (after.find("rel=\"next\"") != std::string_view::npos ||
        after.find("rel=next") != std::string_view::npos)
      return link.substr(begin + 1, end - begin - 1);
  }
  return {};
}

HubFile file_of(const Json& entry, const HubSettings& settings) {
  const Json& large = field(entry, "lfs");
  const auto size = large.is_object() && count_field(large, "size") ? count_field(large, "size")
                                                                    : count_field(entry, "size");
  HubFile file = {.path = text_field(entry, "path"),
                  .size = size.value_or(0),
                  .git_oid = blob_name(text_field(entry, "oid")),
                  .sha256 = {}};
  if (file.path.empty()) fail_not_a_hub(settings, "a file without a name");
  if (!size) fail_not_a_hub(settings, fmt::format("no size for {}", quote(file.path)));
  if (file.git_oid.size() != 40) file.git_oid.clear();
  if (large.is_object()) {
    file.sha256 = blob_name(text_field(large, "oid"));
    if (file.sha256.size() != 64) fail_not_a_hub(settings, fmt::format("no hash for {}", quote(file.path)));
  }
  return file;
}

std::vector<Ref> ref_list(const Json& array) {
  std::vector<Ref> refs;
  if (!array.is_array()) return refs;
  for (const Json& one : array) {
    refs.push_back({text_field(one, "name"), text_field(one, "ref"), text_field(one, "targetCommit")});
  }
  return refs;
}

std::string known_revisions(const Refs& refs) {
  std::string names;
  std::size_t count = 0;
  for (const auto* list : {&refs.branches, &refs.tags}) {
    for (const Ref& ref : *list) {
      if (++count > max_refs_named) return names + ", ...";
      names += (names.empty() ? "" : ", ") + ref.name;
    }
  }
  return names;
}

const char* sort_key(Sort sort) {
  switch (sort) {
    case Sort::downloads: return "downloads";
    case Sort::likes: return "likes";
    case Sort::trending: return "trendingScore";
    case Sort::updated: return "lastModified";
    case Sort::created: return "createdAt";
  }
  return "downloads";
}

std::string search_url(const HubSettings& settings, const SearchQuery& query) {
  const auto quoted = [](const std::string& text) { return percent_encoded(text, Slash::quoted); };
  std::string url = fmt::format("{}/api/models?search={}&sort={}&limit={}", settings.endpoint,
                                quoted(query.text), sort_key(query.sort), query.limit);
  if (!query.author.empty()) url += "&author=" + quoted(query.author);
  for (const std::string& filter : query.filters) url += "&filter=" + quoted(filter);
  for (const char* part :
       {"downloads", "likes", "trendingScore", "lastModified", "gated", "pipeline_tag", "library_name",
        "tags", "safetensors", "gguf", "config", "siblings", "usedStorage"}) {
    url += fmt::format("&expand={}", part);
  }
  return url;
}

std::string gated_field(const Json& model) {
  return text_field(model, "gated");  // the string "auto" or "manual", or false
}

std::int64_t small_count(const Json& object, const char* name) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count_field(object, name).value_or(0), INT64_MAX));
}

FoundOnHub found_of(const Json& model) {
  FoundOnHub found;
  found.id = text_field(model, "id");
  found.downloads = small_count(model, "downloads");
  found.likes = small_count(model, "likes");
  found.last_modified = text_field(model, "lastModified");
  found.pipeline = text_field(model, "pipeline_tag");
  found.library = text_field(model, "library_name");
  found.gated = gated_field(model);
  found.tags = text_list(field(model, "tags"));
  if (found.id.empty()) found.id = text_field(model, "modelId");
  if (const Json& siblings = field(model, "siblings"); siblings.is_array()) {
    for (const Json& one : siblings) found.files.push_back(text_field(one, "rfilename"));
  }
  const Json& tensors = field(model, "safetensors");
  if (const Json& types = field(tensors, "parameters"); types.is_object()) {
    for (const auto& [type, count] : types.items()) {
      if (count.is_number_unsigned()) found.safetensors[type] = count.get<std::uint64_t>();
    }
  }
  const Json& gguf = field(model, "gguf");
  found.parameters = count_field(tensors, "total").value_or(count_field(gguf, "total").value_or(0));
  found.storage = count_field(model, "usedStorage").value_or(0);
  found.gguf_bytes = count_field(gguf, "totalFileSize").value_or(0);
  found.gguf_context = count_field(gguf, "context_length").value_or(0);
  found.gguf_architecture = text_field(gguf, "architecture");
  if (const Json& config = field(model, "config"); config.is_object())
    found.config = config.dump(-1, ' ', false, Json::error_handler_t::replace);
  return found;
}

std::uint64_t size_in(const Response& response) {
  const bool redirected = response.status >= 300;
  const std::string& linked = response.headers["x-linked-size"];
  const std::string& text = linked.empty() && !redirected ? response.headers["content-length"] : linked;
  std::uint64_t size = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
  return problem == std::errc() && end == text.data() + text.size() ? size : 0;
}

// What a refusal of the hub means, by its own code rather than by the status, and what to do about it.
struct Refusal {
  const Response& response;
  const HubSettings& settings;
  const Subject& subject;
  std::string code, message;

  std::string named() const {
    if (!subject.path.empty()) return fmt::format("{}/{}", subject.id, subject.path);
    return subject.id;
  }

  // "(403 GatedRepo, request Root=1-6a…)"
  std::string facts() const {
    std::string text = std::to_string(response.status);
    if (!code.empty()) text += " " + code;
    const std::string& request = response.headers["x-request-id"];
    if (!request.empty()) text += ", request " + request.substr(0, max_quote);
    return "(" + text + ")";
  }

  std::string quoted() const {
    return message.empty() ? std::string() : fmt::format("the hub says: {}", message.substr(0, max_quote));
  }

  std::string token_origin() const {
    if (!settings.token.empty()) return fmt::format("the token from {} was sent", settings.token_source);
    if (settings.token_file.empty()) return "no token was sent (HF_TOKEN is not set)";
    return fmt::format("no token was sent (none in HF_TOKEN or {})", settings.token_file.string());
  }

  std::string page() const { return settings.endpoint + "/" + percent_encoded(subject.id, Slash::kept); }
};

[[noreturn]] void fail_unknown_repository(const Refusal& refusal) {
  fail(ErrorKind::not_found,
       fmt::format("{}: no such model on {} {}", refusal.subject.id, refusal.settings.endpoint,
                   refusal.facts()),
       {.why = fmt::format("it does not exist, or it is private or gated and {}", refusal.token_origin()),
        .next =
            "check the name (inferno search); if it is private or gated: export HF_TOKEN=... and run again"});
}

[[noreturn]] void fail_gated(const Refusal& refusal) {
  const bool with_token = !refusal.settings.token.empty();
  fail(ErrorKind::network, fmt::format("{} is gated {}", refusal.subject.id, refusal.facts()),
       {.why = with_token
                   ? fmt::format("{}, and its account has not accepted the license or was not granted access",
                                 refusal.token_origin())
                   : refusal.token_origin(),
        .next = with_token ? fmt::format("accept at {} and run again", refusal.page())
                           : fmt::format("accept at {}, then export HF_TOKEN=hf_... and run again",
                                         refusal.page())});
}

[[noreturn]] void fail_bad_token(const Refusal& refusal) {
  fail(ErrorKind::network, fmt::format("{}: invalid token {}", refusal.subject.id, refusal.facts()),
       {.why = fmt::format("{}; {}", refusal.token_origin(), refusal.quoted()),
        .next = fmt::format("create a new one at {}/settings/tokens, or remove it: public models need none",
                            refusal.settings.endpoint)});
}

[[noreturn]] void fail_for_other_status(const Refusal& refusal) {
  const int status = refusal.response.status;
  if (status == 429) {
    fail(ErrorKind::network, fmt::format("{}: too many requests {}", refusal.named(), refusal.facts()),
         {.why = refusal.quoted(),
          .next = refusal.settings.token.empty()
                      ? "wait five minutes; with a token the limits are higher: export HF_TOKEN=..."
                      : "wait five minutes and run again"});
  }
  if (status >= 500) {
    fail(
        ErrorKind::network,
        fmt::format("{}: server error at {} {}", refusal.named(), refusal.settings.endpoint, refusal.facts()),
        {.why = refusal.quoted(),
         .next = "run the same command again later; models on this machine still work"});
  }
  if (status == 404) {
    fail(ErrorKind::not_found,
         fmt::format("{}: not found on {} {}", refusal.named(), refusal.settings.endpoint, refusal.facts()),
         {.why = refusal.quoted(), .next = "check the name, and that HF_ENDPOINT is a hub"});
  }
  fail(ErrorKind::network,
       fmt::format("{}: unexpected response from {} {}", refusal.named(), refusal.settings.endpoint,
                   refusal.facts()),
       {.why = refusal.quoted(), .next = "check HF_ENDPOINT and the proxy, then run again"});
}

}  // namespace

void fail_for_status(const Response& response, const HubSettings& settings, const Subject& subject) {
  const Refusal refusal = {.response = response,
                           .settings = settings,
                           .subject = subject,
                           .code = response.headers["x-error-code"],
                           .message = response.headers["x-error-message"]};
  if (refusal.message.starts_with("Invalid credentials")) fail_bad_token(refusal);
  if (refusal.message.starts_with("Access to this resource is disabled")) {
    fail(ErrorKind::network,
         fmt::format("{}: the hub has disabled this model {}", subject.id, refusal.facts()),
         {.why = refusal.quoted(), .next = {}});
  }
  if (refusal.code == "GatedRepo") fail_gated(refusal);
  if (refusal.code == "RevisionNotFound") {
    fail(ErrorKind::not_found,
         fmt::format("{}: no revision {} {}", subject.id, subject.revision, refusal.facts()),
         {.why = refusal.quoted(), .next = fmt::format("see the revisions at {}/tree/main", refusal.page())});
  }
  if (refusal.code == "EntryNotFound") {
    fail(
        ErrorKind::not_found,
        fmt::format("{}: no such file in revision {} {}", refusal.named(), subject.revision, refusal.facts()),
        {.why = refusal.quoted(), .next = fmt::format("see the files at {}/tree/main", refusal.page())});
  }
  if (refusal.code == "RepoNotFound" || response.status == 401) fail_unknown_repository(refusal);
  fail_for_other_status(refusal);
}

HubClient::HubClient(HubSettings settings, IsCancelled is_cancelled)
    : settings_(std::move(settings)), gate_(std::make_shared<RateGate>(settings_.time_scale)) {
  if (!settings_.is_offline())
    http_ = std::make_unique<HttpClient>(settings_, gate_, std::move(is_cancelled));
}

HubClient::~HubClient() = default;

Response HubClient::send(const Request& request, const Subject& subject) {
  require_online(settings_, subject.id);
  Response response = http_->send(request);
  const bool pointed_on = request.method == Method::head && !response.location.empty();
  if ((response.status < 200 || response.status > 299) && !pointed_on)
    fail_for_status(response, settings_, subject);
  return response;
}

ModelInfo HubClient::info(const std::string& id, const std::string& revision) {
  const Subject subject = {.id = id, .revision = revision, .path = {}};
  Request request;
  request.url = models_url(settings_, id) + "/revision/" + percent_encoded(revision, Slash::quoted);
  require_online(settings_, id);
  const Response response = http_->send(request);
  if (response.status == 404 && response.headers["x-error-code"] == "RevisionNotFound") {
    fail(ErrorKind::not_found, fmt::format("{}: no revision {} (404 RevisionNotFound)", id, revision),
         {.why = {}, .next = fmt::format("choose one of: {}", known_revisions(refs(id)))});
  }
  if (response.status != 200) fail_for_status(response, settings_, subject);
  const Json json = parsed(response, settings_, "the model information");
  ModelInfo info = {.id = text_field(json, "id"),
                    .commit = text_field(json, "sha"),
                    .gated = gated_field(json),
                    .is_private = flag_field(json, "private"),
                    .is_disabled = flag_field(json, "disabled")};
  if (!is_commit(info.commit)) fail_not_a_hub(settings_, "no commit for the revision");
  if (info.id.empty()) info.id = id;
  return info;
}

std::vector<HubFile> HubClient::tree(const std::string& id, const std::string& revision) {
  const Subject subject = {.id = id, .revision = revision, .path = {}};
  Request request;
  request.url = fmt::format("{}/tree/{}?recursive=true&expand=false", models_url(settings_, id),
                            percent_encoded(revision, Slash::quoted));
  const auto home = parse_url(settings_.endpoint);
  std::vector<HubFile> files;
  for (int page = 0; page < max_pages; ++page) {
    const Response response = send(request, subject);
    const Json json = parsed(response, settings_, "the list of files");
    if (!json.is_array()) fail_not_a_hub(settings_, "the list of files is not an array");
    for (const Json& entry : json) {
      if (text_field(entry, "type") != "directory") files.push_back(file_of(entry, settings_));
    }
    if (files.size() > max_files) fail_not_a_hub(settings_, fmt::format("more than {} files", max_files));
    const std::string next = next_page(response.headers["link"]);
    if (next.empty()) return files;
    const auto url = resolve_url(*home, next);
    if (!url || url->origin() != home->origin())
      fail_not_a_hub(settings_, "the next page of files is on another host");
    request.url = url->text;
  }
  fail_not_a_hub(settings_, fmt::format("more than {} pages of files", max_pages));
}

Refs HubClient::refs(const std::string& id) {
  Request request;
  request.url = models_url(settings_, id) + "/refs";
  const Json json =
      parsed(send(request, {.id = id, .revision = {}, .path = {}}), settings_, "the list of revisions");
  return {.branches = ref_list(field(json, "branches")),
          .tags = ref_list(field(json, "tags")),
          .converts = ref_list(field(json, "converts"))};
}

void HubClient::check_access(const std::string& id) {
  Request request;
  request.url = models_url(settings_, id) + "/auth-check";
  send(request, {.id = id, .revision = {}, .path = {}});
}

RemoteFile HubClient::head(const std::string& id, const std::string& revision, const std::string& path) {
  Request request;
  request.method = Method::head;
  request.url = resolve_address(settings_, id, revision, path);
  request.headers = {"Accept-Encoding: identity"};
  request.redirects = Redirects::relative;
  const Response response = send(request, {.id = id, .revision = revision, .path = path});
  const Headers& told = response.hub_headers;
  RemoteFile file = {.commit = told["x-repo-commit"],
                     .etag = blob_name(told["x-linked-etag"].empty() ? told["etag"] : told["x-linked-etag"]),
                     .size = size_in(response),
                     .url = response.location.empty() ? response.url : response.location};
  if (!is_commit(file.commit)) fail_not_a_hub(settings_, "a file without an X-Repo-Commit header");
  return file;
}

std::string HubClient::read(const std::string& id, const std::string& revision, const std::string& path,
                            std::uint64_t offset, std::size_t count) {
  if (count == 0) return {};
  Request request;
  request.url = resolve_address(settings_, id, revision, path);
  request.headers = {"Accept-Encoding: identity",
                     fmt::format("Range: bytes={}-{}", offset, offset + count - 1)};
  std::string bytes;
  // A server that ignores the range sends the file from its first byte; bytes outside the range are dropped.
  std::uint64_t at = 0;
  bool is_first = true;
  request.sink = [&](const Response& head, std::span<const std::byte> some) {
    if (is_first) at = head.status == 206 ? offset : 0;
    is_first = false;
    const std::uint64_t skip = std::min<std::uint64_t>(at < offset ? offset - at : 0, some.size());
    const auto wanted = some.subspan(skip, std::min(some.size() - skip, count - bytes.size()));
    bytes.append(reinterpret_cast<const char*>(wanted.data()), wanted.size());
    at += some.size();
    return bytes.size() < count;
  };
  require_online(settings_, id);
  const Outcome outcome = http_->attempt_with_retries(request, [&] {
    bytes.clear();
    is_first = true;
  });
  if (bytes.size() == count || outcome.response.status == 416) return bytes;
  if (outcome.response.status != 200 && outcome.response.status != 206) {
    fail_for_status(outcome.response, settings_, {.id = id, .revision = revision, .path = path});
  }
  return bytes;
}

std::vector<FoundOnHub> HubClient::search(const SearchQuery& query) {
  Request request;
  request.url = search_url(settings_, query);
  const Json json =
      parsed(send(request, {.id = "search", .revision = {}, .path = {}}), settings_, "the list of models");
  if (!json.is_array()) fail_not_a_hub(settings_, "the list of models is not an array");
  std::vector<FoundOnHub> found;
  for (const Json& model : json) {
    if (model.is_object()) found.push_back(found_of(model));
  }
  return found;
}

std::string resolve_address(const HubSettings& settings, const std::string& id, const std::string& revision,
                            const std::string& path) {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, percent_encoded(id, Slash::kept),
                     percent_encoded(revision, Slash::quoted), percent_encoded(path, Slash::kept));
}

std::string blob_name(const std::string& etag) {
  std::string_view text = etag;
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return is_hex(text, 64) || is_hex(text, 40) ? std::string(text) : std::string();
}

}  // namespace inferno::hub
