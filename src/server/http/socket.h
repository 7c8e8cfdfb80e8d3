// What the server asks of the system beside Asio: TLS certificates, the state of a connection, and a way out
// when descriptors run out. A context is OpenSSL's SSL_CTX.
#pragma once

#include <string>

struct ssl_ctx_st;

namespace inferno::server {

// Error{io} or Error{corrupt} that names the file, or says that key and certificate do not match.
void load_certificate(ssl_ctx_st* context, const std::string& certificate_file, const std::string& key_file);

// Which version of IP a listening TCP socket has: 4 or 6. Error{invalid_request} if `descriptor` is none.
int ip_version_of_listener(int descriptor);

enum class PeerState {
  open,         // sends and receives, as far as the kernel knows
  half_closed,  // sends no more; whether it still receives shows when it is sent something
  gone,
};
PeerState peer_state(int descriptor);

// Holds a descriptor in reserve, so that connections can be refused when there is no other left.
class SpareDescriptor {
 public:
  SpareDescriptor();
  ~SpareDescriptor();
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  // Accepts and closes one connection. False if not even that is possible now.
  bool refuse_connection(int listener);

 private:
  int descriptor_;
};

}  // namespace inferno::server
