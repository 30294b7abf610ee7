// Things that go wrong in the middle of a run, each costing the cell at work and nothing else.
#include <signal.h>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// Two cells that are well around one that hangs.
const Json around_a_hang = {
    {"a", Json::object()}, {"b", {{"how", "hang"}}}, {"c", {{"length", 16}}}};

/// Waits until the first cell is in the journal and the second one is at work.
void wait_for_the_hang(const Bench& bench, const Running& run) {
  REQUIRE(wait_until([&] { return bench.records().size() == 1 && child_of(run) > 0; }));
}

}  // namespace

TEST_CASE("a child killed in the middle of a cell costs that cell", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command(), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  const pid_t worker = worker_of(run);
  kill(child_of(run), SIGKILL);
  CHECK(run.wait(30) == 5);
  CHECK(bench.status("a") == "ok");
  CHECK(bench.status("b") == "crashed");
  CHECK(bench.status("c") == "ok");
  CHECK_THAT(bench.cells()["b"]["reason"].get<std::string>(),
             StartsWith("the process was killed by signal 9 (SIGKILL); misbehave comes from"));
  CHECK(bench.records().size() == 5);
  CHECK_FALSE(alive(worker));
}

TEST_CASE("a worker killed costs the cell at work, and is started again", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command(), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  const pid_t child = child_of(run);
  kill(worker_of(run), SIGKILL);
  CHECK(run.wait(30) == 5);
  CHECK(bench.status("a") == "ok");
  CHECK(bench.status("b") == "crashed");
  CHECK(bench.status("c") == "ok");
  CHECK(bench.cells()["b"]["reason"] == "the worker was killed by signal 9 (SIGKILL)");
  CHECK(wait_until([&] { return !alive(child); }, 5));
}

TEST_CASE("a cluster's SIGTERM to every process is the run's end, no crash of the cell", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command(), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  // The worst order: the supervisor's own comes last.
  kill(child_of(run), SIGTERM);
  kill(worker_of(run), SIGTERM);
  run.signal(SIGTERM);
  CHECK(run.wait(30) == 130);
  CHECK(bench.state() == "interrupted");
  CHECK(bench.records().size() == 1);
}

