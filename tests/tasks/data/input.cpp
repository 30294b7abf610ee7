#include "tasks/data/input.hpp"

#include "tasks/data/files.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::test;
namespace fs = std::filesystem;

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

TEST_CASE("without libarchive a file is read, and an archive is refused with how to unpack it",
          "[lra][input]") {
  const TemporaryFolder folder;
  const std::string large(300'000, 'x');
  write_file(folder / "rows.tsv", "a" + large);
  write_file(folder / "packed.tsv.gz", gzipped("b" + large));
  const auto content = [&](const std::string& name, std::size_t step) {
    const auto files = single_file(folder / name, {});
    REQUIRE(files->next());
    std::string found;
    for (std::size_t got = step; got == step;) {
      const std::size_t before = found.size();
      found.resize(before + step);
      got = files->read(found.data() + before, step);
      found.resize(before + got);
    }
    CHECK_FALSE(files->next());
    return std::pair(files->name, found);
  };
  for (const std::size_t step : {100, 512, 4096}) {
    CHECK(content("rows.tsv", step) ==
          std::pair<std::string, std::string>("rows.tsv", "a" + large));
    CHECK(content("packed.tsv.gz", step).second == "b" + large);
  }
  CHECK(content("packed.tsv.gz", 100).first == "packed.tsv");
  const auto refused = [&](const std::string& name) {
    return refusal([&] { single_file(folder / name, {}); });
  };
  const std::vector<TarMember> members{{"a.txt", "1", ""}};
  write_tar(folder / "a.tar", members);
  write_tar_gz(folder / "a.tar.gz", members);
  write_file(folder / "a.zip", "PK\3\4" + large);
  for (const std::string name : {"a.tar", "a.tar.gz", "a.zip"}) {
    const std::string module = name == "a.zip" ? "zipfile" : "tarfile";
    CHECK(says(refused(name), {name, "built without libarchive", "unpack it",
                               "python3 -m " + module + " -e " + name, "give the folder"}));
  }
  CHECK(refused("rows.tsv").empty());
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

TEST_CASE("links in a folder are followed, and one that goes round is refused", "[lra][input]") {
  const TemporaryFolder folder;
  write_files(folder / "elsewhere", {{"neg/1.txt", "n"}, {"test/pos/2.txt", "t"}});
  write_files(folder / "data", {{"train/pos/1.txt", "p"}});
  write_file(folder / "3.txt", "f");
  fs::create_directory_symlink(folder / "elsewhere/neg", folder / "data/train/neg");
  fs::create_directory_symlink("../elsewhere/test", folder / "data/test");
  fs::create_symlink("../../../3.txt", folder / "data/train/pos/3.txt");
  CHECK(contents(folder / "data") == std::map<std::string, std::string>{{"train/pos/1.txt", "p"},
                                                                        {"train/pos/3.txt", "f"},
                                                                        {"train/neg/1.txt", "n"},
                                                                        {"test/pos/2.txt", "t"}});
  const auto refused = [&](const fs::path& target) {
    const fs::path link = folder / "data/train/odd";
    fs::create_symlink(target, link);
    const std::string said = refusal([&] { contents(folder / "data"); });
    fs::remove(link);
    return said;
  };
  CHECK(says(refused(folder / "data"), {"train/odd", "a folder that it stands in"}));
  CHECK(says(refused("."), {"train/odd", "a folder that it stands in"}));
  CHECK(says(refused("odd"), {"train/odd", "not there"}));
  CHECK(says(refused("nowhere"), {"train/odd", "not there"}));
  CHECK(says(refused("/dev/null"), {"train/odd", "neither a file nor a folder"}));
}

TEST_CASE("what is packed and cannot be unpacked is not read in the place of a text",
          "[lra][input]") {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  const std::string text(2000, 'x');
  write_tar(folder / "whole.tar", {{"text.txt", text, ""}});
  std::string damaged = read_file(folder / "whole.tar");
  damaged[150] ^= 1;  // of the checksum of its header
  const std::map<std::string, std::string> packed{{"twice.gz", gzipped(gzipped(text))},
                                                  {"tar", damaged},
                                                  {"whole.tar", text},
                                                  {"notes.ZIP", text},
                                                  {"zip", "PK\3\4" + text},
                                                  {"seven", "7z\xbc\xaf\x27\x1c" + text},
                                                  {"rar", "Rar!\x1a\x07" + text},
                                                  {"xz", "\xfd"s + "7zXZ\0"s + text},
                                                  {"text.gz", text}};
  for (const auto& [name, bytes] : packed) {
    INFO(name);
    const TemporaryFolder inner;
    write_file(inner / name, bytes);
    CHECK(says(refusal([&] { contents(inner / name); }), {name.substr(0, name.find('.'))}));
    CHECK(says(refusal([&] { contents(inner.path()); }), {name.substr(0, name.find('.'))}));
    if (name == "text.gz") continue;  // what its name promises is told by unpacking it
    Input raw(inner.path(), {}, Links::followed, Content::raw);
    REQUIRE(raw.next());
    CHECK(raw.read_all() == (name == "twice.gz" ? gzipped(text) : bytes));
  }
  // The filters of archives unpack lone files, too: what their names say has been seen to.
  write_file(folder / "zeros", std::string(2000, '\0'));
  CHECK(contents(folder / "zeros").at("zeros").size() == 2000);
}

TEST_CASE("what is no text is told by its bytes", "[lra][input]") {
  const auto fault = [](const std::string& text) {
    TextCheck check;
    check.add(text);
    return check.fault();
  };
  CHECK(fault("").empty());
  CHECK(fault("plain\r\n\ttext\f\x1b[0m").empty());
  CHECK(fault("na\xc3\xafve, na\xefve: UTF-8 and Latin-1").empty());
  CHECK(says(fault(std::string(2000, '\0')), {"100 %", "control characters"}));
  std::string noise;
  for (unsigned i = 0, x = 1; i < 4000; ++i, x = x * 1664525 + 1013904223) {
    noise.push_back(static_cast<char>(x >> 24));
  }
  CHECK(says(fault(noise), {"control characters"}));
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
  PreparationProgress::Stage stage = PreparationProgress::Stage::making;
  const ProgressCall cancel = [&](const PreparationProgress& progress) {
    stage = progress.stage;
    return false;
  };
  const auto walk = [&] {
    Input input(folder / "data.tar.gz", cancel);
    while (input.next()) input.read_all();
  };
  CHECK_THROWS_AS(walk(), PreparationCancelled);
  CHECK(stage == PreparationProgress::Stage::reading);
}

TEST_CASE("a file larger than what is expected is not taken into memory", "[lra][input]") {
  const TemporaryFolder folder;
  write_file(folder / "big", std::string(200'000, 'x'));
  Input input(folder / "big");
  REQUIRE(input.next());
  CHECK(says(refusal([&] { input.read_all(100'000); }), {"big", "larger than 100000 bytes"}));
}
