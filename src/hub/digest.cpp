#include "hub/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/error.h"
#include "hub/files.h"

namespace inferno::hub {
namespace {

constexpr std::size_t sha256_digits = 64;
constexpr std::size_t read_bytes = 1 << 20;

}  // namespace

struct Digest::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  Context() = default;
  ~Context() { EVP_MD_CTX_free(handle); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Digest::Digest(std::string_view etag, std::uint64_t size) : context_(std::make_unique<Context>()) {
  const EVP_MD* kind = etag.size() == sha256_digits ? EVP_sha256() : EVP_sha1();
  expects(context_->handle != nullptr && EVP_DigestInit_ex(context_->handle, kind, nullptr) == 1,
          "OpenSSL can hash");
  if (etag.size() == sha256_digits) return;
  const std::string header = fmt::format("blob {}", size);
  update(std::as_bytes(std::span(header.c_str(), header.size() + 1)));
}

Digest::~Digest() = default;

void Digest::update(std::span<const std::byte> bytes) {
  expects(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1, "OpenSSL can hash");
}

std::string Digest::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  expects(EVP_DigestFinal_ex(context_->handle, digest, &length) == 1, "OpenSSL can hash");
  std::string text;
  for (unsigned at = 0; at < length; ++at) text += fmt::format("{:02x}", digest[at]);
  return text;
}

std::string_view algorithm_of(std::string_view etag) {
  return etag.size() == sha256_digits ? "sha256" : "git-sha1";
}

std::string digest_of_file(const std::filesystem::path& file, std::string_view etag,
                           const std::function<bool(std::uint64_t bytes)>& read) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open()) fail_for_file(file, "cannot be read", errno);
  struct stat status{};
  if (::fstat(opened.number(), &status) != 0) fail_for_file(file, "cannot be read", errno);
  ::posix_fadvise(opened.number(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Digest digest(etag, static_cast<std::uint64_t>(status.st_size));
  std::vector<std::byte> buffer(read_bytes);
  while (true) {
    const ssize_t count = ::read(opened.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_for_file(file, "cannot be read", errno);
    if (count == 0) return digest.hex();
    digest.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (read && !read(static_cast<std::uint64_t>(count))) return {};
  }
}

}  // namespace inferno::hub
