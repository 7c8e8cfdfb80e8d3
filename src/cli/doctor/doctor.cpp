#include "cli/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace inferno::doctor {
namespace {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::warn: return "warn";
    case Verdict::fail: return "fail";
  }
  return "";
}

std::string counted(int number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace

std::vector<Finding> examine(const Sources& sources) {
  std::vector<Finding> findings = {examine_program(), examine_cpu(), examine_memory(sources)};
  std::ranges::move(examine_gpus(sources), std::back_inserter(findings));
  findings.push_back(examine_cache(sources));
  findings.push_back(examine_settings(sources));
  return findings;
}

int count(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<int>(std::ranges::count(findings, verdict, &Finding::verdict));
}

std::string as_table(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text +=
        fmt::format(" {:<4} {:<9} {}\n", name_of(finding.verdict), finding.check, printable(finding.summary));
    if (!finding.next.empty()) text += fmt::format("      {:<9} -> {}\n", "", printable(finding.next));
  }
  text += fmt::format("{}, {}.   --json for machines\n", counted(count(findings, Verdict::warn), "warning"),
                      counted(count(findings, Verdict::fail), "error"));
  return text;
}

std::string as_json(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    Json entry = {
        {"check", finding.check}, {"verdict", name_of(finding.verdict)}, {"summary", finding.summary}};
    if (!finding.next.empty()) entry["next"] = finding.next;
    entry["facts"] = finding.facts;
    checks.push_back(std::move(entry));
  }
  const Json all = {{"checks", std::move(checks)},
                    {"warnings", count(findings, Verdict::warn)},
                    {"errors", count(findings, Verdict::fail)}};
  // Paths and names come from outside and need not be UTF-8.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace inferno::doctor
