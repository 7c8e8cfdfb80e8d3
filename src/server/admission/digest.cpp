#include "server/admission/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace inferno::server {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Digest sha256(std::string_view bytes) {
  Digest digest;
  unsigned length = 0;
  expects(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1 &&
              length == digest.size(),
          "OpenSSL can hash");
  return digest;
}

std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes),
                                     static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::string base64(const Digest& digest) {
  return base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string from_base64(std::string_view text) {
  // OpenSSL takes padding anywhere for zeros.
  if (text.size() - std::min(text.find('='), text.size()) > 2) return {};
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(text),
                                     static_cast<int>(text.size()));
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (length < 0 || static_cast<std::size_t>(length) < padding) return {};
  out.resize(static_cast<std::size_t>(length) - padding);
  return out;
}

}  // namespace inferno::server
