#include "harness/program/run/supervise/supervisor.hpp"

#include <csignal>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;

TEST_CASE("a signal after the last round leaves a complete result of an interrupted run",
          "[supervisor]") {
  const test::TemporaryFolder folder;
  const test::Variable cache("XDG_CACHE_HOME", folder.path().string());
  test::write_file(folder / "worker", "");
  for (const bool interrupted : {false, true}) {
    run::RunSettings settings;
    settings.suite.header = {{"name", "nothing"}};
    settings.builds.emplace_back(std::vector<std::string>{}, folder / "worker");
    settings.out = folder / (interrupted ? "interrupted" : "done");
    settings.next_rounds = [interrupted](const auto&, const auto&) -> std::optional<run::Further> {
      if (interrupted) std::raise(SIGTERM);
      return std::nullopt;
    };
    const run::RunOutcome outcome = run::Supervisor(settings).run();
    CHECK(outcome.interrupted == interrupted);
    CHECK(outcome.result.run.state == "complete");
    CHECK(std::filesystem::exists(outcome.folder / "result.json"));
  }
}
