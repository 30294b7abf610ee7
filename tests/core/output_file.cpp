#include "core/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ext/stdio_filebuf.h>
#include <iostream>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Contains;
using test::read_file;
using test::write_file;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const std::string& text, bool force = false) {
  OutputFile("--markdown", file, "ab", force).write(text);
}

}  // namespace

TEST_CASE("an output replaces what attnbench wrote, and other files by --force alone",
          "[output_file]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "out.md";
  put(file, "one");
  put(file, "two");
  CHECK(read_file(file) == "two");
  write_file(file, "edited");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  CHECK_THROWS_WITH(put(file, "three"), Contains("--markdown") && Contains("out.md") &&
                                            Contains("is there already") && Contains("--force"));
  CHECK(read_file(file) == "edited");
  put(file, "three", true);
  CHECK(read_file(file) == "three");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  write_file(folder / "empty", "");  // as mktemp makes them
  put(folder / "empty", "text");
  CHECK(read_file(folder / "empty") == "text");
}

TEST_CASE("an output that is a folder, or in none, is refused before any work", "[output_file]") {
  const test::TemporaryFolder folder;
  for (const bool force : {false, true}) {
    CHECK_THROWS_WITH(OutputFile("--csv", folder.path(), "report", force), Contains("is a folder"));
    CHECK_THROWS_WITH(OutputFile("--csv", folder / "no/out.csv", "report", force),
                      Contains("there is no folder"));
  }
}

TEST_CASE("an output follows links, dangling ones, too, and leaves them", "[output_file]") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "inner");
  fs::create_symlink("inner/file", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "link");
  put(folder / "link", "one");
  put(folder / "link", "two");
  CHECK(read_file(folder / "inner/file") == "two");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "relative"));
  fs::create_symlink("round", folder / "round");
  CHECK_THROWS_AS(put(folder / "round", "one", true), EnvironmentFailure);
  CHECK(fs::is_symlink(folder / "round"));
  write_file(folder / "inner/file", "somebody's");
  CHECK_THROWS_WITH(put(folder / "link", "three"), Contains("--force"));
  CHECK(read_file(folder / "inner/file") == "somebody's");
}

TEST_CASE("an output is written through a pipe and a device, which stay", "[output_file]") {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  fs::create_symlink(pipe, folder / "link");
  put(folder / "link", "through");
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(reader, text.data(), 32))));
  close(reader);
  CHECK(text == "through");
  CHECK(fs::is_fifo(pipe));
  fs::create_symlink("/dev/null", folder / "nothing");
  put(folder / "nothing", "gone");
  CHECK(fs::is_symlink(folder / "nothing"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);
}

TEST_CASE("an output that is the program's own standard output is added to it", "[output_file]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "printed";
  std::cout << std::flush;
  const int before = dup(STDOUT_FILENO);
  const int other = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  dup2(other, STDOUT_FILENO);
  // A reporter may have given std::cout another buffer.
  __gnu_cxx::stdio_filebuf<char> printed(dup(STDOUT_FILENO), std::ios::out);
  std::streambuf* const buffer = std::cout.rdbuf(&printed);
  std::cout << "first\n";
  for (const char* name : {"/dev/stdout", "-"}) put(name, "second\n");
  put(file, "third\n");
  std::cout << "fourth\n" << std::flush;
  std::cout.rdbuf(buffer);
  dup2(before, STDOUT_FILENO);
  close(other);
  close(before);
  CHECK(read_file(file) == "first\nsecond\nsecond\nthird\nfourth\n");
}

TEST_CASE("files of folders follow links, and never replace a pipe", "[output_file]") {
  const test::TemporaryFolder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const int reader = open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  for (const char* name : {"link", "pipe", "plain"}) {
    write_file(folder / "fresh", "new");
    move_over(folder / "fresh", folder / name);
    CHECK_FALSE(fs::exists(folder / "fresh"));
  }
  close(reader);
  CHECK(read_file(folder / "target") == "new");
  CHECK(read_file(folder / "plain") == "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_fifo(folder / "pipe"));
}