TEST_CASE("a supervisor killed loses no cell, and none is measured twice", "[kill]") {
  const Bench bench(around_a_hang);
  {
    Running run(bench.command(), bench / "output", bench.environment());
    wait_for_the_hang(bench, run);
    const pid_t worker = worker_of(run);
    const pid_t child = child_of(run);
    run.signal(SIGKILL);
    CHECK(run.wait(5) == 128 + SIGKILL);
    CHECK(wait_until([&] { return !alive(worker) && !alive(child); }, 5));
  }
  const std::string before = bench.journal();
  const Finished resumed = bench.run(bench.resume_command(), {{"MISBEHAVE_AWAKE", "1"}});
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

TEST_CASE("a cell that hangs is ended at its limit", "[kill]") {
  const Bench bench(around_a_hang);
  const Finished run = bench.run(bench.command({"--cell-timeout", "1"}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(bench.status("b") == "timeout");
  CHECK_THAT(bench.cells()["b"]["reason"].get<std::string>(), Contains("--cell-timeout"));
  CHECK(bench.status("c") == "ok");
  CHECK(bench.records().size() == 5);
}

TEST_CASE("a worker that hangs is killed and the cell is a timeout", "[kill]") {
  const Bench bench(around_a_hang, 1);
  Running run(bench.command({"--cell-timeout", "1"}), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  kill(worker_of(run), SIGSTOP);
  CHECK(run.wait(30) == 0);
  CHECK(bench.status("b") == "timeout");
  CHECK(bench.status("c") == "ok");
}

TEST_CASE("Ctrl-C keeps what was measured and says how to go on", "[kill]") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Bench bench(around_a_hang);
    Running run(bench.command(), bench / "output", bench.environment());
    wait_for_the_hang(bench, run);
    const pid_t worker = worker_of(run);
    run.signal(number);
    CHECK(run.wait(10) == 130);
    CHECK_THAT(read_file(bench / "output"), Contains("attnbench run --resume " + bench.folder()));
    CHECK_FALSE(alive(worker));
    CHECK(bench.state() == "interrupted");
    CHECK(bench.status("a") == "ok");
    CHECK(bench.status("b") == "skipped");
    const Finished resumed = bench.run(bench.resume_command(), {{"MISBEHAVE_AWAKE", "1"}});
    CHECK(resumed.exit_code == 0);
    CHECK(bench.state() == "complete");
    CHECK(bench.records().size() == 6);
  }
}

TEST_CASE("a second Ctrl-C ends a run whose worker does not answer", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command(), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  const pid_t worker = worker_of(run);
  kill(worker, SIGSTOP);
  run.signal(SIGINT);
  CHECK(run.wait(0.5) == -1);
  run.signal(SIGINT);
  CHECK(run.wait(10) == 130);
  CHECK_FALSE(alive(worker));
  CHECK(bench.state() == "interrupted");
}

TEST_CASE("one signal ends a run whose worker was stopped, within seconds", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command(), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  const pid_t worker = worker_of(run);
  const pid_t child = child_of(run);
  kill(worker, SIGSTOP);
  run.signal(SIGTERM);
  CHECK(run.wait(10) == 130);
  CHECK_FALSE(alive(worker));
  CHECK_FALSE(alive(child));
  CHECK(bench.state() == "interrupted");
}

TEST_CASE("a hang-up that was ignored from the beginning stays ignored", "[kill]") {
  const Bench bench(around_a_hang, 1);
  std::vector<std::string> command{"/usr/bin/nohup"};
  for (const std::string& word : bench.command({"--cell-timeout", "2"})) command.push_back(word);
  Running run(command, bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  run.signal(SIGHUP);
  CHECK(run.wait(30) == 0);
  CHECK(bench.state() == "complete");
}

TEST_CASE("a run whose folder is deleted stops before the next cell", "[kill]") {
  const Bench bench(around_a_hang);
  Running run(bench.command({"--cell-timeout", "1"}), bench / "output", bench.environment());
  wait_for_the_hang(bench, run);
  const pid_t worker = worker_of(run);
  std::filesystem::remove_all(bench.folder());
  CHECK(run.wait(20) == 3);
  const std::string output = read_file(bench / "output");
  CHECK_THAT(output, Contains("journal.jsonl is gone: its folder was deleted or moved"));
  CHECK_THAT(output, !Contains("--resume"));
  CHECK_FALSE(alive(worker));
  CHECK_FALSE(std::filesystem::exists(bench.folder()));
}

TEST_CASE("output that cannot be written is an error", "[kill]") {
  const Bench bench({{"a", Json::object()}}, 1);
  const auto shell = [&](const std::string& line) {
    return bench.run({"/bin/bash", "-c", line}, {{"ATTNBENCH", program()}});
  };
  for (const char* line :
       {"\"$ATTNBENCH\" --help > /dev/full", "\"$ATTNBENCH\" validate --help > /dev/full"}) {
    const Finished run = shell(line);
    INFO(line << "\n" << run.err);
    CHECK(run.exit_code == 3);
    CHECK_THAT(run.err, Contains("cannot write all of the output"));
  }
  std::string words;
  for (const std::string& word : bench.command()) words += "'" + word + "' ";
  CHECK(shell(words + " > /dev/full").exit_code == 3);
  CHECK(bench.status("a") == "ok");
  // Who stops reading has seen enough.
  const Finished left = shell("set -o pipefail; trap '' PIPE; \"$ATTNBENCH\" --help | true");
  CHECK(left.exit_code == 0);
}

TEST_CASE("a worker that has no room to start is said to have none at once", "[kill]") {
  const Bench bench({{"a", {{"use", "softmax"}}}}, 1);
  std::string words;
  for (const std::string& word : bench.command()) words += "'" + word + "' ";
  for (const char* kibibytes : {"100000", "600000"}) {
    const Finished run =
        bench.run({"/bin/bash", "-c", std::string("ulimit -v ") + kibibytes + "; " + words},
                  {{"XDG_CACHE_HOME", (bench / "cache").string()}});
    INFO(kibibytes << "\n" << run.err);
    CHECK(run.exit_code != 0);
    CHECK(run.seconds < 30);
    std::filesystem::remove_all(bench.folder());
  }
}

TEST_CASE("every way to fail at work has its status and costs only its cell", "[kill]") {
  const Bench bench({{"a", {{"how", "segfault"}}},
                     {"b", {{"how", "abort"}}},
                     {"c", {{"how", "exit"}}},
                     {"d", {{"how", "throw"}}},
                     {"e", {{"how", "wrong"}}},
                     {"f", {{"how", "unsupported"}}},
                     {"g", {{"how", "segfault_in_cost"}}},
                     {"h", Json::object()}},
                    1);
  const Finished run = bench.run(bench.command());
  INFO(run.err);
  CHECK(run.exit_code == 1);  // a wrong cell weighs more than a crashed one
  auto cells = bench.cells();
  CHECK(cells["a"]["status"] == "crashed");
  const auto reason = [&cells](const char* label) {
    return cells[label]["reason"].get<std::string>();
  };
  CHECK_THAT(reason("a"), StartsWith("the process was killed by signal 11 (SIGSEGV); misbehave "));
  CHECK(cells["b"]["status"] == "crashed");
  CHECK_THAT(reason("b"), StartsWith("the process was killed by signal 6 (SIGABRT); misbehave "));
  CHECK(cells["c"]["status"] == "crashed");
  CHECK_THAT(cells["c"]["reason"].get<std::string>(), Contains("exit code 7"));
  CHECK(cells["d"]["status"] == "error");
  CHECK_THAT(reason("d"), StartsWith("I was told to throw; misbehave comes from the plugin"));
  CHECK(cells["e"]["status"] == "wrong");
  CHECK_FALSE(cells["e"].contains("timing"));
  CHECK(cells["f"]["status"] == "unsupported");
  CHECK_THAT(cells["f"]["reason"].get<std::string>(), Contains("misbehave was told to refuse"));
  CHECK(cells["g"]["status"] == "crashed");
  CHECK(was_measured(cells["h"]));
}

TEST_CASE("a mechanism that cheats comes out wrong, with its reason and no time", "[kill]") {
  const std::map<std::string, std::string> cheats{
      {"kept", "differs from what the same call returns in other memory"},
      {"first_call", "in a timed call its values differ from the reference"},
      {"in_place", "it changed its input \"value\" in place"},
      {"double", "returned an output of float64, expected float32"},
      {"later", "its output changed after the call had returned"},
      {"nan_row", "numbers that are not finite"}};
  Json entries = {{"honest", Json::object()}};
  for (const auto& [how, reason] : cheats) entries[how] = {{"how", how}};
  const Bench bench(entries, 2);
  const Finished run = bench.run(bench.command());
  INFO(run.err);
  CHECK(run.exit_code == 1);
  auto cells = bench.cells();
  CHECK(cells["honest"]["status"] == "ok");
  for (const auto& [how, reason] : cheats) {
    INFO(cells[how].dump());
    CHECK(cells[how]["status"] == "wrong");
    CHECK_THAT(cells[how]["reason"].get<std::string>(), Contains(reason));
    CHECK_FALSE(cells[how].contains("timing"));
  }
}

TEST_CASE("memory is limited by the allocator, and skipped aloud where it is foreseen", "[kill]") {
  const Bench bench({{"a", {{"how", "allocate"}}},
                     {"b", {{"workspace_bytes", 36507222016.0}}},
                     {"c", Json::object()}},
                    1);
  const Finished run = bench.run(bench.command({"--memory-limit", "64M"}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(bench.status("a") == "out_of_memory");
  CHECK(bench.status("b") == "skipped");
  CHECK_THAT(bench.cells()["b"]["reason"].get<std::string>(),
             Contains("predicted 34.0 GiB is over the limit of 64.0 MiB"));
  CHECK_THAT(run.err, Contains("--memory-limit"));
  CHECK(bench.status("c") == "ok");
  const Bench none({{"b", {{"workspace_bytes", 36507222016.0}}}}, 1);
  const Finished nothing = none.run(none.command({"--memory-limit", "64M"}));
  CHECK(nothing.exit_code == 3);
  CHECK_THAT(nothing.err, Contains("nothing was measured: 1 cell: 1 skipped"));
  const Bench other({{"a", {{"how", "allocate"}}}}, 1);
  CHECK(
      other.run(other.command({"--memory-limit", "64M", "--fail-on", "out_of_memory"})).exit_code ==
      5);
}
