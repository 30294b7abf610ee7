#include "core/manifest.hpp"

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using test::read_file;
using test::write_file;
namespace fs = std::filesystem;

namespace {

/// What a command does: stages `files`, all with this text, and publishes them.
void put(const fs::path& folder, const std::vector<std::string>& files, const std::string& text,
         const std::string& writer = "report") {
  const test::TemporaryFolder staging;
  for (const std::string& file : files) {
    fs::create_directories((staging / file).parent_path());
    write_file(staging / file, text);
  }
  Manifest manifest(folder, writer);
  publish(staging.path(), folder, manifest, "index.html");
}

}  // namespace

TEST_CASE("files of ours are replaced, and those that are gone are deleted", "[manifest]") {
  const test::TemporaryFolder folder;
  put(folder.path(), {"index.html", "figures/a.svg", "figures/b.svg"}, "one");
  CHECK(Manifest(folder.path(), "report").foreign({"index.html", "figures/a.svg"}).empty());
  put(folder.path(), {"index.html", "figures/b.svg"}, "two");
  CHECK(read_file(folder / "index.html") == "two");
  CHECK_FALSE(fs::exists(folder / "figures/a.svg"));
}

TEST_CASE("files of others, and ours once somebody changed them, are refused and kept",
          "[manifest]") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "figures");
  write_file(folder / "figures/mine.svg", "mine");
  put(folder.path(), {"index.html", "figures/a.svg", "figures/b.svg"}, "one");
  write_file(folder / "figures/a.svg", "edited");
  const Manifest manifest(folder.path(), "report");
  CHECK(manifest.foreign({"index.html", "figures/a.svg", "figures/mine.svg", "no.svg"}) ==
        std::vector<std::string>{"figures/a.svg", "figures/mine.svg"});
  CHECK_THROWS_WITH(manifest.expect_ours({"figures/a.svg"}),
                    Catch::Contains("figures/a.svg") && Catch::Contains("--force"));
  put(folder.path(), {"index.html"}, "two");
  CHECK(read_file(folder / "figures/a.svg") == "edited");
  CHECK(read_file(folder / "figures/mine.svg") == "mine");
  CHECK_FALSE(fs::exists(folder / "figures/b.svg"));
}

TEST_CASE("one command deletes nothing that another wrote", "[manifest]") {
  const test::TemporaryFolder folder;
  put(folder.path(), {"report.md"}, "one", "check");
  put(folder.path(), {"index.html"}, "one");
  put(folder.path(), {"index.html"}, "two");
  CHECK(read_file(folder / "report.md") == "one");
  CHECK(Manifest(folder.path(), "check").foreign({"report.md"}).empty());
}

TEST_CASE("a manifest that is damaged or leads out of the folder makes nothing ours",
          "[manifest]") {
  const test::TemporaryFolder folder;
  const fs::path inner = folder / "inner";
  fs::create_directories(inner);
  write_file(folder / "outside", "text");
  write_file(inner / "index.html", "text");
  for (const std::string& text :
       {std::string("{ damaged"), std::string("[]"), std::string("{\"files\": {\"report\": 3}}"),
        std::string(100000, '['),
        "{\"files\": {\"report\": {\"../outside\": [\"" + hash_text("text") + "\"]}}}"}) {
    write_file(inner / Manifest::file_name, text);
    CHECK(Manifest(inner, "report").foreign({"index.html"}).size() == 1);
    put(inner, {"other"}, "two");
    CHECK(read_file(folder / "outside") == "text");
  }
}

TEST_CASE("whoever is interrupted between two files finds both kinds to be ours", "[manifest]") {
  const test::TemporaryFolder folder;
  put(folder.path(), {"a", "b"}, "one");
  Manifest manifest(folder.path(), "report");
  manifest.announce("a", hash_text("two"));
  manifest.announce("b", hash_text("two"));
  manifest.save();
  write_file(folder / "a", "two");
  CHECK(Manifest(folder.path(), "report").foreign({"a", "b"}).empty());
}
