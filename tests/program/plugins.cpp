// Plugins in every kind of trouble: each is named with its cause, and everything else runs.
#include <csignal>
#include <sstream>

#include "harness/apply/npy.hpp"
#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

struct Trouble {
  const char* on_load;
  const char* verdict;
  const char* reason;
};

/// softmax in place of the plugin's mechanism, the plugin loaded all the same.
Finished run_softmax(const Bench& bench, const std::string& on_load) {
  // The catalogue of the plugin when it was well must not answer for it.
  return bench.run(bench.command(), {{"MISBEHAVE_ON_LOAD", on_load},
                                     {"XDG_CACHE_HOME", (bench / "cache").string()}});
}

/// Of tests/attention/plugins.
std::string attention_plugin(const std::string& name) {
  return test::build_folder() + "/plugins/" + name + ".so";
}

struct BadFile {
  std::string path;
  std::string reason;
};

/// misbehave's own file, made for another machine.
std::string foreign(const Bench& bench) {
  std::string content = read_file(misbehave_plugin());
  content.at(18) = 8;  // ELF's number of MIPS
  write_file(bench / "foreign.so", content);
  return bench / "foreign.so";
}

}  // namespace

TEST_CASE("a plugin in trouble is reported, and the rest runs", "[plugins]") {
  const std::vector<Trouble> troubles{{"segfault", "crashed", "signal 11 (SIGSEGV)"},
                                      {"throw", "refused", "I was told to throw"},
                                      {"clash", "refused", "the name softmax is taken"}};
  for (const Trouble& trouble : troubles) {
    const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
    const Finished run = run_softmax(bench, trouble.on_load);
    INFO(trouble.on_load << "\n" << run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.err, Contains(trouble.verdict));
    CHECK_THAT(run.err, Contains(trouble.reason));
    CHECK_THAT(run.err, Contains(misbehave_plugin()));
    CHECK(bench.status("a") == "ok");
  }
}

TEST_CASE("every command that takes a plugin says why it is left out", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  write_file(bench / "broken.so", "not a shared object");
  const std::vector<std::vector<std::string>> commands{
      {"list", "mechanisms"},
      {"describe", "mine"},
      {"check", "mine"},
      {"validate", bench.suite()},
      {"plan", bench.suite()},
      {"ab", "mine", "softmax"},
      {"apply", "mine", "--out", bench / "applied"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), program());
    command.insert(command.end(), {"--plugin", bench / "broken.so"});
    const Finished run = bench.run(command);
    INFO(command[1] << "\n" << run.out << run.err);
    CHECK_THAT(run.err, Contains("broken.so refused: ") && Contains("is no shared object"));
  }
}

TEST_CASE("a suite that needs a plugin which crashed is refused with both reasons", "[plugins]") {
  const Bench bench({{"a", Json::object()}}, 1);
  const Finished run = run_softmax(bench, "segfault");
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("signal 11 (SIGSEGV)"));
  CHECK_THAT(run.err, Contains("misbehave"));
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("files that are no plugins of this attnbench are refused, and the rest runs",
          "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  write_file(bench / "broken.so", "not a shared object");
  const std::vector<BadFile> files{
      {bench / "broken.so", "is no shared object (ELF file)"},
      {foreign(bench), "was built for machine 8"},
      {attention_plugin("no_stamp"), "has no symbol attnbench_plugin_stamp"},
      {attention_plugin("no_register"), "has no symbol attnbench_plugin_register"},
      {attention_plugin("wrong_abi"), "rebuild attnbench from the plugin's newer sources"},
      {attention_plugin("wrong_stamp"), "it was built against LibTorch 9.9.9"},
      {attention_plugin("unresolved"), "the plugin itself lacks function_of_another_version"}};
  std::vector<std::string> flags;
  for (const BadFile& file : files) {
    flags.push_back("--plugin");
    flags.push_back(file.path);
  }
  const Finished run = bench.run(bench.command(flags));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  for (const BadFile& file : files) {
    CHECK_THAT(run.err, Contains("plugin " + file.path + " refused: "));
    CHECK(run.err.find("plugin " + file.path) == run.err.rfind("plugin " + file.path));
    CHECK_THAT(run.err, Contains(file.reason));
  }
  CHECK(run.err.find("refused: is refused") == std::string::npos);
  CHECK(bench.status("a") == "ok");
}

