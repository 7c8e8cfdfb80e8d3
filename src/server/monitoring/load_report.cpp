#include "server/monitoring/load_report.h"

#include <fmt/format.h>

namespace inferno::server {

std::optional<std::string> load_report(std::string_view format, const EngineStats& stats) {
  const double used = stats.blocks > 0 ? 1.0 - static_cast<double>(stats.free_blocks) / stats.blocks : 0.0;
  if (format == "TEXT" || format == "text") {
    return fmt::format(
        "TEXT named_metrics.kv_cache_usage_perc={:.4f}, named_metrics.num_requests_waiting={}, "
        "named_metrics.num_requests_running={}",
        used, stats.waiting, stats.running);
  }
  if (format == "JSON" || format == "json") {
    return fmt::format(
        R"(JSON {{"named_metrics": {{"kv_cache_usage_perc": {:.4f}, "num_requests_waiting": {}, )"
        R"("num_requests_running": {}}}}})",
        used, stats.waiting, stats.running);
  }
  return std::nullopt;
}

}  // namespace inferno::server
