// Runs beside other programs: what they disturb is called so, and measured again on demand.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// Two processes for each CPU that work as long as this lives.
class BusyMachine {
 public:
  BusyMachine() {
    const long count = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(300);
        for (std::atomic<int> step{0};; ++step) {
        }
      }
      if (pid > 0) processes_.push_back(pid);
    }
  }
  ~BusyMachine() {
    for (const pid_t pid : processes_) kill(pid, SIGKILL);
    for (const pid_t pid : processes_) waitpid(pid, nullptr, 0);
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::vector<pid_t> processes_;
};

Json cell_of(const std::string& folder) { return cells_of(folder).begin()->second; }

}  // namespace

TEST_CASE("a cell beside busy processes is disturbed, counted, and measured again on demand",
          "[program][disturbed][processes]") {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  {
    const BusyMachine busy;
    const Finished finished = call(
        "run softmax/composite --length 1024 --set heads=4 --set max_seconds=0.3 --rounds 2 "
        "--no-ceilings --no-report --fail-on disturbed --out " +
        out);
    INFO(finished.out << finished.err);
    CHECK(finished.exit_code == 5);
    CHECK_THAT(finished.out, Contains("1 cell: 1 disturbed") &&
                                 Contains("run --resume " + out + " --retry disturbed"));
    CHECK_THAT(finished.err, Contains("disturbed: other processes took the CPU"));
  }
  const Json cell = cell_of(out);
  CHECK(cell["status"] == "disturbed");
  CHECK_THAT(cell["reason"].get<std::string>(), Contains("other processes took the CPU"));
  const Json& rounds = cell["timing"]["forward"]["rounds"];
  REQUIRE(rounds.size() == 2);
  for (const Json& round : rounds) {
    CHECK_FALSE(round.contains("samples_seconds"));  // the journal has them
    CHECK(round["lost_share"] > 0.02);
    CHECK(round["others_share"] > 0.2);
  }
  const Finished samples = call("report " + out + " --samples -");
  CHECK_THAT(samples.out,
             Catch::StartsWith("id,label,task,timing,round,sample,seconds,cpu_share,") &&
                 Contains(",forward,1,0,") && Contains(",true,true\n"));

  // Nothing is left to be done, but for those.
  const Finished resumed = call("run --no-report --resume " + out);
  CHECK(resumed.exit_code == 0);
  CHECK(cell_of(out)["timing"] == cell["timing"]);
  const Finished again = call("run --no-report --retry disturbed --resume " + out);
  INFO(again.out << again.err);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, Contains("--retry disturbed"));
  CHECK(cell_of(out)["timing"] != cell["timing"]);
  CHECK(was_measured(cell_of(out)));
}
