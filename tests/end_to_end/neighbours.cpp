// Runs beside others that keep CPUs busy, and with OpenBLAS's core types and other BLAS libraries.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/end_to_end/training_suite.hpp"
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
  /// Whether one of them is named. Of many that are busy only the busiest are, and tests beside
  /// this one may be among them.
  bool named_in(const std::string& text) const {
    return std::any_of(loops_.begin(), loops_.end(), [&](const auto& loop) {
      return text.find(std::to_string(loop->pid())) != std::string::npos;
    });
  }

 private:
  std::vector<std::unique_ptr<Running>> loops_;
};

/// A run of one small cell, or what is said in place of it.
struct SmallRun {
  explicit SmallRun(const std::string& more,
                    const std::map<std::string, std::string>& variables = {},
                    const std::string& what = "softmax/composite --length 64 --rounds 1") {
    // The tests themselves are run with a policy of their own.
    finished = test::run(words("/usr/bin/env -u OMP_WAIT_POLICY " + program() + " run " + what +
                               " --out " + folder() + " --no-report --progress plain " + more),
                         580, variables);
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
  explicit Terminal(const std::vector<std::string>& arguments) {
    pid_ = forkpty(&keys_, nullptr, nullptr, nullptr);
    if (pid_ < 0) throw std::runtime_error("forkpty failed");
    if (pid_ != 0) return;
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
  bool shows(const std::string& text) {
    return wait_until([&] { return read_more() && seen_.find(text) != std::string::npos; });
  }
  /// The exit code; -1 if it is still at work after the limit.
  int wait() {
    int status = 0;
    ended_ = wait_until([&] { return read_more() && waitpid(pid_, &status, WNOHANG) == pid_; });
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

}  // namespace

// What a run does about them is in tests/harness/program/run/supervise/quiet.cpp.
TEST_CASE("a run names who is busy beside it, and waits only as long as it is told to",
          "[neighbours][processes]") {
  const Busy busy(2);
  const SmallRun told("--no-ceilings --wait 1");
  INFO(told.finished.err);
  CHECK(told.finished.exit_code == 0);
  CHECK(busy.named_in(told.finished.err));
  CHECK_THAT(told.finished.err, Contains("times come out too long") && Contains("at most 1 s") &&
                                    Contains("Not quiet after 1 s: going on"));
  const Json result = told.result();
  CHECK(result.at("run").at("waited_for_quiet_seconds").get<double>() >= 1);
  const Json& load = result.at("machine").at("load");
  CHECK(load.at("busy_cpus_beside_us").get<double>() > 0.3);
  CHECK(busy.named_in(load.at("processes").dump()));
}

TEST_CASE("on a terminal a run waits for quiet, until Enter, and says a slow product in red",
          "[neighbours][blas][processes][night]") {
  const Busy busy(2);
  const TemporaryFolder folder;
  Terminal terminal(words("/usr/bin/env OPENBLAS_CORETYPE=Prescott " + program() +
                          " run softmax/composite --length 64 --rounds 1 --keep-blas-core "
                          "--no-report --out " +
                          (folder / "run").string()));
  CHECK(terminal.shows("Waiting for quiet"));
  CHECK(terminal.shows("waiting for quiet, 1 s"));
  terminal.type("\n");
  CHECK(terminal.wait() == 0);
  INFO(terminal.seen());
  CHECK_THAT(terminal.seen(), Contains("Going on, told to"));
  if (terminal.seen().find("openblas Prescott") == std::string::npos) return;  // another BLAS
  CHECK_THAT(terminal.seen(), Contains("\x1b[31mMatrix products reach"));
}

TEST_CASE("a training beside busy processes waits passively, and its record says so",
          "[neighbours][processes][night]") {
  if (std::thread::hardware_concurrency() < 2) return;  // one thread waits for nobody
  const Busy busy(static_cast<int>(std::thread::hardware_concurrency()));
  const TrainingSuite suite(Json{{"epochs", 1}});
  const SmallRun run("--no-ceilings", {}, suite.file());
  INFO(run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  CHECK(run.result().at("cells").at(0).at("waiting") == "passive");
  CHECK(run.result().at("run").at("waiting") == "passive");
  CHECK_THAT(run.finished.err, !Contains("CPUs busy"));  // no time is measured here
}

TEST_CASE("a run takes the fastest core type whatever the environment says, and says which",
          "[blas]") {
  const SmallRun run("--no-ceilings", {{"OPENBLAS_CORETYPE", "Prescott"}});
  INFO(run.finished.err);
  REQUIRE(run.finished.exit_code == 0);
  const Json blas = run.result().at("machine").at("blas");
  CHECK(run.result().at("cells").at(0).at("waiting") == "active");
  if (blas.at("kind") != "openblas") return;
  CHECK(blas.at("core_type") != "Prescott");
  CHECK(blas.at("tried").contains(blas.at("core_type").get<std::string>()));
  CHECK(run.result().at("provenance").at("blas") == blas);
}

TEST_CASE("the reference BLAS is mended where OpenBLAS is there, and said where it is insisted on",
          "[blas][night]") {
  const std::string reference = "/usr/lib/x86_64-linux-gnu/blas";
  if (!std::filesystem::exists(reference + "/libblas.so.3")) return;
  const std::map<std::string, std::string> environment{{"LD_LIBRARY_PATH", reference}};
  // The reference BLAS has no core types, whatever a shell asks OpenBLAS for.
  std::map<std::string, std::string> insisting = environment;
  insisting["OPENBLAS_CORETYPE"] = "Haswell";
  const SmallRun kept("--keep-blas-core", insisting);
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

  const SmallRun mended("--no-ceilings", environment);
  REQUIRE(mended.finished.exit_code == 0);
  CHECK(mended.result().at("machine").at("blas").at("kind") == "openblas");
}
