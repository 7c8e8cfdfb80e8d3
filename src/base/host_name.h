// What the name of a host tells without asking the network.
#pragma once

#include <string_view>

namespace inferno {

// Four numbers with points between them.
bool is_ipv4(std::string_view host);

// Whether a host in lower case is this machine: localhost, 127.x.x.x or ::1, the latter also in brackets.
// 127.0.0.1.example.org is another machine.
bool is_loopback(std::string_view host);

}  // namespace inferno
