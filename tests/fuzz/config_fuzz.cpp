// F5: config.json and generation_config.json, and every accessor.
#include "checkpoint/config_json.h"
#include "checkpoint/generation_config.h"
#include "fuzz/guard.h"

namespace {

using namespace inferno;

void ask(const Config& config, const std::string& key) {
  fuzz::guard([&] { config.integer(key); });
  fuzz::guard([&] { config.positive(key); });
  fuzz::guard([&] { config.number(key); });
  fuzz::guard([&] { config.numbers(key); });
  fuzz::guard([&] { config.flag(key, false); });
  fuzz::guard([&] { config.text(key, ""); });
  fuzz::guard([&] { config.texts(key); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::guard([&] {
    const Config config = parse_config(fuzz::text(data, size), fuzz::origin);
    for (const std::string& key : config.unread()) ask(config, key);
    fuzz::guard([&] { generation_config(config); });
  });
  return 0;
}
