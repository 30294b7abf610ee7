#include "tasks/data/lm/text_source.hpp"

#include <sys/stat.h>

#include <numeric>

#include "tasks/data/data_task.hpp"
#include "tasks/data/lm/text.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lm;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

namespace fs = std::filesystem;

/// A text without a period that would hide a row in the wrong place.
std::string some_text(std::size_t bytes) {
  std::string text;
  std::uint32_t state = 7;
  while (text.size() < bytes) {
    state = state * 1664525u + 1013904223u;
    const auto byte = static_cast<unsigned char>(state >> 24);
    text += byte < ' ' || byte == 127 ? '\n' : static_cast<char>(byte);
  }
  return text;
}

/// The text of each split, as prepared.
std::map<Split, std::string> prepared_texts(const fs::path& from, const TextFileRules& rules = {}) {
  const TemporaryFolder folder;
  const auto source = read_text(from, rules);
  prepare(*source, folder / "text.prepared");
  const Text text(std::make_shared<Cache>(folder / "text.prepared"));
  std::map<Split, std::string> texts;
  for (const Split split : every_split) {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(text.tokens(split)));
    text.copy(split, 0, bytes);
    for (const std::int64_t byte : bytes) texts[split] += static_cast<char>(byte);
  }
  return texts;
}

std::string refused(const fs::path& from, const TextFileRules& rules = {}) {
  return refusal([&] { read_text(from, rules); });
}

TextFileRules divided(Division division) {
  TextFileRules rules;
  rules.division = division;
  return rules;
}

}  // namespace

