// suites/peers.json: other libraries' attention, of which a machine may have any or none. Each is
// measured, or says why not.
#include <nlohmann/json.hpp>
#include <set>

#include "harness/measure/device.hpp"
#include "tests/end_to_end/python_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// The labels of the suite, or of one of its profiles, that stand for something in Python.
std::set<std::string> labels_in_python(const Json& mechanisms) {
  std::set<std::string> labels;
  for (const auto& [label, entry] : mechanisms.items()) {
    if (entry.at("use").get<std::string>().starts_with("python:")) labels.insert(label);
  }
  return labels;
}

Json peers_suite() { return Json::parse(read_file(test::source_folder() + "/suites/peers.json")); }

/// Measures one round of a profile, forward, of 64 tokens.
const std::string shortest_run =
    "peers --set length=64 --set pass=forward --set max_seconds=0.02 --profile ";

/// Whether a cell that was not measured says where and why.
bool has_reason(const Json& cell) {
  const std::string reason = cell.value("reason", "");
  return cell.at("status") == "unsupported" && reason.find(".py:") != std::string::npos;
}

}  // namespace

TEST_CASE("each peer of the suite is measured or says why it cannot be", "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const auto cells = bench.cells_of_run(shortest_run + "quick");
  const Json suite = peers_suite();
  const std::set<std::string> peers = labels_in_python(suite.at("mechanisms"));
  CHECK(peers.size() >= 14);
  for (const auto& [label, cell] : cells) {
    INFO(cell.dump(1).substr(0, 2000));
    CHECK((was_measured(cell) || (peers.count(label) > 0 && has_reason(cell))));
  }
  CHECK(cells.size() == suite.at("mechanisms").size());
}

TEST_CASE("each library of the profile wide is measured or says why it cannot be, in each task",
          "[program][python]") {
  if (!have_python()) return;
  const Json profile = peers_suite().at("profiles").at("wide");
  Json mechanisms = peers_suite().at("mechanisms");
  mechanisms.merge_patch(profile.at("mechanisms"));
  const std::set<std::string> peers = labels_in_python(mechanisms);
  for (const auto& [task, said] : profile.at("tasks").items()) {
    const PythonBench bench;
    const std::string sizes = task == "step" ? "key_length=128" : "length=64 --set head_dim=16";
    const auto cells = bench.cells_of_run("peers --profile wide --set max_seconds=0.02 --only ^" +
                                          task + " --set " + sizes);
    std::set<std::string> seen;
    for (const auto& [label, cell] : cells) {
      INFO(task << ": " << cell.dump(1).substr(0, 2000));
      CHECK((was_measured(cell) || (peers.count(label) > 0 && has_reason(cell))));
      seen.insert(label);
    }
    CHECK(seen == said.at("mechanisms").get<std::set<std::string>>());
  }
}

TEST_CASE("the suite's profile for cards names the libraries that are missing, without a card",
          "[program][python]") {
  if (!have_python()) return;
  const PythonBench bench;
  const Json profile = peers_suite().at("profiles").at("cuda");
  CHECK(profile.at("set").at("dtype") == "bfloat16");
  // Ours is measured.
  const auto cells = bench.cells_of_run(
      shortest_run + "cuda --device cpu --only flash|PyTorch|xFormers|fla.kernel");
  std::set<std::string> missing;
  for (const auto& [label, cell] : cells) {
    CHECK(cell.at("settings").at("dtype") == "bfloat16");
    if (cell.at("status") == "unsupported") missing.insert(label);
  }
  bool on_card = false;
  for (const auto& device : attnbench::measure::all_devices()) {
    on_card = on_card || (device->name() == "cuda" && device->refusal(0).empty());
  }
  for (const std::string& label : labels_in_python(profile.at("mechanisms"))) {
    INFO(label);
    REQUIRE(cells.count(label) == 1);
    CHECK(missing.count(label) == 1);
    CHECK((on_card || has_reason(cells.at(label))));
  }
  if (on_card) return;
  const Finished refused = bench.run("run peers --profile cuda --out card");
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.err, Contains("the device cuda cannot be used: "));
}
