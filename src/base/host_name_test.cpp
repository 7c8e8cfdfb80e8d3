#include "base/host_name.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(HostName, KnowsLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.3.9", "::1", "[::1]"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host :
       {"", "127.0.0.1.example.org", "127.example.org", "127.0.0", "127.0.0.1.", "10.0.0.1", "0.0.0.0",
        "::", "localhost.example.org", "127.0.0.1:80", "127.0.0.1000"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(HostName, KnowsFourNumbers) {
  EXPECT_TRUE(is_ipv4("10.0.0.7"));
  for (const char* host : {"10.0.0", "10.0.0.7.1", "10.0..7", "a.b.c.d", "10.0.0.7 "}) {
    EXPECT_FALSE(is_ipv4(host)) << host;
  }
}

}  // namespace
}  // namespace inferno