TEST_CASE("a text is split by place, whatever it is packed in", "[lm]") {
  const TemporaryFolder folder;
  const std::string text = some_text(100'003);
  write_file(folder / "plain", text);
  write_file(folder / "text.gz", gzipped(text));
  write_file(folder / "text.dz", gzipped(text));  // dictzip is gzip with a table in its header
  write_tar_gz(folder / "text.tar.gz",
               {{"a", text.substr(0, 60'000), ""}, {"b", text.substr(60'000), ""}});
  write_files(
      folder / "folder",
      {{"a/2", text.substr(9, 50'000)}, {"a/1", text.substr(0, 9)}, {"b", text.substr(50'009)}});
  for (const char* name : {"plain", "text.gz", "text.dz", "text.tar.gz", "folder"}) {
    INFO(name);
    const auto texts = prepared_texts(folder / name);
    CHECK(texts.at(Split::train) == text.substr(0, 90'003));
    CHECK(texts.at(Split::validation) == text.substr(90'003, 5'000));
    CHECK(texts.at(Split::test) == text.substr(95'003));
  }
  TextFileRules rules;
  rules.validation_share = 0.25;
  rules.test_share = 0.5;
  const auto texts = prepared_texts(folder / "plain", rules);
  CHECK(texts.at(Split::train).size() == 25'002);
  CHECK(texts.at(Split::test) == text.substr(50'002));
  // Content decides the hash, not the package.
  CHECK(read_text(folder / "plain")->description().source_hash ==
        read_text(folder / "text.tar.gz")->description().source_hash);
}

TEST_CASE("parts of a text are read from any place", "[lm]") {
  const TemporaryFolder folder;
  const std::string text = some_text(50'000);
  write_file(folder / "plain", text);
  const auto source = read_text(folder / "plain");
  prepare(*source, folder / "text.prepared");
  const Text prepared_text(std::make_shared<Cache>(folder / "text.prepared"));
  for (const auto& [first, count] : std::vector<std::pair<std::int64_t, std::size_t>>{
           {0, 1}, {4095, 2}, {4096, 4096}, {5000, 20'000}, {44'999, 1}}) {
    INFO(first << " " << count);
    std::vector<std::int64_t> bytes(count);
    prepared_text.copy(Split::train, first, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(bytes[i] == static_cast<unsigned char>(text[static_cast<std::size_t>(first) + i]));
    }
  }
  std::vector<std::int64_t> two(2);
  CHECK_THROWS_AS(prepared_text.copy(Split::train, 44'999, two), std::out_of_range);
  CHECK_THROWS_AS(prepared_text.copy(Split::train, -1, two), std::out_of_range);
}

TEST_CASE("an interrupted preparation of a text goes on to the same bytes", "[lm]") {
  const TemporaryFolder folder;
  write_files(folder / "folder", {{"a", some_text(3'000'000)}, {"b", some_text(6'000'000)}});
  PrepareOptions options;
  options.progress = [](const PreparationProgress& progress) { return progress.done < 1500; };
  const auto source = read_text(folder / "folder");
  CHECK_THROWS_AS(prepare(*source, folder / "broken", options), PreparationCancelled);
  const auto again = read_text(folder / "folder");
  CHECK(prepare(*again, folder / "broken").resumed_rows >= 1000);
  const auto whole = read_text(folder / "folder");
  prepare(*whole, folder / "whole");
  CHECK(read_file(folder / "broken") == read_file(folder / "whole"));
}

TEST_CASE("published folders are the splits", "[lm]") {
  const TemporaryFolder folder;
  write_files(folder / "books", {{"train/2.txt", "train two"},
                                 {"train/1.txt", "train one"},
                                 {"validation/3.txt", "held out"},
                                 {"test/4.txt", "tested"}});
  const auto texts = prepared_texts(folder / "books", divided(Division::folders));
  CHECK(texts.at(Split::train) == "train onetrain two");
  CHECK(texts.at(Split::validation) == "held out");
  CHECK(texts.at(Split::test) == "tested");
  write_file(folder / "books/metadata.csv", "1,2");
  CHECK(says(refused(folder / "books", divided(Division::folders)),
             {"metadata.csv", "none of the folders train, validation and test"}));
  fs::remove(folder / "books/metadata.csv");
  fs::remove_all(folder / "books/validation");
  CHECK(says(refused(folder / "books", divided(Division::folders)),
             {"no text in a folder validation", "set split to place"}));
  write_tar(
      folder / "mixed.tar",
      {{"train/1", "a", ""}, {"test/1", "b", ""}, {"validation/1", "c", ""}, {"train/2", "d", ""}});
  CHECK(says(refused(folder / "mixed.tar", divided(Division::folders)),
             {"files of train stand apart", "unpack it"}));
  write_files(folder / "parts",
              {{"a/train/1", "a"}, {"a/test/1", "b"}, {"a/validation/1", "c"}, {"b/train/1", "d"}});
  CHECK(says(refused(folder / "parts", divided(Division::folders)),
             {"files of train stand apart", "move them into one folder train"}));
}

TEST_CASE("what is no text is refused with the remedy", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  CHECK(says(refused(folder / "empty"), {"empty", "neither a folder nor a file with content"}));
  fs::create_directories(folder / "bare/below");
  CHECK(says(refused(folder / "bare"), {"holds no files", "expected a text"}));
  write_file(folder / "hollow/a.txt", "");
  CHECK(says(refused(folder / "hollow"), {"is empty", "expected a text"}));
  CHECK(says(refused(folder / "none"), {"there is no such file or folder"}));
  CHECK(says(refused("/dev/zero"), {"neither a folder nor a file"}));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(refused(folder / "pipe"), {"neither a folder nor a file"}));
  write_file(folder / "cut.gz", gzipped(some_text(100'000)).substr(0, 60'000));
  CHECK(says(refused(folder / "cut.gz"), {"cut.gz", "truncated or damaged"}));
  write_file(folder / "short", some_text(1'000));
  CHECK(says(refused(folder / "short", divided(Division::enwik8)),
             {"has 1000 bytes, enwik8 has 100000000", "set split to place"}));
  TextFileRules rules;
  rules.validation_share = 0.6;
  rules.test_share = 0.4;
  CHECK(says(refused(folder / "short", rules), {"leave a split without bytes", "takes 600"}));
  rules.test_share = 0.0001;
  CHECK(says(refused(folder / "short", rules), {"test_share 0;"}));
  CHECK(says(refusal([] { division_from("half"); }), {"place, enwik8, folders", "half"}));
}

TEST_CASE("bytes that are no text are learned from where that is said alone", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "zeros", std::string(2'000, '\0'));
  write_file(folder / "texts/a", some_text(1'000));
  write_file(folder / "texts/b.7z", "7z\xbc\xaf\x27\x1c" + some_text(1'000));
  TextFileRules raw;
  raw.raw = true;
  CHECK(says(refused(folder / "zeros"), {"100 % of its bytes", "--raw"}));
  CHECK(says(refused(folder / "texts"), {"b.7z", "a 7-Zip archive", "--raw"}));
  CHECK(refused(folder / "zeros", raw).empty());
  CHECK(refused(folder / "texts", raw).empty());
}

TEST_CASE("links that lead out of a folder are refused, others are passed over", "[lm]") {
  const TemporaryFolder folder;
  write_file(folder / "secret", "outside");
  write_file(folder / "texts/a", some_text(1'000));
  fs::create_symlink("a", folder / "texts/again");
  CHECK(prepared_texts(folder / "texts").at(Split::train).size() == 900);
  fs::create_symlink("../secret", folder / "texts/out");
  CHECK(says(refused(folder / "texts"), {"out", "leads out of the folder", "remove the link"}));
}

TEST_CASE("the settings of a text decide whether it is the one wanted", "[lm]") {
  const TemporaryFolder folder;
  const DataTask& task = *find_data_task("lm");
  write_file(folder / "plain.txt", some_text(1'000));
  CHECK(says(refusal([&] { task.open(Options::resolve(task.settings, {}), "", {}); }),
             {"--from FILE", "dict-gcide"}));
  const Options settings = Options::resolve(task.settings, {});
  const auto source = task.open(settings, folder / "plain.txt", {});
  CHECK(cache_name(source->description()).starts_with("lm-"));
  prepare(*source, folder / "data" / cache_name(source->description()));
  const auto wanted = [&](const std::map<std::string, OptionValue>& said) {
    return wanted_of(task, Options::resolve(task.settings, said));
  };
  CHECK(find_cache(folder / "data", wanted({}))->rows() == 3);
  CHECK_NOTHROW(find_cache(folder / "data", wanted({{"text", std::string("plain.txt")}})));
  CHECK_THROWS_AS(find_cache(folder / "data", wanted({{"text", std::string("other")}})),
                  MissingData);
  CHECK_THROWS_AS(find_cache(folder / "data", wanted({{"test_share", 0.1}})), MissingData);
  CHECK(says(refusal([&] {
               find_cache(folder / "data", wanted({{"split", std::string("enwik8")}}));
             }),
             {"attnbench data lm --set split=enwik8 --from FILE"}));
}
