#include "cli/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench/stored_results.h"

namespace inferno {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Measurement decoding(int batch, int depth, double seconds) {
  return {.test = depth == 0 ? "tg100" : "tg100 @ d" + std::to_string(depth),
          .batch = batch,
          .tokens = 100,
          .depth = depth,
          .seconds = {seconds, seconds * 0.9, seconds * 1.1},
          .bytes_per_step = 2e9};
}

BenchReport scene() {
  BenchReport report;
  report.model = "gpt-oss-20b";
  report.weights = "bf16+mxfp4";
  report.device = "NVIDIA H200";
  report.kernels = "sm_90";
  report.version = "0.1.0";
  report.commit = "0123456789ab";
  report.command = "inferno bench --shape gpt-oss-20b";
  report.date = "2026-11-15T12:00:00Z";
  report.host = "a CPU, 16 usable cores";
  report.weight_bytes = 10'000'000'000;
  report.load_seconds = 2.0;
  report.bandwidth = report.bandwidth_one_thread = 4e12;
  report.conversions = {{"model.norm.weight", "bf16 to f32", "sums are float"}};
  report.rows = {{.test = "pp512", .batch = 1, .tokens = 512, .seconds = {0.1}},
                 decoding(1, 0, 0.1),
                 decoding(1, 2048, 0.2),
                 decoding(8, 0, 0.2)};
  return report;
}

TEST(BenchReport, CountsMillisecondsOfAStepOrOfAPrompt) {
  const BenchReport report = scene();
  EXPECT_NEAR(milliseconds(report.rows[0]), 100.0, 1e-9);
  EXPECT_NEAR(milliseconds(report.rows[1]), 1.0, 1e-9);
  EXPECT_NEAR(roofline(report, report.rows[1]), 2000.0, 1e-6);
  EXPECT_NEAR(roofline(report, report.rows[3]), 16000.0, 1e-6);
  EXPECT_EQ(roofline(report, report.rows[0]), 0.0);
}

TEST(BenchReport, SaysInJsonWhereAResultComesFrom) {
  const auto json = nlohmann::json::parse(as_json(scene()));
  for (const char* key : {"commit", "command", "date", "host", "device", "version", "model", "weights"}) {
    EXPECT_FALSE(json.at(key).get<std::string>().empty()) << key;
  }
  const auto& row = json.at("results").at(2);
  EXPECT_EQ(row.at("test"), "tg100 @ d2048");
  EXPECT_EQ(row.at("depth"), 2048);
  EXPECT_NEAR(row.at("milliseconds").get<double>(), 2.0, 1e-9);
  EXPECT_NEAR(row.at("bytes_per_second").get<double>(), 1e12, 1.0);
  EXPECT_NEAR(row.at("share_of_bandwidth").get<double>(), 0.25, 1e-9);
  EXPECT_GT(row.at("deviation").get<double>(), 0.0);
  EXPECT_EQ(json.at("conversions").at(0).at("tensor"), "model.norm.weight");
}

TEST(BenchReport, HasAColumnForEachFigure) {
  EXPECT_THAT(as_markdown(scene()), AllOf(HasSubstr("| tg100 @ d2048 | 1 | 500.00 | "),
                                          HasSubstr(" | 2.00 | 1000.00 | 25 % |"), HasSubstr("(5.00 GB/s)")));
  BenchReport report = scene();
  report.model = "a \"strange\", name";
  const std::string csv = as_csv(report);
  EXPECT_THAT(csv, AllOf(HasSubstr("milliseconds,share_of_bandwidth\n"),
                         HasSubstr("\"a \"\"strange\"\", name\""), HasSubstr(",2.0000,0.2500\n")));
}

TEST(BenchPlot, ShowsBothPanelsWithAxesUnitsAndLegend) {
  const std::string svg = as_svg(scene());
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<svg xmlns="), HasSubstr("Throughput by batch size"),
                    HasSubstr("Decoding by depth"), HasSubstr("concurrent sequences"),
                    HasSubstr("tokens in the cache"), HasSubstr(">tokens/s<"), HasSubstr(">tg100, batch 1<"),
                    HasSubstr(">read roofline, batch 1<"), HasSubstr(">tg100 @ d2048<"),
                    HasSubstr("prefers-color-scheme: dark"), HasSubstr("tg100, batch 1: 1000.00 ± ")));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf\""), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(BenchPlot, LeavesOutWhatWasNotMeasured) {
  BenchReport report = scene();
  report.rows.resize(1);
  EXPECT_THAT(as_svg(report),
              AllOf(HasSubstr("Prompts by batch size"), Not(HasSubstr("Throughput by batch size")),
                    Not(HasSubstr("Decoding by depth"))));
  report.rows.clear();
  EXPECT_THAT(as_svg(report), AllOf(HasSubstr("<svg"), Not(HasSubstr("Throughput"))));
}

