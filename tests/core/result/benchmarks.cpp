#include "core/result/benchmarks.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

result::CellRecord benchmark_cell(const char* task, const char* label, const Json& settings,
                                  const Json& options) {
  const Json timing = {{"median_seconds", 0.01},
                       {"rounds", {{{"median_seconds", 0.01}, {"samples_seconds", {0.01}}}}}};
  const Json cell = {{"task", task},
                     {"label", label},
                     {"settings", settings},
                     {"options", options},
                     {"timing", {{"forward", timing}}}};
  return cell.get<result::CellRecord>();
}

std::vector<std::string> benchmark_row_names(const std::vector<result::CellRecord>& cells) {
  std::vector<std::string> names;
  for (const Json& row : result::benchmark_rows(cells, 2)) names.push_back(row["name"]);
  return names;
}

using RowNames = std::vector<std::string>;

}  // namespace

TEST_CASE("the CPU time of a row is that of samples that count", "[result]") {
  Json timing = {{"median_seconds", 0.010},
                 {"rounds",
                  {{{"median_seconds", 0.010},
                    {"samples_seconds", {0.010, 0.010, 0.500}},
                    {"samples_cpu_share", {0.5, 0.7, 0.02}},
                    {"samples_switches", {0, 0, 9}},
                    {"preempted", {2}}},
                   {{"median_seconds", 0.011}, {"samples_seconds", {0.011}}}}}};
  const Json cell = {{"task", "kernel"}, {"label", "a"}, {"timing", {{"forward", timing}}}};
  const Json rows = result::benchmark_rows({cell.get<result::CellRecord>()}, 2);
  CHECK(rows[0]["real_time"].get<double>() == Approx(10000));
  CHECK(rows[0]["cpu_time"].get<double>() == Approx(12000));
  CHECK(rows[1]["cpu_time"].get<double>() == Approx(11000));  // not known: an older result
  CHECK_FALSE(rows[0].contains("disturbed"));
}

TEST_CASE("a name has the settings that vary, and no others", "[result]") {
  const Json small = {{"length", 256}, {"key_length", 256}, {"batch", 1}, {"pass", "forward"}};
  Json large = small;
  large.update({{"length", 512}, {"key_length", 512}});
  CHECK(benchmark_row_names({benchmark_cell("kernel", "softmax", small, {{"base", 2}}),
                             benchmark_cell("kernel", "softmax", large, {{"base", 2}})}) ==
        RowNames{"kernel/softmax/length:256/forward", "kernel/softmax/length:512/forward"});
  // Keys of another length are a setting of their own.
  Json crossed = large;
  crossed["key_length"] = 384;
  CHECK(benchmark_row_names({benchmark_cell("kernel", "softmax", small, Json::object()),
                             benchmark_cell("kernel", "softmax", crossed, Json::object())}) ==
        RowNames{"kernel/softmax/key_length:256/length:256/forward",
                 "kernel/softmax/key_length:384/length:512/forward"});
}

TEST_CASE("a pass that varies is named once", "[result]") {
  CHECK(benchmark_row_names(
            {benchmark_cell("kernel", "softmax", {{"pass", "forward"}}, Json::object()),
             benchmark_cell("kernel", "softmax", {{"pass", "backward"}}, Json::object())}) ==
        RowNames{"kernel/softmax/pass:forward", "kernel/softmax/pass:backward/forward"});
}

TEST_CASE("options are named where one label has several", "[result]") {
  const Json settings = {{"length", 64}};
  const Json narrow = {{"window", {{"left", 127}, {"right", 0}}}};
  const Json wide = {{"window", {{"left", 255}, {"right", 0}}}};
  CHECK(benchmark_row_names({benchmark_cell("kernel", "window", settings, narrow),
                             benchmark_cell("kernel", "window", settings, wide),
                             benchmark_cell("kernel", "softmax", settings, Json::object())}) ==
        RowNames{"kernel/window/window:127+0/forward", "kernel/window/window:255+0/forward",
                 "kernel/softmax/forward"});
  // The label tells them apart already.
  CHECK(benchmark_row_names({benchmark_cell("kernel", "window 128", settings, narrow),
                             benchmark_cell("kernel", "window 256", settings, wide)}) ==
        RowNames{"kernel/window 128/forward", "kernel/window 256/forward"});
}

TEST_CASE("what varies is found for each task", "[result]") {
  CHECK(benchmark_row_names({benchmark_cell("kernel", "softmax", {{"length", 64}}, Json::object()),
                             benchmark_cell("decode", "softmax", {{"length", 128}, {"steps", 4}},
                                            Json::object())}) ==
        RowNames{"kernel/softmax/forward", "decode/softmax/forward"});
}
