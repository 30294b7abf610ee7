// A disk that is full, a file that may not grow: the run stops, and what it measured is safe.
#include <sys/mount.h>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

Json many_cells() {
  Json entries = Json::object();
  for (int i = 0; i < 6; ++i) {
    entries["cell " + std::to_string(i)] = {{"length", 8 + i}};
  }
  return entries;
}

void check_resumed(const Bench& bench, const std::string& before) {
  const Finished resumed = bench.resume();
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(bench.journal().rfind(before, 0) == 0);
  CHECK(bench.records().size() == 24);
  CHECK(bench.state() == "complete");
}

void check_stopped(const Bench& bench, const Finished& stopped, const std::string& cause) {
  INFO(stopped.err);
  CHECK(stopped.exit_code == 3);
  CHECK_THAT(stopped.err, Contains(cause));
  CHECK_THAT(stopped.err, Contains("attnbench run --resume " + bench.folder()));
  CHECK(bench.records().size() > 0);
  CHECK(bench.records().size() < 24);
  CHECK(bench.journal().back() == '\n');
}

/// A file system of its own, as large as told; only root may have one.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=16k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  bool grow() const {
    return mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=16m") == 0;
  }

 private:
  std::string folder_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("a full disk stops the run, and it goes on when there is room", "[disk][processes]") {
  const Bench bench(many_cells(), 4);
  const SmallDisk disk(bench.folder());
  if (!disk.mounted()) {
    WARN("no small file system may be mounted here: only the file limit is tested");
    return;
  }
  check_stopped(bench, bench.run(), "No space left on device");
  const std::string before = bench.journal();
  REQUIRE(disk.grow());
  check_resumed(bench, before);
}

TEST_CASE("a journal that may not grow stops the run in the same way", "[disk][processes][night]") {
  const Bench bench(many_cells(), 4);
  // What fills the cache, which a limit would bind.
  const Finished other = Bench(many_cells(), 1).run();
  INFO(other.err);
  REQUIRE(other.exit_code == 0);
  std::vector<std::string> limited{"bash", "-c", "ulimit -f 12; exec \"$0\" \"$@\""};
  for (const std::string& word : bench.command()) limited.push_back(word);
  check_stopped(bench, run(limited), "File too large");
  check_resumed(bench, bench.journal());
}
