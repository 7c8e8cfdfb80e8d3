#include "checkpoint/gguf/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "checkpoint/gguf/metadata.h"
#include "checkpoint/gguf/types.h"

namespace inferno {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::uint64_t alignment = 32;  // the default of readers

std::uint64_t padded(std::uint64_t size) {
  const auto up = checked::align_up(size, alignment);
  expects(up.has_value(), "the size of a file fits 64 bits");
  return *up;
}

class Header {
 public:
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void put(Number value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(GgufType type) { put(static_cast<std::uint32_t>(type)); }
  template <class Element>
  void put_list(GgufType type, const std::vector<Element>& list) {
    put(GgufType::array);
    put(type);
    put(static_cast<std::uint64_t>(list.size()));
    for (const Element& element : list) put(element);
  }

  void operator()(std::uint32_t value) { put(GgufType::u32), put(value); }
  void operator()(std::int32_t value) { put(GgufType::i32), put(value); }
  void operator()(float value) { put(GgufType::f32), put(value); }
  void operator()(bool value) { put(GgufType::boolean), put(static_cast<std::uint8_t>(value ? 1 : 0)); }
  void operator()(const std::string& value) { put(GgufType::string), put(std::string_view(value)); }
  void operator()(const std::vector<std::string>& value) { put_list(GgufType::string, value); }
  void operator()(const std::vector<float>& value) { put_list(GgufType::f32, value); }
  void operator()(const std::vector<std::int32_t>& value) { put_list(GgufType::i32, value); }

  std::vector<std::byte> finish() {
    bytes_.resize(padded(bytes_.size()));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

// A file that gets its name when it is complete. Until then it has no name (O_TMPFILE), so that even a killed
// process leaves nothing, or a temporary name if the file system does not support that.
class PartialFile {
 public:
  explicit PartialFile(const std::filesystem::path& target)
      : target_(output_path(target)),
        partial_(target_),
        folder_(target_.parent_path().empty() ? "." : target_.parent_path()) {
    partial_ += fmt::format(".{}.partial", ::getpid());
    descriptor_ = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) give_up("create the file");
    named_ = true;
  }
  ~PartialFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (named_) ::unlink(partial_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Reserves the space at once if the file system can, so that a full disk is noticed before hours of work.
  void reserve(std::uint64_t size) {
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0) return;
    if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT) {
      std::error_code ignored;
      const std::filesystem::space_info space = std::filesystem::space(folder_, ignored);
      if (ignored || space.available >= size) return;
      errno = ENOSPC;
    }
    give_up(fmt::format("reserve {} bytes", size));
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) give_up("write the file");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  void finish() {
    if (::fsync(descriptor_) != 0) give_up("sync the file to disk");
    if (!named_) {
      const std::string self = fmt::format("/proc/self/fd/{}", descriptor_);
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, partial_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        give_up("name the finished file");
      }
      named_ = true;
    }
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) give_up("close the file");
    if (::rename(partial_.c_str(), target_.c_str()) != 0) give_up("rename the finished file");
    named_ = false;
  }

 private:
  [[noreturn]] void give_up(const std::string& what) const {
    const int reason = errno;
    const bool full = reason == ENOSPC || reason == EDQUOT;
    fail(ErrorKind::io, fmt::format("{}: cannot {}: {}", target_.string(), what, std::strerror(reason)),
         {.why = {},
          .next = full ? "free some space, or give a path on another disk; no partial file was left"
                       : "check that the folder exists and may be written to"});
  }

  std::filesystem::path target_, partial_, folder_;
  int descriptor_ = -1;
  bool named_ = false;  // partial_ exists
};

}  // namespace

std::uint64_t OutgoingTensor::bytes() const {
  const auto elements = checked::elements(shape);
  expects(elements.has_value() && *elements % static_cast<std::uint64_t>(block_elements(format)) == 0,
          "a tensor to write consists of whole blocks");
  return bytes_for(format, *elements);
}

std::vector<std::byte> gguf_header(const OutgoingGguf& file) {
  Header header;
  for (const char c : {'G', 'G', 'U', 'F'}) header.put(c);
  header.put(std::uint32_t{3});
  header.put(static_cast<std::uint64_t>(file.tensors.size()));
  header.put(static_cast<std::uint64_t>(file.keys.size()));
  for (const auto& [key, value] : file.keys) {
    header.put(std::string_view(key));
    std::visit(header, value);
  }
  const std::vector<std::uint64_t> offsets = gguf_offsets(file);
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    const OutgoingTensor& tensor = file.tensors[i];
    const auto type = ggml_number(tensor.format);
    expects(type.has_value(), "a tensor to write has a GGUF type");
    header.put(std::string_view(tensor.name));
    header.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      header.put(static_cast<std::uint64_t>(*size));
    }
    header.put(*type);
    header.put(offsets[i]);
  }
  return header.finish();
}

std::vector<std::uint64_t> gguf_offsets(const OutgoingGguf& file) {
  std::vector<std::uint64_t> offsets = {0};
  for (const OutgoingTensor& tensor : file.tensors) {
    const auto end = checked::add(offsets.back(), tensor.bytes());
    expects(end.has_value(), "the size of a file fits 64 bits");
    offsets.push_back(padded(*end));
  }
  return offsets;
}

void write_gguf(const std::filesystem::path& path, const OutgoingGguf& file, const GgufProgress& progress) {
  const std::vector<std::byte> header = gguf_header(file);
  PartialFile out(path);
  out.reserve(header.size() + gguf_offsets(file).back());
  out.write(header);
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    if (progress) progress(i);
    const std::uint64_t wanted = file.tensors[i].bytes();
    std::uint64_t written = 0;
    file.tensors[i].write([&](std::span<const std::byte> bytes) {
      written += bytes.size();
      expects(written <= wanted, "a tensor writes no more bytes than announced");
      out.write(bytes);
    });
    expects(written == wanted, "a tensor writes as many bytes as announced");
    out.write(std::vector<std::byte>(padded(wanted) - wanted));
  }
  out.finish();
}

}  // namespace inferno
