#include "harness/run/supervise/settings.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

ExitCode verdict_of(const std::vector<std::string>& statuses,
                    const std::set<std::string>& fail_on = {}, bool interrupted = false) {
  run::Json cells = run::Json::array();
  for (const std::string& status : statuses) cells.push_back({{"status", status}});
  run::RunOutcome outcome{{{"attnbench", {{"cells", cells}}}}, "folder", interrupted};
  return run::verdict(outcome, fail_on);
}

}  // namespace

TEST_CASE("findings are no failures unless named", "[verdict]") {
  CHECK(verdict_of({"ok", "disturbed", "out_of_memory", "timeout", "unsupported", "skipped"}) ==
        ExitCode::done);
  CHECK(verdict_of({"ok", "disturbed"}, {"disturbed"}) == ExitCode::cells);
  CHECK(verdict_of({"ok", "timeout"}, {"timeout"}) == ExitCode::cells);
  CHECK(verdict_of({"ok"}, {"timeout"}) == ExitCode::done);
  CHECK(verdict_of({"ok", "disturbed"}) == ExitCode::done);
  CHECK(verdict_of({"ok", "disturbed"}, {"disturbed"}) == ExitCode::cells);
}

TEST_CASE("crashes, errors and wrong cells are", "[verdict]") {
  CHECK(verdict_of({"ok", "crashed"}) == ExitCode::cells);
  CHECK(verdict_of({"ok", "error"}) == ExitCode::cells);
  CHECK(verdict_of({"crashed", "wrong"}) == ExitCode::failed);
  CHECK(verdict_of({"crashed", "wrong"}, {}, true) == ExitCode::interrupted);
}
