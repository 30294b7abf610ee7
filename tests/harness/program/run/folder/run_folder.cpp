#include "harness/program/run/folder/run_folder.hpp"

#include "core/failure.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
namespace fs = std::filesystem;

namespace {

/// The working folder, for as long as it lives, is a fresh one.
class Elsewhere {
 public:
  Elsewhere() { fs::current_path(folder_.path()); }
  ~Elsewhere() { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("runs started in one second get folders of their own, the last one is latest",
          "[run_folder]") {
  const Elsewhere here;
  const auto first = run::make_run_folder("quick", {});
  const auto second = run::make_run_folder("quick", {});
  CHECK(first.path != second.path);
  CHECK(fs::is_directory(second.path / "logs"));
  CHECK(fs::read_symlink("runs/quick-latest") == second.path.filename());
  CHECK(fs::equivalent("runs/quick-latest", second.path));
}

TEST_CASE("a folder that holds a run is not taken for another", "[run_folder]") {
  const Elsewhere here;
  const auto folder = run::make_run_folder("quick", "mine");
  CHECK(folder.path == "mine");
  CHECK_THROWS_AS(run::find_run_folder("mine"), UsageFailure);
  test::write_file(fs::absolute(folder.journal()), "{}\n");
  CHECK_THROWS_AS(run::make_run_folder("quick", "mine"), UsageFailure);
  CHECK(run::find_run_folder("mine").path == "mine");
}

TEST_CASE("workers that a killed run left are removed, those of one at work are not",
          "[run_folder]") {
  const Elsewhere here;
  const auto folder = run::make_run_folder("quick", "mine");
  const auto leave = [&] {
    for (const char* side : {"0", "1"}) fs::create_directories(folder.kept_worker(side) / "bin");
  };
  leave();
  {
    const run::Journal at_work(folder.journal());
    run::remove_left_workers(folder);
    CHECK(fs::exists(folder.kept_worker("0")));
  }
  run::remove_left_workers(folder);
  CHECK_FALSE(fs::exists(folder.kept_worker("0")));
  CHECK_FALSE(fs::exists(folder.kept_worker("1")));
  fs::create_directories(folder.kept_worker("1") / "bin");  // of a base that kept none
  run::remove_left_workers(folder);
  CHECK_FALSE(fs::exists(folder.kept_worker("1")));
  CHECK(fs::exists(folder.path / "logs"));
  fs::remove(folder.journal());  // then it is no run
  leave();
  run::remove_left_workers(folder);
  CHECK(fs::exists(folder.kept_worker("1")));
}

TEST_CASE("a folder that cannot be made is the environment's failure", "[run_folder]") {
  const Elsewhere here;
  test::write_file(fs::absolute("file"), "");
  CHECK_THROWS_AS(run::make_run_folder("quick", "file/run"), EnvironmentFailure);
}