TEST_CASE("a TorchScript module is refused with what took its place", "[plugins]") {
  const TemporaryFolder folder;
  write_file(folder / "near.pt", "");
  write_file(
      folder / "suite.json",
      R"({"name": "s", "task": "kernel", "mechanisms": {"a": {"use": "torchscript:near.pt"}}})");
  const std::vector<std::vector<std::string>> calls{
      {"run", "torchscript:near.pt", "--length", "8"},
      {"run", "near.pt", "--length", "8"},
      {"run", "softmax", "--length", "8", "--plugin", "near.pt"},
      {"run", "softmax", "--length", "8", "--plugin", "new=near.pt"},
      {"check", "near.pt"},
      {"ab", "softmax", "torchscript:near.pt"},
      {"ab", "--base", "near.pt", "--new", "near.pt", "ci_kernels"},
      {"validate", "suite.json"}};
  for (std::vector<std::string> call : calls) {
    call.insert(call.begin(), program());
    const Finished finished = run(call, 60, {}, folder.path());
    INFO(call[1] << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains("near.pt: TorchScript was removed") &&
                                 Contains("python:FILE.py:NAME (docs/python.md)"));
  }
}

TEST_CASE("a plugin whose file is not there is a slip that ends the call", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  for (const std::string file : {"nowhere.so", "new=nowhere.so"}) {
    for (const auto& command : {bench.command({"--plugin", file}),
                                std::vector<std::string>{program(), "list", "--plugin", file}}) {
      const Finished run = bench.run(command);
      CHECK(run.exit_code == 2);
      CHECK_THAT(run.err,
                 Catch::StartsWith("attnbench: --plugin nowhere.so: there is no such file"));
    }
  }
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("a task of a plugin is listed, run and drawn like the others", "[plugins]") {
  const std::string plugin = test::build_folder() + "/lib/libcopying.so";
  const Bench bench({}, 1);
  const Finished described = bench.run({program(), "describe", "copying", "--plugin", plugin});
  CHECK_THAT(described.out, Contains("How much of the first value reaches the last token"));
  write_file(bench.suite(),
             R"({"name": "copy", "task": "copying", "set": {"length": [8, 32]},
                 "mechanisms": ["softmax", "linear"], "measure": {"rounds": 1}})");
  const Finished run = bench.run({program(), "run", bench.suite(), "--plugin", plugin, "--out",
                                  bench.folder(), "--no-ceilings"});
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  const Json result = attnbench::test::stored_result(bench.folder() + "/result.json");
  CHECK(result.at("attnbench").at("cells").size() == 4);
  for (const Json& cell : result.at("attnbench").at("cells")) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    const double share = cell.at("metrics").at("carried_share");
    CHECK(share > 0);
    CHECK(share < 1);  // an average of many values of which one is not 0
  }
  CHECK_THAT(read_file(bench.folder() + "/index.html"), Contains("copying"));
}

TEST_CASE("a mechanism that fails at work is told with its plugin, and the rest runs",
          "[plugins]") {
  const Bench bench({{"a crash", {{"how", "segfault"}}},
                     {"a shape", {{"how", "shape"}}},
                     {"b nan", {{"how", "nan"}}},
                     {"c throw", {{"how", "throw"}}},
                     {"d cost", {{"how", "segfault_in_cost"}}},
                     {"e well", Json::object()},
                     {"f softmax", {{"use", "softmax"}}}},
                    1);
  const Finished run = bench.run(bench.command());
  INFO(run.err);
  CHECK(run.exit_code == 1);  // cells are wrong
  const auto cells = bench.cells();
  const std::vector<std::array<std::string, 3>> expected{
      {"a crash", "crashed", "signal 11 (SIGSEGV)"},
      {"a shape", "wrong", "[1, 1, 1, 8], expected [1, 1, 8, 8]"},
      {"b nan", "wrong", "not finite"},
      {"c throw", "error", "I was told to throw"},
      {"d cost", "crashed", "signal 11 (SIGSEGV)"}};
  for (const auto& [label, status, reason] : expected) {
    INFO(cells.at(label).dump(1));
    CHECK(bench.status(label) == status);
    CHECK_THAT(
        cells.at(label).value("reason", ""),
        Contains(reason) && Contains("misbehave comes from the plugin " + misbehave_plugin()));
  }
  CHECK(bench.status("e well") == "ok");
  CHECK(bench.status("f softmax") == "ok");
}

