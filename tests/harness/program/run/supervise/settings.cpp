#include "harness/program/run/supervise/settings.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

ExitCode verdict_of(const std::vector<std::string>& statuses,
                    const std::set<std::string>& fail_on = {}, bool interrupted = false) {
  run::RunOutcome outcome;
  outcome.interrupted = interrupted;
  for (const std::string& status : statuses) {
    outcome.result.cells.emplace_back().status = *status_from(status);
  }
  return run::verdict(outcome, fail_on);
}

}  // namespace

TEST_CASE("findings are no failures unless named; crashes, errors and wrong cells are",
          "[verdict]") {
  CHECK(verdict_of({"ok", "disturbed", "out_of_memory", "timeout", "unsupported", "skipped"}) ==
        ExitCode::done);
  CHECK(verdict_of({"ok", "disturbed"}, {"disturbed"}) == ExitCode::cells);
  CHECK(verdict_of({"ok"}, {"timeout"}) == ExitCode::done);
  CHECK(verdict_of({"ok", "crashed"}) == ExitCode::cells);
  CHECK(verdict_of({"ok", "error"}) == ExitCode::cells);
  CHECK(verdict_of({"crashed", "wrong"}) == ExitCode::failed);
  CHECK(verdict_of({"crashed", "wrong"}, {}, true) == ExitCode::interrupted);
}

TEST_CASE("a run that measured nothing does not end well", "[verdict]") {
  CHECK(verdict_of({"skipped", "skipped"}) == ExitCode::environment);
  CHECK(verdict_of({"unsupported", "out_of_memory", "timeout"}) == ExitCode::environment);
  CHECK(verdict_of({"unsupported", "unsupported"}) == ExitCode::usage);
  CHECK(verdict_of({"skipped"}, {"skipped"}) == ExitCode::cells);
  CHECK(verdict_of({"skipped", "disturbed"}) == ExitCode::done);
  CHECK(verdict_of({}) == ExitCode::done);
  run::RunOutcome shard;
  shard.result.cells.emplace_back().status = Status::skipped;
  shard.result.run.shard = result::ShardInfo{1, 2};
  CHECK(run::verdict(shard, {}) == ExitCode::done);
}
