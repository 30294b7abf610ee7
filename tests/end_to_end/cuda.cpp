// --device cuda, as a user meets it with and without a GPU.
#include <nlohmann/json.hpp>

#include "harness/measure/device.hpp"
#include "tests/end_to_end/training_suite.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Json = nlohmann::json;

namespace {

/// Why there is no CUDA device to use; empty where there is one.
std::string refusal() {
  for (const auto& device : attnbench::measure::all_devices()) {
    if (device->name() == "cuda") return device->refusal(0);
  }
  return "no such kind";
}

/// A case that warns of this counts as skipped (tests/run.py).
bool has_device() {
  const std::string why = refusal();
  if (!why.empty()) WARN("needs a CUDA device: " << why);
  return why.empty();
}

}  // namespace

TEST_CASE("a CUDA device that cannot be used ends the program with 3 and the reason",
          "[program][cuda]") {
  const TemporaryFolder folder;
  // Where there is one, there are not a hundred.
  const std::string device = refusal().empty() ? "cuda:99" : "cuda";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{program(), "run", "linear", "--length", "16", "--out",
                                 folder / "run", "--device", device},
        std::vector<std::string>{program(), "check", "linear", "--device", device}}) {
    const Finished finished = run(command);
    INFO(command.at(1) << ": " << finished.out << finished.err);
    CHECK(finished.exit_code == 3);
    CHECK_THAT(finished.err, Catch::Contains("the device " + device + " cannot be used: "));
    CHECK(finished.err.find("cannot be used: \n") == std::string::npos);
  }
}

TEST_CASE("a kernel's fault, exhausted memory and a hang on the device cost one cell each",
          "[program][cuda]") {
  if (!has_device()) return;
  const Bench bench({{"before", {}},
                     {"faulty", {{"how", "fault"}}},
                     {"greedy", {{"how", "allocate_all"}}},
                     {"lost", {{"how", "illegal_address"}}},
                     {"hanging", {{"how", "hang"}}},
                     {"after", {}}},
                    1);
  const Finished finished = bench.run("--device cuda --cell-timeout 20");
  INFO(finished.out << finished.err);
  CHECK(bench.status("before") == "ok");
  CHECK(bench.status("faulty") == "error");
  CHECK(bench.status("greedy") == "out_of_memory");
  CHECK(bench.status("lost") == "error");
  CHECK_THAT(bench.cells().at("lost").value("reason", ""),
             Catch::Contains("illegal memory access"));
  CHECK(bench.status("hanging") == "timeout");
  CHECK(bench.status("after") == "ok");
}

TEST_CASE("cells run on a CUDA device, checked, metered and timed there", "[program][cuda]") {
  if (!has_device()) return;
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Finished finished = run({program(), "run", "softmax", "latte", "--length", "64,256",
                                 "--device", "cuda", "--rounds", "1", "--out", out});
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json result = attnbench::test::stored_result(out + "/result.json");
  CHECK(result.at("attnbench").at("ceilings").at("cuda").at("gemm_bfloat16_flops_per_second") > 0);
  for (const Json& cell : result.at("attnbench").at("cells")) {
    INFO(cell.dump());
    CHECK(cell.at("device") == "cuda");
    CHECK(cell.at("status") == "ok");
    CHECK(cell.at("memory").at("peak_bytes").get<std::int64_t>() > 0);
  }
}

TEST_CASE("tokens are generated on a CUDA device, their steps timed as recorded graphs",
          "[program][cuda]") {
  if (!has_device()) return;
  const TemporaryFolder folder;
  const std::string suite = folder / "suite.json";
  write_file(suite, Json{{"name", "generation"},
                         {"task", "decode"},
                         {"set", {{"length", 64}, {"steps", 8}}},
                         {"mechanisms", {"softmax", "window", "linear", "latte"}}}
                        .dump());
  const Finished finished = run({program(), "run", suite, "--device", "cuda", "--rounds", "1",
                                 "--no-ceilings", "--out", folder / "run"});
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json result = attnbench::test::stored_result(folder / "run/result.json");
  for (const Json& cell : result.at("attnbench").at("cells")) {
    INFO(cell.dump());
    REQUIRE(cell.at("status") == "ok");
    for (const char* what : {"step", "generation"}) {
      const Json& round = cell.at("timing").at(what).at("rounds").at(0);
      INFO(what << ": " << round.value("graph_reason", ""));
      CHECK(round.at("graph") == true);
      CHECK(round.at("clock_ratio") > 0);
    }
  }
}

TEST_CASE("a model is trained on a CUDA device, under autocast and without", "[program][cuda]") {
  if (!has_device()) return;
  for (const char* autocast : {"off", "bfloat16"}) {
    const TrainingSuite suite(Json{{"autocast", autocast}});
    const Finished finished = suite.run("--device cuda");
    INFO(autocast << ": " << finished.out << finished.err);
    REQUIRE(finished.exit_code == 0);
    const Json cell = suite.cell();
    CHECK(cell.at("device") == "cuda");
    CHECK(cell.at("status") == "ok");
    CHECK(cell.at("check").at("verdict") == "ok");
    // It learns: the loss of the last epoch is below that of the first.
    const Json& curve = cell.at("training").at("curve");
    CHECK(curve.back().at("loss") < curve.front().at("loss"));
  }
}