TEST(BenchPlot, EscapesNames) {
  BenchReport report = scene();
  report.model = "<script>&\"\x01";
  EXPECT_THAT(as_svg(report), AllOf(Not(HasSubstr("<script>")), HasSubstr("&lt;script&gt;&amp;&quot; ")));
}

TEST(BenchPlot, KeepsEveryPointInsideItsPanel) {
  const std::string svg = as_svg(scene());
  for (std::size_t at = svg.find("cy=\""); at != std::string::npos; at = svg.find("cy=\"", at + 1)) {
    const double y = std::stod(svg.substr(at + 4));
    EXPECT_GE(y, 74.0);
    EXPECT_LE(y, 330.0 - 48.0);
  }
}

TEST(StoredResults, AreDrawnAsTheReportThatWroteThem) {
  EXPECT_EQ(plot_of_stored(as_json(scene()), "stored.json"), as_svg(scene()));
}

// A collection with results of each kind; the last one has nothing to be compared with.
constexpr std::string_view collection =
    R"({"gpu": "NVIDIA <H200>, 580, 1980 MHz", "commit": "58a3785", "results": [
 {"shape": "a", "weights": "q8_0", "test": "tg100", "batch": 1, "tokens": 100, "depth": 2048, "seconds": [0.1],
  "bytes_per_step": 1e9, "llama_cpp": 500},
 {"shape": "a", "weights": "q8_0", "test": "tg100", "batch": 64, "tokens": 100, "depth": 0, "seconds": [1.0],
  "bytes_per_step": 1e9, "llama_cpp": 3200},
 {"shape": "a", "weights": "q8_0", "test": "pp2048", "batch": 1, "tokens": 2048, "depth": 0, "seconds": [0.1],
  "llama_cpp": 10240},
 {"shape": "alone", "weights": "q8_0", "test": "tg1", "batch": 1, "tokens": 1, "depth": 0, "seconds": [1],
  "bytes_per_step": 1e9, "llama_cpp": null}]})";

TEST(StoredResults, BesideAnotherProgramBecomeBars) {
  const std::string svg = plot_of_stored(collection, "stored.json");
  EXPECT_THAT(svg, AllOf(HasSubstr("NVIDIA &lt;H200&gt; · inferno 58a3785"), HasSubstr(">Inferno<"),
                         HasSubstr(">llama.cpp<"), HasSubstr(">a, q8_0, after 2,048<"), HasSubstr(">1,000<"),
                         HasSubstr(">a, q8_0, 64 streams<"), HasSubstr(">6,400<"),
                         HasSubstr(">a, q8_0, 2,048 tokens<"), HasSubstr(">20,480<"), HasSubstr(">10,240<")));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("alone")), HasSubstr("prefers-color-scheme: dark")));
  // The longest bar of a panel fills it, and that of half the rate is half as long.
  EXPECT_THAT(svg, AllOf(HasSubstr("width=\"400.0\""), HasSubstr("width=\"200.0\"")));
}

TEST(StoredResults, OfAnotherFormAreRefused) {
  const std::string text(collection);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string("[]"), std::string(R"({"results": 3})"), std::string(R"({"results": [3]})"),
        with("\"batch\": 1", "\"batch\": 1.5"), with("[0.1]", "[0]"), with("[0.1]", "[-1]"),
        with("[0.1]", "{}"), with("\"a\"", "7"), with("500", "\"500\""),
        with("\"tokens\": 100", "\"tokens\": 1e300")})
    EXPECT_THROW(plot_of_stored(bad, "stored.json"), Error) << bad;
}

}  // namespace
}  // namespace inferno
