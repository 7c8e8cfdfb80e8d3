// A tiny model with random weights and a chat template, for tests of routes.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "service/text_model.h"
#include "support/source_dir.h"

namespace inferno::server {

inline constexpr const char* plain_template =
    "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";
inline constexpr const char* tools_template =
    "{% for tool in tools or [] %}{{ tool.function.name }}\n{% endfor %}"
    "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

// It has 512 tokens and a context of 256.
inline std::shared_ptr<const TextModel> tiny_model(const std::string& chat_template) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "inferno-scene-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  fs::copy(fs::path(INFERNO_TEST_DATA) / "models/qwen3", folder, fs::copy_options::recursive);
  std::ofstream(folder / "chat_template.jinja") << chat_template;
  TextModelOptions options;
  options.device = {.device = "cpu", .threads = 1};
  options.context = 256;
  options.parallel = 4;
  auto model = std::make_shared<const TextModel>(ResolvedModel{.name = "tiny", .path = folder}, options);
  fs::remove_all(folder);
  return model;
}

}  // namespace inferno::server
