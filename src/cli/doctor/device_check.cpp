#include "cli/doctor/device_check.h"

#include <nlohmann/json.hpp>

#include "catalogue/catalogue.h"
#include "service/self_check.h"

namespace inferno::doctor {
namespace {

using Json = nlohmann::ordered_json;

Finding run(const DeviceOptions& options, const Environment& environment) {
  const SelfTest result = run_self_test(Catalogue(catalogue_settings(environment)).builtin().path, options);
  Finding finding = {.check = "self-test",
                     .summary = result.summary(),
                     .facts = Json{{"device", result.device.name},
                                   {"kernels", result.device.kernels},
                                   {"tokens", result.tokens},
                                   {"equal_tokens", result.equal_tokens},
                                   {"milliseconds", result.milliseconds}}
                                  .dump()};
  if (!result.has_passed()) {
    finding.verdict = Verdict::fail;
    finding.next =
        "try --device cpu, then another machine; report this with the output of inferno doctor --json";
  }
  return finding;
}

}  // namespace

Finding check_device(const DeviceOptions& device, const Environment& environment) {
  try {
    return run(device, environment);
  } catch (const std::exception& error) {
    return {.check = "self-test", .verdict = Verdict::fail, .summary = error.what()};
  }
}

}  // namespace inferno::doctor
