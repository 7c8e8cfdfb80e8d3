#include "server/http/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace inferno::server {

namespace {

// OpenSSL reports a missing file and a malformed one alike.
void require_readable(const char* what, const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::io, fmt::format("{} {}: {}", what, file, std::strerror(errno)));
  ::close(descriptor);
}

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

}  // namespace

void load_certificate(ssl_ctx_st* context, const std::string& certificate_file, const std::string& key_file) {
  require_readable("TLS certificate", certificate_file);
  require_readable("TLS key", key_file);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
    fail(ErrorKind::corrupt,
         fmt::format("TLS certificate {}: not a PEM certificate ({})", certificate_file, openssl_reason()));
  }
  // A key that needs a passphrase is refused: OpenSSL would ask for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const unsigned long error = ERR_peek_last_error();
    const bool mismatch = ERR_GET_LIB(error) == ERR_LIB_X509;
    const std::string reason = openssl_reason();
    fail(ErrorKind::corrupt,
         mismatch
             ? fmt::format("TLS key {} does not belong to the certificate {}", key_file, certificate_file)
             : fmt::format("TLS key {}: not an unencrypted PEM key ({})", key_file, reason));
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    fail(ErrorKind::corrupt,
         fmt::format("TLS key {} does not belong to the certificate {}", key_file, certificate_file));
  }
}

int ip_version_of_listener(int descriptor) {
  const auto option = [descriptor](int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return ::getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
  };
  const int domain = option(SO_DOMAIN);
  const bool is_tcp = (domain == AF_INET || domain == AF_INET6) && option(SO_TYPE) == SOCK_STREAM;
  if (!is_tcp || option(SO_ACCEPTCONN) != 1) {
    fail(ErrorKind::invalid_request, fmt::format("descriptor {}: not a TCP socket that listens", descriptor),
         {.why = "a service manager said that it is one (LISTEN_FDS)",
          .next = "in the socket unit use ListenStream= with an address and a port, and Accept=no"});
  }
  return domain == AF_INET ? 4 : 6;
}

PeerState peer_state(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return PeerState::gone;
  if (info.tcpi_state == TCP_ESTABLISHED) return PeerState::open;
  return info.tcpi_state == TCP_CLOSE_WAIT ? PeerState::half_closed : PeerState::gone;
}

SpareDescriptor::SpareDescriptor() : descriptor_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

SpareDescriptor::~SpareDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SpareDescriptor::refuse_connection(int listener) {
  if (descriptor_ >= 0) ::close(descriptor_);
  const int refused = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (refused >= 0) ::close(refused);
  descriptor_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return refused >= 0;
}

}  // namespace inferno::server
