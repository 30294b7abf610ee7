#include "harness/measure/neighbours.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::measure;
using Catch::Matchers::Contains;

namespace {

const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));

/// A /proc of one moment.
struct Proc {
  test::TemporaryFolder folder;

  void cpus(long first, long second) {
    const auto line = [](const char* name, long busy) {
      return std::string(name) + " " + std::to_string(busy) + " 0 0 900 0 0 0 0 0 0\n";
    };
    test::write_file(folder / "stat", line("cpu ", first + second) + line("cpu0", first) +
                                          line("cpu1", second) + "intr 5 6 7\n");
  }
  void process(int pid, const std::string& name, int parent, long ticks, long ended = 0,
               long started = 10) {
    const std::string numbers = " 1 1 0 -1 4194304 1 2 3 4 " + std::to_string(ticks) + " 0 " +
                                std::to_string(ended) + " 0 20 0 1 0 " + std::to_string(started) +
                                " 1000 100\n";
    test::write_file(folder / std::to_string(pid) / "stat",
                     std::to_string(pid) + " (" + name + ") R " + std::to_string(parent) + numbers);
  }
  ProcessTimes at(double seconds) const {
    ProcessTimes times = process_times({0, 1}, folder.path());
    times.at = seconds;
    return times;
  }
};

}  // namespace

TEST_CASE("busy processes are named, this one and its children are not", "[neighbours]") {
  Proc before;
  before.cpus(1000, 1000);
  before.process(50, "attnbench", 1, 100);
  before.process(51, "attnbench-worke", 50, 100);
  before.process(52, "cell", 51, 0);
  before.process(60, "cc1plus", 1, 500);
  before.process(61, "sh) R 50 (x", 1, 5);  // a name may hold anything
  before.process(62, "sleeper", 1, 5);
  Proc after;
  after.cpus(1100, 1090);
  after.process(50, "attnbench", 1, 110, 20);  // a child of its that has ended since
  after.process(51, "attnbench-worke", 50, 110);
  after.process(52, "cell", 51, 30);
  after.process(60, "cc1plus", 1, 590);
  after.process(61, "sh) R 50 (x", 1, 25);
  after.process(62, "sleeper", 1, 5);

  const double passed = 100 * tick;
  const Neighbours found = neighbours_between(before.at(7), after.at(7 + passed), 50);
  CHECK(found.cpus == Approx(1.9 - 0.7));
  REQUIRE(found.processes.size() == 2);
  CHECK(found.processes[0].pid == 60);
  CHECK(found.processes[0].name == "cc1plus");
  CHECK(found.processes[0].cpus == Approx(0.9));
  CHECK(found.processes[1].name == "sh) R 50 (x");
  CHECK(to_text(found, 2) ==
        "Other processes keep 1.2 of 2 CPUs busy: cc1plus (60) 90 %, sh) R 50 (x (61) 20 %.");
}

TEST_CASE("CPUs that we may not run on do not count", "[neighbours]") {
  Proc before;
  before.cpus(0, 0);
  Proc after;
  after.cpus(5, 100);
  ProcessTimes then = process_times({0}, before.folder.path());
  ProcessTimes now = process_times({0}, after.folder.path());
  then.at = 0;
  now.at = 100 * tick;
  CHECK(neighbours_between(then, now, 1).cpus == Approx(0.05));
}

TEST_CASE("a process that took another's number is a new one", "[neighbours]") {
  Proc before;
  before.process(60, "long", 1, 5000, 0, 10);
  Proc after;
  after.process(60, "new", 1, 50, 0, 99);
  // Nothing tells how busy CPUs are here: what is seen is summed up.
  const Neighbours found = neighbours_between(before.at(0), after.at(100 * tick), 999);
  CHECK(found.cpus == Approx(0.5));
  REQUIRE(found.processes.size() == 1);
  CHECK(found.processes[0].name == "new");
}

TEST_CASE("a damaged /proc and odd names do no harm", "[neighbours]") {
  Proc proc;
  test::write_file(proc.folder / "stat", "cpu\ncpu0\nnonsense\n");
  test::write_file(proc.folder / "7/stat", "");
  test::write_file(proc.folder / "8/stat", "8 (cut");
  test::write_file(proc.folder / "9/stat", "9 (short) R 1 2");
  proc.process(10, "esc\x1b[31m\xc3", 1, 5);
  const ProcessTimes times = proc.at(0);
  REQUIRE(times.processes.size() == 1);
  CHECK(times.processes.at(10).name == "esc?[31m?");
  CHECK(process_times({0}, proc.folder / "nowhere").processes.empty());
}

TEST_CASE("a machine is crowded where others leave too few CPUs for our threads", "[neighbours]") {
  CHECK_FALSE(crowded({0.1, {}}, 2, 2));
  CHECK(crowded({0.5, {}}, 2, 2));
  CHECK(crowded({2.0, {}}, 1, 2));
  CHECK_FALSE(crowded({1.0, {}}, 1, 2));
  CHECK_FALSE(crowded({1.0, {}}, 4, 64));
}

TEST_CASE("busy processes are named in a sentence, at most five, and read back", "[neighbours]") {
  CHECK(to_text({0.1, {{1, "a", 0.1}}}, 2).empty());
  CHECK_THAT(to_text({1.0, {}}, 2), Contains("not seen from here"));
  Neighbours many{7.0, {}};
  for (int i = 1; i <= 7; ++i) many.processes.push_back({i, "p", 1.0});
  CHECK_THAT(to_text(many, 8), Contains("p (5) 100 % and 2 more."));
  const Neighbours one{1.5, {{4, "make", 1.25}}};
  CHECK_FALSE(to_text(one, 2).empty());
  CHECK(to_text(neighbours_from(to_json(one)), 2) == to_text(one, 2));
  CHECK(neighbours_from(nlohmann::json::object()).cpus == 0);
}