TEST_CASE("a plugin built with -ffast-math changes no number of others", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  // Denormal, if only just: what is left of their bits is enough for the check's tolerance.
  const std::vector<float> tiny(24, 1e-38F);
  for (const char* role : {"query", "key", "value"}) {
    attnbench::npy::write_array(bench / (std::string(role) + ".npy"),
                                attnbench::npy::Element::float32, {1, 1, 3, 8}, tiny.data());
  }
  const std::map<std::string, std::string> fast_math{
      {"MISBEHAVE_ON_LOAD", "fast_math"}, {"XDG_CACHE_HOME", (bench / "cache").string()}};
  const Finished applied =
      bench.run({program(), "apply", "softmax", "--implementation", "composite", "--pattern",
                 "causal", "--query", bench / "query.npy", "--key", bench / "key.npy", "--value",
                 bench / "value.npy", "--plugin", misbehave_plugin(), "--out", bench / "out"},
                fast_math);
  INFO(applied.out << applied.err);
  REQUIRE(applied.exit_code == 0);
  const auto array = attnbench::npy::open_array(bench / "out" / "output.npy");
  std::vector<float> output(24);
  attnbench::npy::read_array(array, output.data());
  for (const float value : output) CHECK(value == Approx(1e-38F).epsilon(1e-3));
  // Nor does it leave traps in which others are caught.
  const Finished run = bench.run(bench.command(), fast_math);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(bench.status("a") == "ok");
}

TEST_CASE(
    "a plugin that bends numbers, forges messages or leaves processes costs its own cell only",
    "[plugins]") {
  const Bench bench({{"a well", Json::object()},
                     {"b flush", {{"how", "flush"}}},
                     {"c traps", {{"how", "traps"}}},
                     {"d forge", {{"how", "forge"}}},
                     {"e cancel", {{"how", "cancel"}}},
                     {"f supports", {{"how", "throw_in_supports"}}},
                     {"g supports", {{"how", "segfault_in_supports"}}},
                     {"h cost", {{"how", "forge_in_cost"}}},
                     {"i memory", {{"how", "memory"}}},
                     {"j leave", {{"how", "leave_and_exit"}}},
                     {"k softmax", {{"use", "softmax"}}}},
                    1);
  const std::string left = bench / "left";
  const Finished run =
      bench.run(bench.command({"--memory-limit", "64M"}), {{"MISBEHAVE_LEFT", left}});
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(run.seconds < 50);  // a process that was left behind sleeps longer
  const auto cells = bench.cells();
  const std::vector<std::array<std::string, 3>> expected{
      {"b flush", "wrong", "changed the floating-point environment (flush-to-zero on"},
      {"c traps", "wrong", "changed the floating-point environment (traps on"},
      {"d forge", "crashed", "a message that its work did not write"},
      {"e cancel", "crashed", "a message that its work did not write"},
      {"f supports", "error", "while planning: supports() threw"},
      {"g supports", "crashed", "while planning: the process was killed by signal 11"},
      {"h cost", "crashed", "while planning: the child sent a message that its work"},
      {"i memory", "out_of_memory", "memory beside tensors"},
      {"j leave", "crashed", "exit code 7"}};
  for (const auto& [label, status, reason] : expected) {
    INFO(cells.at(label).dump(1));
    CHECK(bench.status(label) == status);
    CHECK_THAT(cells.at(label).value("reason", ""), Contains(reason));
    CHECK_FALSE(cells.at(label).contains("timing"));
  }
  CHECK(bench.status("a well") == "ok");
  CHECK(bench.status("k softmax") == "ok");
  std::istringstream pids(read_file(left));
  int pid = 0;
  while (pids >> pid) CHECK_FALSE(alive(pid));
  CHECK(pid > 0);
}

