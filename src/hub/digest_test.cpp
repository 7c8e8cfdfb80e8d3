#include "hub/digest.h"

#include <gtest/gtest.h>

#include <fstream>

namespace inferno::hub {
namespace {

const std::string sha256_name(64, '0'), sha1_name(40, '0');

std::string digest_of(const std::string& text, const std::string& kind) {
  Digest digest(kind, text.size());
  const auto bytes = std::as_bytes(std::span(text));
  digest.update(bytes.first(bytes.size() / 2));
  digest.update(bytes.subspan(bytes.size() / 2));
  return digest.hex();
}

TEST(Digest, OfALargeFileIsItsSha256) {
  EXPECT_EQ(digest_of("abc", sha256_name),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("", sha256_name), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// git hash-object
TEST(Digest, OfASmallFileIsGitsHash) {
  EXPECT_EQ(digest_of("hello\n", sha1_name), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest_of("", sha1_name), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(Digest, OfAFileCanBeCancelled) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "digest";
  std::ofstream(file) << "hello\n";
  EXPECT_EQ(digest_of_file(file, sha1_name), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest_of_file(file, sha1_name, [](std::uint64_t) { return false; }), "");
}

}  // namespace
}  // namespace inferno::hub
