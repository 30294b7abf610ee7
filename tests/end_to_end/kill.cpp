// Things that go wrong in the middle of a run, each costing the cell at work and nothing else.
#include <signal.h>

#include <array>
#include <cfenv>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// A run of two cells that are well around one that hangs, which is at work.
struct HangingRun {
  explicit HangingRun(const std::string& more = "--cell-timeout 600",
                      std::vector<std::string> before = {}, int rounds = 1)
      : bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}, {"c", {{"length", 16}}}}, rounds),
        run(started_by(std::move(before), bench.command(more)), bench / "output") {
    REQUIRE(wait_until([&] {
      child = child_of(run);
      worker = worker_of(run);
      return bench.records().size() == 1 && child > 0 && worker > 0;
    }));
  }
  static std::vector<std::string> started_by(std::vector<std::string> before,
                                             const std::vector<std::string>& command) {
    before.insert(before.end(), command.begin(), command.end());
    return before;
  }
  void check_nothing_left() const {
    CHECK(wait_until([&] { return !alive(worker) && !alive(child); }));
  }
  /// What is left when the cell at work is lost.
  void check_lost(const std::string& reason) const {
    CHECK(bench.status("a") == "ok");
    CHECK(bench.status("b") == "crashed");
    CHECK(bench.status("c") == "ok");
    CHECK_THAT(bench.reason("b"), StartsWith(reason));
    check_nothing_left();
  }

  Bench bench;
  Running run;
  pid_t worker = -1, child = -1;
};

}  // namespace

TEST_CASE("a child killed in the middle of a cell costs that cell", "[kill][processes]") {
  HangingRun at_work("--cell-timeout 600", {}, 2);
  kill(at_work.child, SIGKILL);
  CHECK(at_work.run.wait() == 5);
  at_work.check_lost("the process was killed by signal 9 (SIGKILL); misbehave comes from");
  CHECK(at_work.bench.records().size() == 5);
}

TEST_CASE("a worker killed costs the cell at work, and is started again", "[kill][processes]") {
  HangingRun at_work;
  kill(at_work.worker, SIGKILL);
  CHECK(at_work.run.wait() == 5);
  at_work.check_lost("the worker was killed by signal 9 (SIGKILL)");
}

TEST_CASE("a run keeps the worker that it began with while a build replaces it",
          "[kill][processes]") {
  namespace fs = std::filesystem;
  const TemporaryFolder built;
  const fs::path build = build_folder();
  for (const std::string file : {"bin/attnbench", "bin/attnbench-worker",
                                 "lib/libattnbench_attention.so", "lib/libattnbench-python.so"}) {
    fs::create_directories((built / file).parent_path());
    if (fs::exists(build / file)) fs::copy_file(build / file, built / file);
  }
  const Bench bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}, {"c", {{"length", 16}}}}, 1);
  std::vector<std::string> command = bench.command("--cell-timeout 600");
  command.front() = built / "bin/attnbench";
  Running run(command, bench / "output");
  REQUIRE(wait_until([&] { return bench.records().size() == 1 && child_of(run) > 0; }));
  for (const std::string file : {"bin/attnbench-worker", "lib/libattnbench_attention.so"}) {
    fs::remove(built / file);  // as a linker does, before it writes the new one
    write_file(built / file, "half of a build");
  }
  kill(worker_of(run), SIGKILL);
  CHECK(run.wait() == 5);
  CHECK(bench.status("a") == "ok");
  CHECK(bench.status("b") == "crashed");
  CHECK(bench.status("c") == "ok");
  CHECK_FALSE(fs::exists(bench.folder() + "/.attnbench-worker-0"));
}

TEST_CASE("a cluster's SIGTERM to every process is the run's end, no crash of the cell",
          "[kill][processes]") {
  HangingRun at_work;
  // The worst order: the supervisor's own comes last.
  kill(at_work.child, SIGTERM);
  kill(at_work.worker, SIGTERM);
  at_work.run.signal(SIGTERM);
  CHECK(at_work.run.wait() == 130);
  CHECK(at_work.bench.state() == "interrupted");
  CHECK(at_work.bench.records().size() == 1);
}

