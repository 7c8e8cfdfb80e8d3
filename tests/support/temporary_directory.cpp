#include "support/temporary_directory.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace inferno {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "inferno-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryDirectory::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
  return path;
}

std::filesystem::path TemporaryDirectory::write(std::string_view name,
                                                std::span<const std::byte> bytes) const {
  return write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void TemporaryDirectory::clear() const {
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    std::filesystem::remove_all(entry.path());
}

}  // namespace inferno
