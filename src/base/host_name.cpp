#include "base/host_name.h"

#include <cstddef>

namespace inferno {

bool is_ipv4(std::string_view host) {
  int parts = 0;
  while (true) {
    const std::string_view part = host.substr(0, host.find('.'));
    const bool is_number = part.find_first_not_of("0123456789") == std::string_view::npos;
    if (part.empty() || part.size() > 3 || !is_number) return false;
    ++parts;
    if (part.size() == host.size()) return parts == 4;
    host.remove_prefix(part.size() + 1);
  }
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  return host.starts_with("127.") && is_ipv4(host);
}

}  // namespace inferno
