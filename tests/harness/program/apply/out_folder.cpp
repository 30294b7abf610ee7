#include "harness/program/apply/out_folder.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::test;
namespace fs = std::filesystem;

namespace {

void stage(const apply::OutFolder& out, const std::string& text) {
  fs::create_directories(out.staging() / "parameters");
  write_file(out.staging() / "output.npy", text);
  write_file(out.staging() / "parameters" / (text + ".npy"), text);
  write_file(out.staging() / "apply.json", text);
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

}  // namespace

TEST_CASE("results appear together or not at all", "[apply]") {
  const TemporaryFolder folder;
  {
    apply::OutFolder out(folder / "deep" / "out", apply::Replacing::not_asked);
    stage(out, "a");
    CHECK_FALSE(fs::exists(folder / "deep" / "out"));
  }
  CHECK(entries(folder / "deep") == 0);
  apply::OutFolder out(folder / "deep" / "out/", apply::Replacing::not_asked);
  stage(out, "a");
  out.publish();
  CHECK(read_file(folder / "deep" / "out" / "output.npy") == "a");
  CHECK(entries(folder / "deep") == 1);
}

TEST_CASE("a folder that holds files is kept unless --force, and then only results go", "[apply]") {
  const TemporaryFolder folder;
  const fs::path place = folder / "out";
  fs::create_directories(place);
  {
    apply::OutFolder out(place, apply::Replacing::not_asked);  // an empty one will do
    stage(out, "a");
    out.publish();
  }
  CHECK(entries(place) == 4);  // with the manifest
  write_file(place / "notes.txt", "mine");
  write_file(place / "parameters" / "notes.txt", "mine");
  write_file(place / "parameters" / "mine.npy", "mine");
  CHECK_THROWS_WITH(apply::OutFolder(place, apply::Replacing::not_asked),
                    Catch::Contains("or pass --force"));
  // A command without the flag does not mention it.
  CHECK_THROWS_WITH(apply::OutFolder(place, apply::Replacing::never),
                    Catch::Contains("choose another folder") && !Catch::Contains("--force"));
  {
    apply::OutFolder out(place, apply::Replacing::yes);
    stage(out, "b");
  }
  CHECK(read_file(place / "output.npy") == "a");
  {
    apply::OutFolder out(place, apply::Replacing::yes);
    stage(out, "b");
    out.publish();
  }
  CHECK(read_file(place / "apply.json") == "b");
  CHECK(read_file(place / "parameters" / "b.npy") == "b");
  CHECK_FALSE(fs::exists(place / "parameters" / "a.npy"));
  CHECK(read_file(place / "notes.txt") == "mine");
  CHECK(read_file(place / "parameters" / "notes.txt") == "mine");
  CHECK(read_file(place / "parameters" / "mine.npy") == "mine");
  CHECK(entries(place) == 5);
}

TEST_CASE("a file is no folder", "[apply]") {
  const TemporaryFolder folder;
  write_file(folder / "out", "a file");
  CHECK_THROWS_AS(apply::OutFolder(folder / "out", apply::Replacing::yes), UsageFailure);
}
