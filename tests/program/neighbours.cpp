// Runs beside others that keep CPUs busy, and with OpenBLAS's core types and other BLAS libraries.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// Processes that keep CPUs busy for as long as it lives.
class Busy {
 public:
  explicit Busy(int count) {
    for (int i = 0; i < count; ++i) {
      loops_.push_back(std::make_unique<Running>(
          std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"}, "/dev/null"));
    }
  }
  std::string first_pid() const { return std::to_string(loops_.front()->pid()); }

 private:
  std::vector<std::unique_ptr<Running>> loops_;
};

/// A run of one small cell, or what is said in place of it.
struct SmallRun {
  explicit SmallRun(const std::vector<std::string>& more,
                    const std::map<std::string, std::string>& environment = {},
                    const std::vector<std::string>& what = {"softmax/composite", "--length", "64",
                                                            "--rounds", "1"}) {
    std::vector<std::string> words{program(), "run"};
    words.insert(words.end(), what.begin(), what.end());
    for (const std::string& word : {std::string("--out"), folder(), std::string("--no-report"),
                                    std::string("--progress"), std::string("plain")}) {
      words.push_back(word);
    }
    words.insert(words.end(), more.begin(), more.end());
    std::map<std::string, std::string> all{
        {"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}};
    for (const auto& [name, value] : environment) all[name] = value;
    finished = test::run(words, 120, all);
  }
  std::string folder() const { return folder_ / "run"; }
  Json result() const {
    return attnbench::test::stored_result(folder() + "/result.json").at("attnbench");
  }

  TemporaryFolder folder_;
  Finished finished;
};

/// The program with a terminal of its own, and who types there.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& arguments,
           const std::map<std::string, std::string>& environment) {
    pid_ = forkpty(&keys_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Terminal() {
    close(keys_);  // hangs up
    if (!ended_) kill(pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& text) const {
    REQUIRE(write(keys_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  bool shows(const std::string& text, double seconds = 60) {
    return wait_until([&] { return read_more() && seen_.find(text) != std::string::npos; },
                      seconds);
  }
  /// The exit code; -1 while it is at work.
  int wait(double seconds = 60) {
    int status = 0;
    ended_ =
        wait_until([&] { return read_more() && waitpid(pid_, &status, WNOHANG) == pid_; }, seconds);
    return ended_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& seen() const { return seen_; }

 private:
  bool read_more() {
    std::array<char, 4096> block;
    for (pollfd one{keys_, POLLIN, 0}; poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0;) {
      const ssize_t count = read(keys_, block.data(), block.size());
      if (count <= 0) break;
      seen_.append(block.data(), static_cast<std::size_t>(count));
    }
    return true;
  }

  int keys_ = -1;
  pid_t pid_ = -1;
  bool ended_ = false;
  std::string seen_;
};

/// Says once which BLAS tests of core types have here.
bool has_openblas(const Json& machine) { return machine.at("blas").at("kind") == "openblas"; }

}  // namespace

TEST_CASE("a run names who is busy beside it, and waits only as long as it is told to",
          "[neighbours]") {
  const Busy busy(2);
  const SmallRun at_once({"--no-ceilings"});
  INFO(at_once.finished.err);
  CHECK(at_once.finished.exit_code == 0);
  CHECK_THAT(at_once.finished.err, Contains("sh (" + busy.first_pid() + ")"));
  CHECK_THAT(at_once.finished.err, Contains("times come out too long"));
  CHECK_THAT(at_once.finished.err, Contains("Going on at once"));
  CHECK_FALSE(at_once.result().at("run").contains("waited_for_quiet_seconds"));
  const Json load = at_once.result().at("machine").at("load");
  CHECK(load.at("busy_cpus_beside_us").get<double>() > 0.3);
  CHECK(load.at("processes").dump().find(busy.first_pid()) != std::string::npos);

  const SmallRun told({"--no-ceilings", "--wait", "1"});
  INFO(told.finished.err);
  CHECK(told.finished.exit_code == 0);
  CHECK_THAT(told.finished.err, Contains("at most 1 s"));
  CHECK_THAT(told.finished.err, Contains("Not quiet after 1 s: going on"));
  CHECK(told.result().at("run").at("waited_for_quiet_seconds").get<double>() >= 1);
}

TEST_CASE("on a terminal a run waits for quiet, until Enter, with --now not at all",
          "[neighbours]") {
  const Busy busy(2);
  const TemporaryFolder folder;
  std::vector<std::string> words{
      program(), "run",   "softmax/composite", "--length",    "64",           "--rounds",
      "1",       "--out", folder / "waited",   "--no-report", "--no-ceilings"};
  const std::map<std::string, std::string> environment{
      {"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}};
  {
    Terminal terminal(words, environment);
    CHECK(terminal.shows("Waiting for quiet"));
    CHECK(terminal.shows("waiting for quiet, 1 s"));
    CHECK(terminal.wait(0.5) == -1);
    terminal.type("\n");
    CHECK(terminal.wait() == 0);
    INFO(terminal.seen());
    CHECK_THAT(terminal.seen(), Contains("Going on, told to"));
  }
  words[8] = folder / "at_once";
  words.push_back("--now");
  Terminal terminal(words, environment);
  CHECK(terminal.wait() == 0);
  INFO(terminal.seen());
  CHECK_THAT(terminal.seen(), Contains("Going on at once"));
}

TEST_CASE("a training beside busy processes waits passively, and its record says so",
          "[neighbours]") {
  if (std::thread::hardware_concurrency() < 2) return;  // one thread waits for nobody
  const std::vector<std::string> training{test::source_folder() + "/suites/mqar_smoke.json",
                                          "--only",
                                          "softmax",
                                          "--set",
                                          "learning_rate=0.003",
                                          "--set",
                                          "epochs=1",
                                          "--set",
                                          "train_mix=64x8:640"};
  const Busy busy(static_cast<int>(std::thread::hardware_concurrency()));
  // The tests themselves are run with a policy of their own.
  unsetenv("OMP_WAIT_POLICY");
  const SmallRun run({"--no-ceilings"}, {}, training);
  INFO(run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  CHECK(run.result().at("cells").at(0).at("waiting") == "passive");
  CHECK(run.result().at("run").at("waiting") == "passive");
  CHECK_THAT(run.finished.err, !Contains("CPUs busy"));  // no time is measured here
  // What is timed waits as on a quiet machine.
  const SmallRun timed({"--no-ceilings"});
  CHECK(timed.result().at("cells").at(0).at("waiting") == "active");
}

TEST_CASE("a core type that the user insists on is used, named and, where it is slow, said",
          "[blas]") {
  for (const std::string core : {"Prescott", "Haswell", "SkylakeX"}) {
    const Finished doctor = test::run({program(), "doctor", "--keep-blas-core", "--json"}, 60,
                                      {{"OPENBLAS_CORETYPE", core}});
    INFO(core << doctor.out << doctor.err);
    if (doctor.exit_code != 0) continue;  // this CPU cannot run it
    const Json machine = Json::parse(doctor.out).at("machine");
    if (!has_openblas(machine)) return;
    CHECK(machine.at("blas").at("core_type") == core);
    CHECK(machine.at("blas").at("chosen_by") == "user");
    if (core != "Prescott") continue;
    CHECK_THAT(machine.at("spoilers").dump(), Contains("openblas Prescott (chosen by"));
    CHECK_THAT(machine.at("spoilers").dump(), Contains("leave --keep-blas-core out"));
  }
}

TEST_CASE("a slow product is said in red on a terminal, unless NO_COLOR", "[blas]") {
  const TemporaryFolder folder;
  std::map<std::string, std::string> environment{
      {"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}, {"OPENBLAS_CORETYPE", "Prescott"}};
  const auto seen = [&](const std::string& out) {
    Terminal terminal({program(), "run", "softmax/composite", "--length", "64", "--rounds", "1",
                       "--keep-blas-core", "--now", "--no-report", "--out", folder / out},
                      environment);
    CHECK(terminal.wait() == 0);
    return terminal.seen();
  };
  const std::string coloured = seen("red");
  if (coloured.find("openblas Prescott") == std::string::npos) return;  // another BLAS, or a faster
  CHECK_THAT(coloured, Contains("\x1b[31mMatrix products reach"));
  environment["NO_COLOR"] = "1";
  const std::string plain = seen("plain");
  CHECK_THAT(plain, Contains("Matrix products reach") && !Contains("\x1b[31m"));
}

TEST_CASE("a run takes the fastest core type whatever the environment says, and says which",
          "[blas]") {
  const SmallRun run({"--no-ceilings"}, {{"OPENBLAS_CORETYPE", "Prescott"}});
  INFO(run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  const Json blas = run.result().at("machine").at("blas");
  if (blas.at("kind") != "openblas") return;
  CHECK(blas.at("core_type") != "Prescott");
  CHECK(blas.at("tried").contains(blas.at("core_type").get<std::string>()));
  CHECK(run.result().at("provenance").at("blas") == blas);
}

TEST_CASE("the reference BLAS is mended where OpenBLAS is there, and said where it is insisted on",
          "[blas]") {
  const std::string reference = "/usr/lib/x86_64-linux-gnu/blas";
  if (!std::filesystem::exists(reference + "/libblas.so.3")) return;
  const std::map<std::string, std::string> environment{{"LD_LIBRARY_PATH", reference}};
  // The reference BLAS has no core types, whatever a shell asks OpenBLAS for.
  std::map<std::string, std::string> insisting = environment;
  insisting["OPENBLAS_CORETYPE"] = "Haswell";
  const SmallRun kept({"--keep-blas-core"}, insisting);
  INFO(kept.finished.err);
  REQUIRE(kept.finished.exit_code == 0);
  const Json blas = kept.result().at("machine").at("blas");
  if (blas.at("kind") == "mkl") return;  // LibTorch brought its own
  CHECK(blas.at("kind") == "reference");
  CHECK_THAT(blas.at("library").get<std::string>(), Contains("libblas.so.3"));
  CHECK_FALSE(blas.contains("core_type"));
  CHECK_THAT(kept.finished.err, Contains("reference BLAS") && Contains("libopenblas0-openmp"));
  CHECK_THAT(kept.finished.err, !Contains("\x1b["));  // no colour where there is no terminal
  CHECK_THAT(kept.finished.out, Contains("Matrix products reach"));

  const SmallRun mended({}, environment);
  REQUIRE(mended.finished.exit_code == 0);
  CHECK(has_openblas(mended.result().at("machine")));
}
