// The hub's API: what a model is, which files it has, what else there is. Everything that comes back is
// checked for its form; none of it is trusted as a name, a size or a text for a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hub/http/http.h"
#include "hub/names/hub_file.h"
#include "hub/settings.h"

namespace inferno::hub {

struct ModelInfo {
  std::string id;      // as the hub spells it; another than was asked for when the model has moved
  std::string commit;  // 40 hex digits
  std::string gated;   // empty, "auto" or "manual"
  bool is_private = false;
  bool is_disabled = false;
};

struct Ref {
  std::string name;  // "main", "v1.0"
  std::string ref;   // "refs/heads/main"
  std::string commit;
};

struct Refs {
  std::vector<Ref> branches, tags, converts;
};

// What HEAD tells about one file.
struct RemoteFile {
  std::string commit;
  std::string etag;        // 64 hex digits (SHA-256) or 40 (git's SHA-1); empty when it is neither
  std::uint64_t size = 0;  // 0 when nobody says
  std::string url;         // where its bytes are: signed, for this run only
};

enum class Sort { downloads, likes, trending, updated, created };

struct SearchQuery {
  std::string text;
  std::string author;
  std::vector<std::string> filters;  // "gguf", "text-generation"
  Sort sort = Sort::downloads;
  int limit = 20;
};

// A model in a list of results. Numbers are 0 and texts empty where the hub does not say.
struct FoundOnHub {
  std::string id;
  std::int64_t downloads = 0, likes = 0;
  std::string last_modified;  // "2025-08-26T17:25:47.000Z"
  std::string pipeline, library, gated;
  std::vector<std::string> tags;
  std::vector<std::string> files;                    // of its root and below, without sizes
  std::map<std::string, std::uint64_t> safetensors;  // parameters by type: {"BF16": 1804459584}
  std::uint64_t parameters = 0;                      // all of them; from either format
  std::uint64_t storage = 0;                         // bytes of all revisions
  std::uint64_t gguf_bytes = 0, gguf_context = 0;    // gguf.totalFileSize and gguf.context_length
  std::string gguf_architecture;
  std::string config;  // "config" as JSON text
};

// What a request is about, for messages.
struct Subject {
  std::string id;
  std::string revision;
  std::string path;  // empty when it is about the model
};

// One thread at a time. Every call but the constructor asks the hub: Error{network} when it cannot be reached
// or when the settings forbid it, else by the table of docs/hub.md: Error{not_found} or Error{network} (401,
// 403, 429, 5xx) with the status, the hub's own code, message and request id, and the exact next step.
class HubClient {
 public:
  explicit HubClient(HubSettings settings, IsCancelled is_cancelled = {});
  ~HubClient();
  HubClient(const HubClient&) = delete;
  HubClient& operator=(const HubClient&) = delete;

  // `revision` is a branch, a tag, "refs/pr/1" or a commit.
  ModelInfo info(const std::string& id, const std::string& revision = "main");
  // Every file of the model, whatever page it is on. Entries without a name or size are an Error{network}.
  std::vector<HubFile> tree(const std::string& id, const std::string& revision);
  Refs refs(const std::string& id);
  // Returns when the files of a gated model may be read; a second before a long download.
  void check_access(const std::string& id);
  RemoteFile head(const std::string& id, const std::string& revision, const std::string& path);
  // Bytes of a file before any download, for headers. Fewer when the file is shorter.
  std::string read(const std::string& id, const std::string& revision, const std::string& path,
                   std::uint64_t offset, std::size_t count);
  std::vector<FoundOnHub> search(const SearchQuery& query);

  const HubSettings& settings() const { return settings_; }
  std::shared_ptr<RateGate> gate() const { return gate_; }

 private:
  Response send(const Request& request, const Subject& subject);

  HubSettings settings_;
  std::shared_ptr<RateGate> gate_;
  std::unique_ptr<HttpClient> http_;
};

// The address of a file's bytes on the hub.
std::string resolve_address(const HubSettings& settings, const std::string& id, const std::string& revision,
                            const std::string& path);

// What a failed answer means, as an error.
[[noreturn]] void fail_for_status(const Response& response, const HubSettings& settings,
                                  const Subject& subject);

// An ETag without W/ and quotes, when it is a SHA-256 or SHA-1 in hex; else empty.
std::string blob_name(const std::string& etag);

}  // namespace inferno::hub
