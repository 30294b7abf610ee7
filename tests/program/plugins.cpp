// Plugins in every kind of trouble: each is named with its cause, and everything else runs.
#include <csignal>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"

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
  return std::string(ATTNBENCH_BINARY_DIR) + "/plugins/" + name + ".so";
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

TEST_CASE("a plugin whose file is not there is a slip that ends the call", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  for (const std::string file : {"nowhere.so", "new=nowhere.so"}) {
    for (const auto& command : {bench.command({"--plugin", file}),
                                std::vector<std::string>{program(), "list", "--plugin", file}}) {
      const Finished run = bench.run(command);
      CHECK(run.exit_code == 2);
      CHECK(run.err == "attnbench: --plugin " + file + ": there is no such file\n");
    }
  }
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("a task of a plugin is listed, run and drawn like the others", "[plugins]") {
  const std::string plugin = std::string(ATTNBENCH_BINARY_DIR) + "/lib/libcopying.so";
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
  const Json result = Json::parse(read_file(bench.folder() + "/result.json"));
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
