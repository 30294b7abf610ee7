#include "core/result/benchmarks.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using RowNames = std::vector<std::string>;

namespace {

test::CellBuilder row_cell(const std::string& label, Values settings, Values options = {},
                           const std::string& task = "kernel") {
  test::CellBuilder cell(label, task);
  cell.settings = std::move(settings);
  cell.options = std::move(options);
  cell.rounds({0.01});
  cell.timing["forward"].rounds[0].samples_seconds = {0.01};
  return cell;
}

RowNames row_names(const std::vector<result::CellRecord>& cells) {
  RowNames names;
  for (const Json& row : result::benchmark_rows(cells, 2)) names.push_back(row["name"]);
  return names;
}

}  // namespace

TEST_CASE("the CPU time of a row is that of samples that count", "[result]") {
  test::CellBuilder cell("a");
  cell.rounds({0.010, 0.011});
  std::vector<result::TimingRound>& rounds = cell.timing["forward"].rounds;
  rounds[0].samples_seconds = {0.010, 0.010, 0.500};
  rounds[0].samples_cpu_share = std::vector<double>{0.5, 0.7, 0.02};
  rounds[0].samples_switches = std::vector<std::int64_t>{0, 0, 9};
  rounds[0].preempted = std::vector<std::size_t>{2};
  rounds[1].samples_seconds = {0.011};
  const Json rows = result::benchmark_rows({cell}, 2);
  CHECK(rows[0]["real_time"].get<double>() == Approx(10000));
  CHECK(rows[0]["cpu_time"].get<double>() == Approx(12000));
  CHECK(rows[1]["cpu_time"].get<double>() == Approx(11000));  // not known: an older result
}

TEST_CASE("rounds and cells that do not count have no row", "[result]") {
  test::CellBuilder cell("a");
  cell.rounds({0.010, 5.0, 0.011});
  cell.timing["forward"].rounds[1].disturbed = true;
  const auto rows_of = [&cell](Status status) {
    cell.status = status;
    return result::benchmark_rows({cell}, 2);
  };
  const Json rows = rows_of(Status::ok);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1]["real_time"].get<double>() == Approx(11000));
  CHECK(rows[1]["repetition_index"] == 1);
  CHECK(rows[1]["repetitions"] == 2);
  CHECK(rows_of(Status::disturbed).empty());
  CHECK(rows_of(Status::crashed).empty());
}

TEST_CASE("a name has the settings and options that vary, and no others", "[result]") {
  const Values small = {{"length", 256}, {"key_length", 256}, {"batch", 1}, {"pass", "forward"}};
  Values large = small;
  large["length"] = large["key_length"] = 512;
  CHECK(row_names({row_cell("softmax", small, {{"base", 2}}),
                   row_cell("softmax", large, {{"base", 2}})}) ==
        RowNames{"kernel/softmax/length:256/forward", "kernel/softmax/length:512/forward"});
  // Keys of another length are a setting of their own.
  large["key_length"] = 384;
  CHECK(row_names({row_cell("softmax", small), row_cell("softmax", large)}) ==
        RowNames{"kernel/softmax/key_length:256/length:256/forward",
                 "kernel/softmax/key_length:384/length:512/forward"});
  // A pass that varies is named once.
  CHECK(row_names({row_cell("softmax", {{"pass", "forward"}}),
                   row_cell("softmax", {{"pass", "backward"}})}) ==
        RowNames{"kernel/softmax/pass:forward", "kernel/softmax/pass:backward/forward"});
  // Options are named where one label has several.
  const Values narrow = {{"window", {{"left", 127}, {"right", 0}}}};
  const Values wide = {{"window", {{"left", 255}, {"right", 0}}}};
  CHECK(row_names({row_cell("window", {}, narrow), row_cell("window", {}, wide),
                   row_cell("softmax", {})}) == RowNames{"kernel/window/window:127+0/forward",
                                                         "kernel/window/window:255+0/forward",
                                                         "kernel/softmax/forward"});
  CHECK(row_names({row_cell("window 128", {}, narrow), row_cell("window 256", {}, wide)}) ==
        RowNames{"kernel/window 128/forward", "kernel/window 256/forward"});
  // What varies is found for each task.
  CHECK(row_names({row_cell("softmax", {{"length", 64}}),
                   row_cell("softmax", {{"length", 128}, {"steps", 4}}, {}, "decode")}) ==
        RowNames{"kernel/softmax/forward", "decode/softmax/forward"});
}
