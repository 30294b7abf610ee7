#include "tasks/prepared/input.hpp"

#include "tests/tasks/prepared/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::prepared;
using namespace attnbench::test;

namespace {

std::map<std::string, std::string> contents(const std::filesystem::path& from) {
  std::map<std::string, std::string> files;
  Input input(from);
  while (input.next()) files[input.name()] = input.read_all();
  return files;
}

}  // namespace

TEST_CASE("folders, archives and single files are read alike", "[lra][input]") {
  const TemporaryFolder folder;
  const std::string large(300'000, 'x');
  const std::map<std::string, std::string> files{{"a/one.txt", "1"}, {"a/b/two.txt", large}};
  const std::vector<TarMember> members{{"a/one.txt", "1", ""}, {"a/b/two.txt", large, ""}};
  write_files(folder / "folder", files);
  write_tar(folder / "files.tar", members);
  write_tar_gz(folder / "files.tar.gz", members);
  CHECK(contents(folder / "folder") == files);
  CHECK(contents(folder / "files.tar") == files);
  CHECK(contents(folder / "files.tar.gz") == files);
  write_file(folder / "rows.tsv.gz", gzipped("a\tb\n"));
  CHECK(contents(folder / "rows.tsv.gz") ==
        std::map<std::string, std::string>{{"rows.tsv", "a\tb\n"}});
  // gzip inside a folder is unpacked, too; hidden files are passed over.
  write_files(folder / "packed",
              {{"images.gz", gzipped("pixels")}, {".DS_Store", "x"}, {"._a", "x"}});
  CHECK(contents(folder / "packed") == std::map<std::string, std::string>{{"images", "pixels"}});
}

TEST_CASE("truncated and damaged archives are refused", "[lra][input]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919) + "\n";
  write_tar(folder / "whole.tar", {{"text.txt", text, ""}});
  const std::string tar = read_file(folder / "whole.tar");
  const std::string packed = gzipped(tar);
  const auto refused = [&](const std::string& bytes) {
    write_file(folder / "data", bytes);
    return refusal([&] { contents(folder / "data"); });
  };
  CHECK(refused(packed).empty());
  CHECK(says(refused(packed.substr(0, packed.size() / 2)),
             {"data", "truncated or damaged", "again"}));
  CHECK(says(refused(packed.substr(0, packed.size() - 4)), {"truncated or damaged"}));
  std::string wrong_checksum = packed;
  wrong_checksum[packed.size() - 6] ^= 1;  // of the CRC-32 that ends a gzip file
  CHECK(says(refused(wrong_checksum), {"truncated or damaged"}));
  CHECK(says(refused(tar.substr(0, tar.size() / 2)), {"data", "truncated"}));
  CHECK(says(refused(""), {"neither a folder nor a file with content"}));
  CHECK(says(refusal([&] { contents(folder / "none"); }), {"none", "no such file"}));
}

TEST_CASE("members that leave the archive, and links, are refused", "[lra][input]") {
  const TemporaryFolder folder;
  const auto refused = [&](const TarMember& member) {
    write_tar(folder / "odd.tar", {{"fine.txt", "1", ""}, member});
    return refusal([&] { contents(folder / "odd.tar"); });
  };
  CHECK(says(refused({"../outside.txt", "1", ""}), {"odd.tar", "../outside.txt", "leads out"}));
  CHECK(says(refused({"a/../../outside.txt", "1", ""}), {"leads out"}));
  CHECK(says(refused({"/etc/passwd", "1", ""}), {"/etc/passwd", "leads out"}));
  CHECK(says(refused({"link.txt", "", "/etc/passwd"}), {"link.txt", "is a link"}));
  CHECK(refused({"a..b/fine..txt", "1", ""}).empty());
}

TEST_CASE("lines end with LF or CRLF, the last one with nothing if need be", "[lra][input]") {
  const TemporaryFolder folder;
  const std::string wide(700'000, 'w');  // wider than what is read at once
  write_file(folder / "lines.tsv", "one\r\n\n" + wide + "\nlast");
  Input input(folder / "lines.tsv");
  REQUIRE(input.next());
  Lines lines(input);
  std::vector<std::string> found;
  std::string_view line;
  while (lines.next(line)) found.emplace_back(line);
  CHECK(found == std::vector<std::string>{"one", "", wide, "last"});
  CHECK(lines.number() == 4);
  CHECK(lines.at("is odd") ==
        (folder / "lines.tsv").string() + ", member lines.tsv, line 4: is odd");
}

TEST_CASE("looking through a source can be cancelled", "[lra][input]") {
  const TemporaryFolder folder;
  write_tar_gz(folder / "data.tar.gz", {{"a.txt", std::string(100'000, 'x'), ""}});
  Progress::Stage stage = Progress::Stage::making;
  const ProgressCall cancel = [&](const Progress& progress) {
    stage = progress.stage;
    return false;
  };
  const auto walk = [&] {
    Input input(folder / "data.tar.gz", cancel);
    while (input.next()) input.read_all();
  };
  CHECK_THROWS_AS(walk(), Cancelled);
  CHECK(stage == Progress::Stage::reading);
}

TEST_CASE("a file larger than what is expected is not taken into memory", "[lra][input]") {
  const TemporaryFolder folder;
  write_file(folder / "big", std::string(200'000, 'x'));
  Input input(folder / "big");
  REQUIRE(input.next());
  CHECK(says(refusal([&] { input.read_all(100'000); }), {"big", "larger than 100000 bytes"}));
}