TEST_CASE("a supervisor killed loses no cell, and none is measured twice", "[kill][processes]") {
  HangingRun at_work("--cell-timeout 600", {}, 2);
  const Bench& bench = at_work.bench;
  at_work.run.signal(SIGKILL);
  CHECK(at_work.run.wait() == 128 + SIGKILL);
  at_work.check_nothing_left();
  const std::string before = bench.journal();
  const Finished resumed = bench.resume("", {{"MISBEHAVE_AWAKE", "1"}});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("1 of 3 cells have records that hold"));
  CHECK(bench.journal().rfind(before, 0) == 0);
  std::map<std::string, int> times;
  for (const Json& record : bench.records()) {
    ++times[record["cell"].get<std::string>() + " " + record["round"].dump()];
  }
  CHECK(times.size() == 6);
  for (const auto& [what, count] : times) CHECK(count == 1);
  for (const auto& [label, cell] : bench.cells()) {
    CHECK(was_measured(cell));
    CHECK(cell["timing"]["forward"]["rounds"].size() == 2);
  }
}

TEST_CASE("a worker that hangs is killed at the cell's limit, and the cell is a timeout",
          "[kill][processes][night]") {
  HangingRun at_work("--cell-timeout 10");
  kill(at_work.worker, SIGSTOP);
  CHECK(at_work.run.wait() == 0);
  CHECK(at_work.bench.status("b") == "timeout");
  CHECK(at_work.bench.status("c") == "ok");
}

TEST_CASE("Ctrl-C keeps what was measured and says how to go on", "[kill][processes]") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    HangingRun at_work;
    const Bench& bench = at_work.bench;
    at_work.run.signal(number);
    CHECK(at_work.run.wait() == 130);
    CHECK_THAT(read_file(bench / "output"), Contains("attnbench run --resume " + bench.folder()));
    at_work.check_nothing_left();
    CHECK(bench.state() == "interrupted");
    CHECK(bench.status("a") == "ok");
    CHECK(bench.status("b") == "skipped");
    if (number != SIGINT) continue;
    CHECK(bench.resume("", {{"MISBEHAVE_AWAKE", "1"}}).exit_code == 0);
    CHECK(bench.state() == "complete");
    CHECK(bench.records().size() == 3);
  }
}

TEST_CASE("one signal ends a run whose worker was stopped", "[kill][processes]") {
  HangingRun at_work;
  kill(at_work.worker, SIGSTOP);
  at_work.run.signal(SIGTERM);
  CHECK(at_work.run.wait() == 130);
  at_work.check_nothing_left();
  CHECK(at_work.bench.state() == "interrupted");
}

TEST_CASE("a hang-up that was ignored from the beginning stays ignored",
          "[kill][processes][night]") {
  HangingRun at_work("--cell-timeout 10", {"/usr/bin/nohup"});
  at_work.run.signal(SIGHUP);
  CHECK(at_work.run.wait() == 0);
  CHECK(at_work.bench.state() == "complete");
  CHECK(at_work.bench.status("b") == "timeout");
  CHECK_THAT(at_work.bench.reason("b"), Contains("--cell-timeout"));
}

TEST_CASE("a run whose folder is deleted stops before the next cell", "[kill][processes]") {
  HangingRun at_work;
  std::filesystem::remove_all(at_work.bench.folder());
  kill(at_work.child, SIGKILL);
  CHECK(at_work.run.wait() == 3);
  CHECK_THAT(
      read_file(at_work.bench / "output"),
      Contains("journal.jsonl is gone: its folder was deleted or moved") && !Contains("--resume"));
  at_work.check_nothing_left();
  CHECK_FALSE(std::filesystem::exists(at_work.bench.folder()));
}

TEST_CASE("output that cannot be written is an error", "[kill]") {
  const Bench bench({{"a", Json::object()}}, 1);
  const auto shell = [&](const std::string& line) {
    return run({"/bin/bash", "-c", line}, 580, {{"ATTNBENCH", program()}});
  };
  for (const char* line :
       {"\"$ATTNBENCH\" --help > /dev/full", "\"$ATTNBENCH\" validate --help > /dev/full"}) {
    const Finished run = shell(line);
    INFO(line << "\n" << run.err);
    CHECK(run.exit_code == 3);
    CHECK_THAT(run.err, Contains("cannot write all of the output"));
  }
  std::string line;
  for (const std::string& word : bench.command()) line += "'" + word + "' ";
  CHECK(shell(line + " > /dev/full").exit_code == 3);
  CHECK(bench.status("a") == "ok");
  // Who stops reading has seen enough.
  const Finished left = shell("set -o pipefail; trap '' PIPE; \"$ATTNBENCH\" --help | true");
  CHECK(left.exit_code == 0);
}

TEST_CASE("a worker that has no room to start is said to have none", "[kill]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  std::vector<std::string> command{"/bin/bash", "-c", "ulimit -v 600000; exec \"$0\" \"$@\""};
  for (const std::string& word : bench.command()) command.push_back(word);
  const Finished finished = run(command, 580, {{"XDG_CACHE_HOME", bench / "cache"}});
  INFO(finished.err);
  CHECK(finished.exit_code != 0);
  CHECK_THAT(finished.err, !Contains("[test] killed"));
}

