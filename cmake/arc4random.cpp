// Debian 12's libstdc++.a calls arc4random, which glibc has from 2.36 on; portable programs bring their own,
// so that they run from glibc 2.34 on (Ubuntu 22.04, RHEL 9, Amazon Linux 2023).
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t value = 0;
  // Interrupted only before any byte was copied; fails only on kernels before 3.17.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value)) return value;
  }
  std::abort();
}
