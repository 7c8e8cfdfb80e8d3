// F7: a chat template as text.
#include "chat/jinja/template.h"
#include "fuzz/guard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  fuzz::guard([&] { jinja::Template::parse(std::string(fuzz::text(data, size)), fuzz::origin); });
  return 0;
}
