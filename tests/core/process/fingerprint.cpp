#include "core/process/fingerprint.hpp"

#include <sys/stat.h>

#include <cstdlib>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using test::write_file;

namespace {

/// A cache folder of the test's own.
class Cache {
 public:
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  test::TemporaryFolder folder_;

 public:
  test::Variable variable{"XDG_CACHE_HOME", folder_.path()};
};

}  // namespace

TEST_CASE("programs outside of a checkout keep the commit that they were built from",
          "[fingerprint]") {
  const test::TemporaryFolder folder;
  CHECK(process::commit_in(folder.path()).empty());
  // Nor do they take that of a checkout that they are installed in.
  CHECK(process::commit_in(test::build_folder()).empty());
  write_file(folder / "attnbench.commit", "89da7a61d9b76fd370be1a79301c57a94c6f72d8+\n");
  CHECK(process::commit_in(folder.path()) == "89da7a61d9b76fd370be1a79301c57a94c6f72d8+");
  write_file(folder / "attnbench.commit", "\n");
  CHECK(process::commit_in(folder.path()).empty());
}

TEST_CASE("a fingerprint follows the content of a plugin", "[fingerprint]") {
  const Cache cache;
  const std::string plugin = cache / "plugin.so";
  const std::string without = process::binary_fingerprint({plugin});
  write_file(plugin, "one");
  const std::string one = process::binary_fingerprint({plugin});
  CHECK(one != without);
  CHECK(process::binary_fingerprint({plugin}) == one);
  write_file(plugin, "other");
  CHECK(process::binary_fingerprint({plugin}) != one);
  write_file(plugin, "one");
  CHECK(process::binary_fingerprint({plugin}) == one);
}

TEST_CASE("a cache that cannot be written or read is no failure", "[fingerprint]") {
  const Cache cache;
  const std::string plugin = cache / "plugin.so";
  write_file(plugin, "one");
  const std::string one = process::binary_fingerprint({plugin});
  cache.variable.set("/proc/nowhere");
  CHECK(process::binary_fingerprint({plugin}) == one);
  cache.variable.set(cache / "");
  write_file(process::cache_file("hashes.json"), "{ damaged");
  CHECK(process::binary_fingerprint({plugin}) == one);
}

TEST_CASE("a cache file that was damaged is thrown away", "[fingerprint]") {
  const Cache cache;
  const auto file = process::cache_file("answer.json");
  const nlohmann::json value = {{"cells", {1, 2, 3}}, {"word", "text"}};
  process::remember(file, value);
  CHECK(process::recalled(file).value_or(nlohmann::json()) == value);
  const std::string whole = test::read_file(file);
  std::string flipped = whole;
  flipped[whole.find("text")] = 'T';
  for (const std::string& damaged :
       {flipped, whole.substr(0, whole.size() / 2), std::string("{\"cells\": []}"), std::string(),
        std::string(100000, '['), "\n" + whole}) {
    write_file(file, damaged);
    CHECK_FALSE(process::recalled(file).has_value());
    CHECK_FALSE(std::filesystem::exists(file));
  }
  CHECK_FALSE(process::recalled(file).has_value());
}

TEST_CASE("a device in a plugin's place is not read", "[fingerprint]") {
  const Cache cache;
  CHECK(process::binary_fingerprint({"/dev/zero"}) ==
        process::binary_fingerprint({cache / "nowhere"}));
}

TEST_CASE("the cache is where the user's caches are", "[fingerprint]") {
  const Cache cache;
  CHECK(process::cache_file("x") == cache / "attnbench/x");
  cache.variable.set({});
  CHECK(process::cache_file("x").string().find("/.cache/attnbench/x") != std::string::npos);
}

TEST_CASE("very many cache files do not stay", "[fingerprint]") {
  const Cache cache;
  const auto folder = process::cache_file("x").parent_path();
  std::filesystem::create_directories(folder / "theirs");
  test::write_file(folder / "notes", "theirs");
  std::filesystem::create_symlink("notes", folder / "link");
  for (int i = 0; i < 300; ++i) process::remember(process::cache_file(std::to_string(i)), "x");
  for (const char* theirs : {"theirs", "notes", "link"}) {
    CHECK(std::filesystem::exists(folder / theirs));
  }
  const auto count = std::distance(std::filesystem::directory_iterator(folder), {});
  CHECK(count <= 260);
  CHECK(std::filesystem::exists(process::cache_file("299")));
}
