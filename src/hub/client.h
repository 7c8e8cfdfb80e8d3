// The hub's API: model information, file lists, search. The form of every response is checked; its contents
// are not trusted as a file name, a size or text for a terminal.
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
  std::string id;      // as the hub spells it; differs from the requested one if the model has moved
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

// The headers of one file.
struct RemoteFile {
  std::string commit;
  std::string etag;        // 64 hex digits (SHA-256) or 40 (git's SHA-1); empty if it is neither
  std::uint64_t size = 0;  // 0 if unknown
  std::string url;         // the URL of the bytes: signed, valid for this run only
};

enum class Sort { downloads, likes, trending, updated, created };

struct SearchQuery {
  std::string text;
  std::string author;
  std::vector<std::string> filters;  // "gguf", "text-generation"
  Sort sort = Sort::downloads;
  int limit = 20;
};

// A search result. Numbers are 0 and texts are empty if the hub does not report them.
struct FoundOnHub {
  std::string id;
  std::int64_t downloads = 0, likes = 0;
  std::string last_modified;  // "2025-08-26T17:25:47.000Z"
  std::string pipeline, library, gated;
  std::vector<std::string> tags;
  std::vector<std::string> files;                    // paths of all files
  std::map<std::string, std::uint64_t> safetensors;  // parameters by type: {"BF16": 1804459584}
  std::uint64_t parameters = 0;                      // total, from either format
  std::uint64_t storage = 0;                         // bytes of all revisions
  std::uint64_t gguf_bytes = 0, gguf_context = 0;    // gguf.totalFileSize and gguf.context_length
  std::string gguf_architecture;
  std::string config;  // "config" as JSON text
};

// The model or file that a request concerns, for messages.
struct Subject {
  std::string id;
  std::string revision;
  std::string path;  // empty if the request concerns the model
};

// One thread at a time. Every call but the constructor sends a request: Error{network} if the hub cannot be
// reached or the settings forbid it, otherwise by the table in docs/hub.md: Error{not_found} or
// Error{network} (401, 403, 429, 5xx) with the status, the hub's own code, message and request id, and the
// exact next step.
class HubClient {
 public:
  explicit HubClient(HubSettings settings, IsCancelled is_cancelled = {});
  ~HubClient();
  HubClient(const HubClient&) = delete;
  HubClient& operator=(const HubClient&) = delete;

  // `revision` is a branch, a tag, "refs/pr/1" or a commit.
  ModelInfo info(const std::string& id, const std::string& revision = "main");
  // Every file of the model, from all pages. An entry without a name or size is Error{network}.
  std::vector<HubFile> tree(const std::string& id, const std::string& revision);
  Refs refs(const std::string& id);
  // Returns when the files of a gated model may be read; a second before a long download.
  void check_access(const std::string& id);
  RemoteFile head(const std::string& id, const std::string& revision, const std::string& path);
  // A range of a file, to read headers without a download. Fewer bytes if the file is shorter.
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

// The URL of a file on the hub.
std::string resolve_address(const HubSettings& settings, const std::string& id, const std::string& revision,
                            const std::string& path);

// The error that a failed response means.
[[noreturn]] void fail_for_status(const Response& response, const HubSettings& settings,
                                  const Subject& subject);

// An ETag without W/ and quotes if it is a SHA-256 or SHA-1 in hex, otherwise empty.
std::string blob_name(const std::string& etag);

}  // namespace inferno::hub
