// What the harness does where a card is there, played by one that only pretends
// (tests/program/pretend/): its times, its memory, what is written of it and what holds on it.
#include <filesystem>
#include <regex>

#include "harness/measure/device.hpp"
#include "tests/program/pretend/pretend.hpp"
#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

std::string pretending() { return test::build_folder() + "/bin/pretend/attnbench"; }

using Environment = std::map<std::string, std::string>;

/// A run of the pretending program; its folder goes with it.
class CardRun {
 public:
  explicit CardRun(const std::vector<std::string>& what, const Environment& environment = {},
                   const std::string& device = "cuda") {
    std::vector<std::string> words{pretending(), "run"};
    words.insert(words.end(), what.begin(), what.end());
    for (const std::string& word :
         {std::string("--device"), device, std::string("--out"), folder()})
      words.push_back(word);
    finished = test::run(words, 120, environment);
  }

  std::string folder() const { return folder_ / "run"; }
  Json result() const {
    return attnbench::test::stored_result(folder() + "/result.json").at("attnbench");
  }
  Json cell() const { return result().at("cells").at(0); }
  /// Of the first round of its one cell.
  Json timing() const { return cell().at("timing").at("forward").at("rounds").at(0); }

  Finished finished;

 private:
  TemporaryFolder folder_;
};

const std::vector<std::string> one_cell{"softmax/composite", "--length",   "64", "--rounds", "1",
                                        "--no-ceilings",     "--no-report"};

}  // namespace

