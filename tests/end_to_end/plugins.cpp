// Plugins in every kind of trouble: each is named with its cause, and everything else runs.
#include "core/arrays/npy.hpp"
#include "tests/end_to_end/runs.hpp"
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
  return bench.run("", {{"MISBEHAVE_ON_LOAD", on_load}, {"XDG_CACHE_HOME", bench / "cache"}});
}

/// A plugin of tests/attention/plugins, as built.
std::string attention_plugin(const std::string& name) {
  return build_folder() + "/plugins/" + name + ".so";
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
                                      {"throw", "refused", "I was told to throw"}};
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

TEST_CASE("a plugin whose mechanism has a name that is taken ends the run before it measures",
          "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  const Finished run = run_softmax(bench, "clash");
  INFO(run.err);
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("the name softmax is taken") &&
                          Contains("WORD=" + misbehave_plugin() + " gives it another name"));
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("every command that takes a plugin says why it is left out", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  write_file(bench / "broken.so", "not a shared object");
  for (const std::string& command :
       {std::string("list mechanisms"), std::string("describe mine"), std::string("check mine"),
        "validate " + bench.suite(), "plan " + bench.suite(), std::string("ab mine softmax"),
        "apply mine --out " + (bench / "applied").string()}) {
    const Finished run = call(command + " --plugin " + (bench / "broken.so").string());
    INFO(command << "\n" << run.out << run.err);
    CHECK_THAT(run.err, Contains("broken.so refused: ") && Contains("is no shared object"));
  }
}

TEST_CASE("plan counts forecasts that failed apart, and ends with their exit code", "[plugins]") {
  const Bench bench({{"fine", Json::object()}, {"a", {{"how", "segfault_in_supports"}}}}, 1);
  const Finished planned = call("plan " + bench.suite() + " --plugin " + misbehave_plugin());
  INFO(planned.out << planned.err);
  CHECK(planned.exit_code == 5);
  CHECK_THAT(planned.out, Contains("unsupported  failed") && Contains("crashed, 1 cell: "));
  const Bench whole({{"fine", Json::object()}}, 1);
  const Finished fine = call("plan " + whole.suite() + " --plugin " + misbehave_plugin());
  CHECK(fine.exit_code == 0);
  CHECK_THAT(fine.out, !Contains("failed"));
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
  std::string flags;
  for (const BadFile& file : files) flags += " --plugin " + file.path;
  const Finished run = bench.run(flags);
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
    for (const Finished& run : {bench.run("--plugin " + file), call("list --plugin " + file)}) {
      CHECK(run.exit_code == 2);
      CHECK_THAT(run.err,
                 Catch::StartsWith("attnbench: --plugin nowhere.so: there is no such file"));
    }
  }
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("a task of a plugin is listed, run and drawn like the others", "[plugins]") {
  const std::string plugin = build_folder() + "/lib/libcopying.so";
  const Bench bench({}, 1);
  const Finished described = call("describe copying --plugin " + plugin);
  CHECK_THAT(described.out, Contains("How much of the first value reaches the last token"));
  write_file(bench.suite(),
             R"({"name": "copy", "task": "copying", "set": {"length": [8, 32]},
                 "mechanisms": ["softmax", "linear"], "measure": {"rounds": 1}})");
  const Finished run = call("run " + bench.suite() + " --plugin " + plugin + " --out " +
                            bench.folder() + " --no-ceilings");
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

TEST_CASE("a plugin built with -ffast-math changes no number of others", "[plugins][night]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  // Denormal, if only just: what is left of their bits is enough for the check's tolerance.
  const std::vector<float> tiny(24, 1e-38F);
  for (const char* role : {"query", "key", "value"}) {
    attnbench::arrays::write_array(bench / (std::string(role) + ".npy"),
                                   attnbench::arrays::Element::float32, {1, 1, 3, 8}, tiny.data());
  }
  const std::map<std::string, std::string> fast_math{
      {"MISBEHAVE_ON_LOAD", "fast_math"}, {"XDG_CACHE_HOME", (bench / "cache").string()}};
  const Finished applied =
      run(words(program() +
                " apply softmax --implementation composite --pattern causal "
                "--query query.npy --key key.npy --value value.npy --out out --plugin " +
                misbehave_plugin()),
          580, fast_math, std::filesystem::path(bench.suite()).parent_path());
  INFO(applied.out << applied.err);
  REQUIRE(applied.exit_code == 0);
  const auto array = attnbench::arrays::open_array(bench / "out" / "output.npy");
  std::vector<float> output(24);
  attnbench::arrays::read_array(array, output.data());
  for (const float value : output) CHECK(value == Approx(1e-38F).epsilon(1e-3));
  // Nor does it leave traps in which others are caught.
  const Finished measured = bench.run("", fast_math);
  INFO(measured.err);
  CHECK(measured.exit_code == 0);
  CHECK(bench.status("a") == "ok");
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
  const Finished run =
      call("run " + bench.suite() + " --plugin " + build_folder() + "/lib/libodd.so --out " +
           bench.folder() + " --no-ceilings --no-report --progress plain");
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
  const Finished resumed = bench.resume();
  INFO(resumed.err);
  CHECK(resumed.exit_code == run.exit_code);
  hold();
}