TEST_CASE("a process that a mechanism leaves behind is gone when its cell is done", "[plugins]") {
  const Bench bench({{"a", {{"how", "leave"}}}, {"b", {{"how", "hang"}}}}, 1);
  const std::string left = bench / "left";
  std::map<std::string, std::string> environment = bench.environment();
  environment["MISBEHAVE_LEFT"] = left;
  Running run(bench.command({"--cell-timeout", "30"}), bench / "output", environment);
  REQUIRE(wait_until([&] { return bench.records().size() == 1 && child_of(run) > 0; }));
  std::istringstream pids(read_file(left));
  int pid = 0;
  while (pids >> pid) CHECK_FALSE(alive(pid));
  CHECK(pid > 0);
  run.signal(SIGINT);
  CHECK(run.wait(10) == 130);
}

TEST_CASE("odd sections of a plugin's task cost their cells, and the run can be gone on with",
          "[plugins]") {
  const std::vector<std::pair<std::string, std::string>> sections{
      {R"({"metrics": 3})", "/measured/metrics: expected an object"},
      {R"({"metrics": {"speed": "high"}})", "/measured/metrics/speed: expected a number"},
      {R"({"metrics": {"speed": null}})", "/measured/metrics/speed: expected a value"},
      {R"({"timing": {"mine": {"median_seconds": -1}}})", "median_seconds: expected a positive"},
      {R"({"timing": {"mine": 1}})", "/measured/timing/mine: expected an object"},
      {R"({"memory": [1]})", "/measured/memory: expected an object"},
      {R"({"chosen": 7})", "/measured/chosen: expected an object"},
      {R"({"training": {}})", "its record is not of the form of one"},
      {R"({"training": {"curve": [3]}})", "its record is not of the form of one"},
      {R"({"crossover": {}})", "its record is not of the form of one"},
      {R"({"crossover": {"verdict": 3}})", "its record is not of the form of one"},
      {R"({"check": {"verdict": "marvellous"}})", "verdict: expected one of ok, wrong"},
      {R"({"calibration_seconds": "long"})", "/measured/calibration_seconds: expected a number"}};
  const Bench bench({}, 1);
  Json mechanisms = {{"well", {{"use", "softmax"}, {"sections", R"({"metrics": {"speed": 2}})"}}}};
  for (std::size_t i = 0; i < sections.size(); ++i) {
    mechanisms["odd " + std::to_string(i)] = {{"use", "softmax"}, {"sections", sections[i].first}};
  }
  write_file(bench.suite(), Json{{"name", "odd"},
                                 {"task", "odd"},
                                 {"mechanisms", mechanisms},
                                 {"measure", {{"rounds", 1}}}}
                                .dump());
  const std::string plugin = test::build_folder() + "/lib/libodd.so";
  const std::vector<std::string> common{"--no-ceilings", "--no-report", "--progress", "plain"};
  std::vector<std::string> begin{program(), "run",   bench.suite(), "--plugin",
                                 plugin,    "--out", bench.folder()};
  begin.insert(begin.end(), common.begin(), common.end());
  const Finished run = bench.run(begin);
  INFO(run.err);
  CHECK(run.exit_code != 3);
  const auto hold = [&] {
    const auto cells = bench.cells();
    CHECK(cells.size() == sections.size() + 1);
    CHECK(bench.status("well") == "ok");
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const Json& cell = cells.at("odd " + std::to_string(i));
      INFO(cell.dump(1));
      CHECK(cell.at("status") == "error");
      CHECK_THAT(cell.value("reason", ""), Contains(sections[i].second));
    }
  };
  hold();
  const Finished resumed = bench.run(bench.resume_command());
  INFO(resumed.err);
  CHECK(resumed.exit_code == run.exit_code);
  hold();
}

TEST_CASE("a journal with a damaged record repeats its cell", "[plugins]") {
  const Bench bench({{"a", Json::object()}, {"b", {{"length", 16}}}}, 1);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  std::string journal;
  std::istringstream lines(bench.journal());
  for (std::string line; std::getline(lines, line);) {
    Json one = Json::parse(line);
    if (one.value("type", "") == "record" && journal.find("\"record\"") == std::string::npos) {
      one["measured"]["timing"]["forward"]["median_seconds"] = -5;
    }
    journal += one.dump() + "\n";
  }
  write_file(bench.folder() + "/journal.jsonl", journal);
  const Finished resumed = bench.run(bench.resume_command());
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(
      resumed.err,
      Contains("journal.jsonl:2: /measured/timing/forward/median_seconds: expected a positive"));
  CHECK(bench.status("a") == "ok");
  CHECK(bench.records().size() == 3);
}