TEST_CASE("a run on a card holds its cells to its ceilings and shows it on the page", "[card]") {
  const CardRun run({"softmax/composite", "linear/scan", "--length", "64", "--rounds", "1"},
                    {{"PRETEND_CLOCK", "1"}});
  INFO(run.finished.out << run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  const Json result = run.result();
  const Json& ceilings = result.at("ceilings").at("cuda");
  INFO(ceilings.dump());
  CHECK(ceilings.at("fma_float32_flops_per_second").get<double>() ==
        Approx(pretend::fma_flops_per_second).epsilon(0.2));
  CHECK(ceilings.at("exp_float32_per_second").get<double>() ==
        Approx(pretend::exponentials_per_second).epsilon(0.2));
  CHECK(ceilings.at("bandwidth_dram_bytes_per_second").get<double>() ==
        Approx(pretend::copied_bytes_per_second).epsilon(0.2));
  CHECK(ceilings.at("clock_hz") == pretend::clock_hz);
  CHECK(ceilings.at("clock_greatest_hz") == pretend::greatest_clock_hz);
  CHECK(ceilings.at("gemm_float32_flops_per_second").get<double>() > 0);
  CHECK(result.at("machine").at("devices").at("cuda").at("name") == "a pretended card");
  for (const Json& cell : result.at("cells")) {
    INFO(cell.dump());
    REQUIRE(test::was_measured(cell));
    CHECK(cell.at("device") == "cuda");
    CHECK(cell.at("check").at("verdict") == "ok");
    CHECK(cell.at("memory").at("peak_bytes").get<std::int64_t>() > 0);
    CHECK(cell.at("device_memory").at("tensor_peak_bytes").get<std::int64_t>() > 0);
    // What empties the cache lies on the card, too.
    CHECK(cell.at("device_memory").at("used_bytes").get<std::int64_t>() >= 2 << 20);
    // Exponentials have units of their own: the floor is the greatest of three, not a sum.
    const Json& cost = cell.at("cost");
    const double floor = std::max(
        {cost.at("model_flops").get<double>() /
             std::max(ceilings.at("fma_float32_flops_per_second").get<double>(),
                      ceilings.at("gemm_float32_flops_per_second").get<double>()),
         cost.value("exponentials", 0.0) / ceilings.at("exp_float32_per_second").get<double>(),
         cost.at("minimal_bytes").get<double>() /
             ceilings.at("bandwidth_dram_bytes_per_second").get<double>()});
    CHECK(cell.at("roofline").at("floor_seconds").get<double>() == Approx(floor));
  }
  const std::string page = read_file(run.folder() + "/index.html");
  CHECK_THAT(page, Contains("a pretended card (cuda)") && Contains("Device: cuda"));
}

TEST_CASE("a card's sources of noise are in the result of a run on it", "[card]") {
  const CardRun run(one_cell, {{"LD_LIBRARY_PATH", test::build_folder() + "/lib/pretend_nvml"}},
                    "cuda:1");
  INFO(run.finished.out << run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  CHECK_THAT(run.result().at("machine").at("spoilers").dump(),
             Contains("The clock of cuda:1 is held down by power limit, heat."));
}

TEST_CASE("times are those of the card's own clock, and the clock's ratio stands beside them",
          "[card]") {
  const CardRun run(one_cell, {{"PRETEND_CLOCK", "1000"}});
  INFO(run.finished.out << run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  const Json timing = run.timing();
  double sampled = 0;
  for (const Json& seconds : timing.at("samples_seconds")) sampled += seconds.get<double>();
  CHECK(sampled > 10);  // of the card's seconds, in one or two of ours
  CHECK(run.finished.seconds < 60);
  CHECK(timing.at("clock_ratio").get<double>() ==
        Approx(pretend::clock_hz / pretend::greatest_clock_hz));
  CHECK_FALSE(timing.contains("graph"));  // nothing is short on such a clock
}

TEST_CASE("a short body is timed as a recorded graph, or the record says why not", "[card]") {
  const CardRun recorded(one_cell, {{"PRETEND_CLOCK", "0.001"}});
  INFO(recorded.finished.out << recorded.finished.err);
  REQUIRE(recorded.finished.exit_code == 0);
  CHECK(recorded.timing().at("graph") == true);
  const CardRun refused(one_cell, {{"PRETEND_CLOCK", "0.001"}, {"PRETEND_NO_GRAPHS", "1"}});
  INFO(refused.finished.out << refused.finished.err);
  REQUIRE(refused.finished.exit_code == 0);
  CHECK(refused.timing().at("graph") == false);
  CHECK(refused.timing().at("graph_reason") == "the card was told not to record");
}

TEST_CASE("records hold on the card they were measured on, and on no other", "[card]") {
  const CardRun run(one_cell, {{"PRETEND_CARD", "card A"}});
  INFO(run.finished.out << run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  const std::vector<std::string> again{pretending(), "run",           "--resume",
                                       run.folder(), "--no-ceilings", "--no-report"};
  const Finished same = test::run(again, 60, {{"PRETEND_CARD", "card A"}});
  INFO(same.out << same.err);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.err, Contains("1 of 1 cells have records that hold"));
  const Finished other = test::run(again, 60, {{"PRETEND_CARD", "card B"}});
  INFO(other.out << other.err);
  CHECK(other.exit_code == 0);
  CHECK_THAT(other.err, Contains("0 of 1 cells") && Contains("it was measured on another device"));
  CHECK(run.result().at("machine").at("devices").at("cuda").at("name") == "card B");
}

TEST_CASE("compare names the cards of two results, and calls neither fast", "[card]") {
  const std::vector<std::string> rounds{
      "softmax/composite", "--length",      "64",         "--rounds", "3", "--set",
      "batch=1",           "--no-ceilings", "--no-report"};
  const CardRun slow(rounds, {{"PRETEND_CARD", "card A"}, {"PRETEND_CLOCK", "10"}});
  const CardRun fast(rounds, {{"PRETEND_CARD", "card B"}});
  REQUIRE(slow.finished.exit_code == 0);
  REQUIRE(fast.finished.exit_code == 0);
  const Finished compared = test::run({pretending(), "compare", slow.folder(), fast.folder()});
  INFO(compared.out << compared.err);
  CHECK(compared.exit_code == 0);
  // Lines are wrapped between words.
  const std::string flat = std::regex_replace(compared.out, std::regex("\\s+"), " ");
  CHECK_THAT(flat, Contains("card A") && Contains("card B") && Contains("UNCLEAR"));
  CHECK_THAT(compared.out, !Contains("FAST "));
}

TEST_CASE("a card's memory limits its cells, before they run and while they do", "[card]") {
  const auto limited = [](const Json& entry, const std::string& limit) {
    const Bench bench({{"greedy", entry}}, 1);
    std::vector<std::string> command = bench.command({"--device", "cuda"});
    command.front() = pretending();
    if (!limit.empty()) command.insert(command.end(), {"--memory-limit", limit});
    const Finished finished = bench.run(command);
    INFO(finished.out << finished.err);
    return bench.cells().at("greedy");
  };
  // Foretold: over four fifths of the card's 8 GiB, whatever memory the host has.
  const Json foretold = limited({{"workspace_bytes", 7e9}}, "");
  CHECK(foretold.at("status") == "skipped");
  CHECK_THAT(foretold.at("reason").get<std::string>(), Contains("over the limit of 6.4"));
  // Not foretold: the card's own allocator refuses it.
  const Json met = limited({{"how", "allocate"}}, "64M");
  CHECK(met.at("status") == "out_of_memory");
  CHECK(met.at("reason") == "the card is out of memory, 67108864 bytes allowed");
}

TEST_CASE("plan and check take a card by its number", "[card]") {
  const Finished planned = test::run(
      {pretending(), "plan", "softmax/composite", "--length", "64", "--device", "cuda:1"}, 60);
  INFO(planned.out << planned.err);
  CHECK(planned.exit_code == 0);
  const TemporaryFolder folder;
  const std::string file = folder / "report.md";
  const Finished checked =
      test::run({pretending(), "check", "linear", "--implementation", "scan", "--pattern", "causal",
                 "--dtype", "float32", "--no-growth", "--device", "cuda:1", "--out", file},
                120, {{"PRETEND_CARD", "card A"}});
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(read_file(file), Contains("- device: card A (cuda:1), compute capability 9.0"));
  const Finished absent = test::run({pretending(), "check", "linear", "--device", "cuda:2"}, 60);
  CHECK(absent.exit_code == 3);
  CHECK_THAT(absent.err, Contains("there are 2 pretended devices"));
}

TEST_CASE("a forecast for one card is not used for another", "[card]") {
  const TemporaryFolder cache;
  const auto forecasts = [&](const char* name) {
    const Finished planned =
        test::run({pretending(), "plan", "linear", "--length", "64", "--device", "cuda"}, 60,
                  {{"PRETEND_CARD", name}, {"XDG_CACHE_HOME", cache.path()}});
    INFO(planned.out << planned.err);
    CHECK(planned.exit_code == 0);
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path())) {
      files += entry.path().filename().string().rfind("forecast-", 0) == 0 ? 1 : 0;
    }
    return files;
  };
  CHECK(forecasts("card A") == 1);
  CHECK(forecasts("card A") == 1);
  CHECK(forecasts("card B") == 2);
}

TEST_CASE("doctor shows a card, what it reaches and what spoils its numbers", "[card][doctor]") {
  const Environment nvml{{"LD_LIBRARY_PATH", test::build_folder() + "/lib/pretend_nvml"}};
  const Finished finished = test::run({pretending(), "doctor", "--device", "cuda:1"}, 120, nvml);
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  for (const char* words :
       {"a pretended card", "compute capability", "4.00 GiB, 3.00 GiB in use",
        "1.20 GHz of 1.98 GHz", "480 W of 500 W", "61 °C", "persistence mode", "Ceilings of cuda:1",
        "gemm_float32", "exp_float32", "4.00 T/s",
        "Other processes use cuda:1 (1000, 1001, 1002, 1003, 1004 and 15 more)",
        "persistence mode is off", "500 W where 700 W are usual", "held down by power limit, heat.",
        "ECC of cuda:1 changes at the next reset"}) {
    CHECK_THAT(finished.out, Contains(words));
  }
  CHECK_THAT(finished.out, !Contains("MIG") && !Contains("Ceilings of cpu"));
  // A card that the library does not know, and no library, are said and no failure.
  const Finished unknown = test::run({pretending(), "doctor", "--quick"}, 60, nvml);
  CHECK(unknown.exit_code == 0);
  CHECK_THAT(unknown.out, Contains("not known: NVML does not know the card at 0000:00:00.0"));
}

TEST_CASE("the shipped programs hold nothing of the pretence", "[card]") {
  const std::string mark = "a pretended card";
  CHECK(read_file(pretending()).find(mark) != std::string::npos);
  for (const std::string& shipped : {program(), worker_program()}) {
    CHECK(read_file(shipped).find(mark) == std::string::npos);
  }
  for (const auto& device : measure::all_devices()) {
    CHECK((device->name() == "cpu" || device->name() == "cuda"));
  }
}
