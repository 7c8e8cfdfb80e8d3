#include "catalogue/remote_headers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>

#include "base/byte_source.h"
#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf/reader.h"
#include "hub/names/gguf_file_name.h"
#include "hub/names/safe_path.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t first_read = std::uint64_t{1} << 18, max_header = std::uint64_t{256} << 20;
constexpr std::uint64_t max_text = std::uint64_t{64} << 20;

// A file on the hub. Everything from its start to the furthest byte asked for is fetched and kept.
class RemoteFile : public ByteSource {
 public:
  RemoteFile(hub::HubClient& client, std::string id, std::string commit, const hub::HubFile& file)
      : client_(client), id_(std::move(id)), commit_(std::move(commit)), file_(file) {}

  std::uint64_t size() const override { return file_.size; }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    if (offset > file_.size || to.size() > file_.size - offset) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: its header points past the end of the file", quote(file_.path)));
    }
    extend(offset + to.size());
    std::memcpy(to.data(), start_.data() + offset, to.size());
  }
  // Fetches at least the first `wanted` bytes.
  void extend(std::uint64_t wanted) const {
    if (wanted > max_header) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: its header is larger than {} bytes", quote(file_.path), max_header));
    }
    while (start_.size() < wanted) {
      // Doubles: headers are read in small steps, and every request costs a round trip.
      const std::uint64_t next = std::min(file_.size, std::max({wanted, first_read, start_.size() * 2}));
      const std::string more = client_.read(id_, commit_, file_.path, start_.size(), next - start_.size());
      if (more.empty())
        fail(ErrorKind::network,
             fmt::format("{}: the hub sent fewer bytes than it announced", quote(file_.path)));
      start_ += more;
    }
  }
  const std::string& start() const { return start_; }

 private:
  hub::HubClient& client_;
  std::string id_, commit_;
  const hub::HubFile& file_;
  mutable std::string start_;  // used by one thread only
};

[[noreturn]] void fail_to_write(const fs::path& file) {
  fail(ErrorKind::io, fmt::format("{}: {}", file.string(), std::strerror(errno)),
       {.why = "headers are kept in the temporary folder while they are read",
        .next = "set TMPDIR to a folder with space"});
}

// A file of `size` bytes that begins with `start`; the rest is a hole and takes no space.
void write_sparse(const fs::path& file, const std::string& start, std::uint64_t size) {
  fs::create_directories(file.parent_path());
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail_to_write(file);
  const bool is_written =
      ::pwrite(descriptor, start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()) &&
      ::ftruncate(descriptor, static_cast<off_t>(size)) == 0;
  ::close(descriptor);
  if (!is_written) fail_to_write(file);
}

std::uint64_t safetensors_header_bytes(const RemoteFile& file) {
  std::array<unsigned char, 8> length = {};
  file.read(0, std::as_writable_bytes(std::span(length)));
  std::uint64_t bytes = 0;
  for (std::size_t at = length.size(); at-- > 0;) bytes = bytes << 8 | length[at];
  return bytes;
}

bool is_needed(const std::string& path) {
  constexpr std::array names = {
      "config.json",          "generation_config.json", "model.safetensors.index.json",
      "hf_quant_config.json", "quantize_config.json",   "quant_config.json"};
  return std::ranges::find(names, path) != names.end();
}

}  // namespace

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
  std::string pattern = (parent / "inferno-headers-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail_to_write(pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

RemoteModel fetch_headers(hub::HubClient& client, const hub::ModelName& name, const fs::path& temporary) {
  RemoteModel model;
  model.info = client.info(name.id(), name.revision_or_main());
  model.listing = client.tree(model.info.id, model.info.commit);
  model.selection =
      hub::select_files(model.listing, {.model = name.id(), .quant = name.quant, .path = name.path});
  model.folder = std::make_unique<TemporaryFolder>(temporary);
  const fs::path home = model.folder->path() / name.name;  // so that errors name the model
  model.path = home;
  for (const hub::HubFile& file : model.selection.taken) {
    const bool is_tensors = file.path.ends_with(".safetensors"), is_gguf = hub::is_gguf(file.path);
    if (!is_tensors && !is_gguf && !is_needed(file.path)) continue;
    const RemoteFile source(client, model.info.id, model.info.commit, file);
    if (is_gguf) {
      read_gguf_header(source, file.path);
      if (hub::read_gguf_name(file.path).part == 1) model.path = home / hub::safe_path(file.path);
    } else if (is_tensors) {
      const std::uint64_t header = safetensors_header_bytes(source);
      source.extend(std::min(file.size, header > max_header ? max_header + 1 : header + 8));
    } else {
      source.extend(std::min(file.size, max_text));
    }
    model.fetched += source.start().size();
    write_sparse(home / hub::safe_path(file.path), source.start(), file.size);
  }
  return model;
}

}  // namespace inferno
