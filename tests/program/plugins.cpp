// Plugins that crash, throw or clash while they are loaded cost only themselves.
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

}  // namespace

TEST_CASE("a plugin in trouble is reported, and the rest runs", "[plugins]") {
  const std::vector<Trouble> troubles{{"segfault", "crashed", "signal 11 (SIGSEGV)"},
                                      {"throw", "refused", "I was told to throw"},
                                      {"clash", "refused", "softmax"}};
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

TEST_CASE("a suite that needs a plugin which crashed is refused with both reasons", "[plugins]") {
  const Bench bench({{"a", Json::object()}}, 1);
  const Finished run = run_softmax(bench, "segfault");
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("signal 11 (SIGSEGV)"));
  CHECK_THAT(run.err, Contains("misbehave"));
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("what is no plugin is refused", "[plugins]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  write_file(bench / "broken.so", "not a shared object");
  const Finished run = bench.run(bench.command({"--plugin", (bench / "broken.so").string()}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("broken.so refused"));
  CHECK(bench.status("a") == "ok");
}