TEST_CASE("every way to fail at work has its status and its plugin, and costs only its cell",
          "[kill][plugins]") {
  const bool traps = feenableexcept(FE_OVERFLOW) != -1;  // few processors of aarch64 have them
  fedisableexcept(FE_OVERFLOW);
  const std::vector<std::array<std::string, 3>> ways{
      {"segfault", "crashed", "the process was killed by signal 11 (SIGSEGV)"},
      {"abort", "crashed", "the process was killed by signal 6 (SIGABRT)"},
      {"exit", "crashed", "exit code 7"},
      {"throw", "error", "I was told to throw"},
      {"wrong", "wrong", "differ from the reference"},
      {"unsupported", "unsupported", "misbehave was told to refuse"},
      {"segfault_in_cost", "crashed", "signal 11 (SIGSEGV)"},
      {"shape", "wrong", "[1, 1, 1, 8], expected [1, 1, 8, 8]"},
      {"nan", "wrong", "not finite"},
      // tests/tasks/kernel/cheats.cpp has the others that cheat.
      {"first_call", "wrong", "in a timed call its values differ from the reference"},
      {"flush", "wrong", "changed the floating-point environment (flush-to-zero on"},
      {"traps", traps ? "wrong" : "error",
       traps ? "changed the floating-point environment (traps on" : "has no traps"},
      {"forge", "crashed", "a message that its work did not write"},
      {"cancel", "crashed", "a message that its work did not write"},
      {"throw_in_supports", "error", "while planning: supports() threw"},
      {"segfault_in_supports", "crashed", "while planning: the process was killed by signal 11"},
      {"forge_in_cost", "crashed", "while planning: the child sent a message that its work"},
      {"memory", "out_of_memory", "memory beside tensors"},
      {"allocate", "out_of_memory", ""},
      {"leave_and_exit", "crashed", "exit code 7"}};
  Json entries = {{"well", Json::object()},
                  {"well, softmax", {{"use", "softmax"}}},
                  {"foreseen", {{"workspace_bytes", 36507222016.0}}}};
  for (const auto& [how, status, reason] : ways) entries[how] = {{"how", how}};
  const Bench bench(entries, 1);
  const std::string left = bench / "left";
  const Finished run = bench.run("--memory-limit 64M", {{"MISBEHAVE_LEFT", left}});
  INFO(run.err);
  CHECK(run.exit_code == 1);  // a wrong cell weighs more than a crashed one
  const auto cells = bench.cells();
  for (const auto& [how, status, reason] : ways) {
    const Json& cell = cells.at(how);
    INFO(cell.dump(1));
    CHECK(cell["status"] == status);
    CHECK_THAT(cell.value("reason", ""), Contains(reason));
    CHECK_FALSE(cell.contains("timing"));
  }
  for (const char* how : {"segfault", "abort", "throw", "shape", "nan", "segfault_in_cost"}) {
    CHECK_THAT(bench.reason(how),
               Contains("misbehave comes from the plugin " + misbehave_plugin()));
  }
  CHECK(bench.status("foreseen") == "skipped");
  CHECK_THAT(bench.reason("foreseen"),
             Contains("predicted 34.0 GiB is over the limit of 64.0 MiB"));
  CHECK_THAT(run.err, Contains("--memory-limit"));
  CHECK(bench.status("well") == "ok");
  CHECK(bench.status("well, softmax") == "ok");
  const std::vector<std::string> pids = words(read_file(left));
  CHECK(pids.size() >= 1);
  for (const std::string& pid : pids) CHECK_FALSE(alive(std::stoi(pid)));
}

TEST_CASE("a process that a mechanism leaves behind is gone when its cell is done",
          "[plugins][processes]") {
  const Bench bench({{"a", {{"how", "leave"}}}, {"b", {{"how", "hang"}}}}, 1);
  const std::string left = bench / "left";
  Running run(bench.command("--cell-timeout 600"), bench / "output", {{"MISBEHAVE_LEFT", left}});
  REQUIRE(wait_until([&] { return bench.records().size() == 1 && child_of(run) > 0; }));
  const std::vector<std::string> pids = words(read_file(left));
  CHECK(pids.size() >= 1);
  for (const std::string& pid : pids) CHECK_FALSE(alive(std::stoi(pid)));
  run.signal(SIGINT);
  CHECK(run.wait() == 130);
}
