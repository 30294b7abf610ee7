#include "tasks/data/lra/texts.hpp"

#include <algorithm>

#include "tasks/data/cache.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

/// A small aclImdb: `each` reviews of each class in train and in test, and what is passed over.
std::map<std::string, std::string> reviews(int each) {
  std::map<std::string, std::string> files{{"aclImdb/README", "a README"},
                                           {"aclImdb/train/urls_pos.txt", "http://"},
                                           {"aclImdb/train/unsup/0_0.txt", "no label"}};
  for (const char* split : {"train", "test"}) {
    for (const char* label : {"neg", "pos"}) {
      for (int i = 0; i < each; ++i) {
        const std::string name =
            std::string(split) + "/" + label + "/" + std::to_string(i) + "_7.txt";
        files["aclImdb/" + name] = name + "<br />\xc3\xa9";
      }
    }
  }
  return files;
}

ReviewRules holding_out(std::uint32_t rows) {
  ReviewRules rules;
  rules.hold_out = rows;
  return rules;
}

}  // namespace

TEST_CASE("reviews are read as bytes, neg 0 and pos 1, unlabelled ones passed over",
          "[lra][texts]") {
  const TemporaryFolder folder;
  write_files(folder.path(), reviews(4));
  const auto source = read_texts(folder.path(), holding_out(0));
  REQUIRE(source->rows() == 16);
  CHECK(source->description().classes == std::vector<std::string>{"neg", "pos"});
  int positive = 0;
  for (const Row& row : rows_of(*source)) {
    const std::string text = text_of(row.tokens);
    CHECK((text.find("/pos/") != std::string::npos) == (row.label == 1));
    CHECK((text.starts_with("train") ? Split::train : Split::test) == row.split);
    CHECK(text.ends_with("<br />\xc3\xa9"));
    CHECK(row.tokens.back() == 0xa9 + 1);
    positive += row.label;
  }
  CHECK(positive == 8);
}

TEST_CASE("rows held out are of both classes alike and no longer in train", "[lra][texts]") {
  const TemporaryFolder folder;
  write_files(folder.path(), reviews(10));
  std::array<std::array<int, 2>, 3> counts{};
  const auto source = read_texts(folder.path(), holding_out(6));
  for (const Row& row : rows_of(*source)) {
    ++counts[static_cast<std::size_t>(row.split)][static_cast<std::size_t>(row.label)];
  }
  CHECK(counts[0] == std::array<int, 2>{7, 7});
  CHECK(counts[1] == std::array<int, 2>{3, 3});
  CHECK(counts[2] == std::array<int, 2>{10, 10});
  CHECK(says(refusal([&] { read_texts(folder.path(), holding_out(20)); }), {"hold_out is 20"}));
}

TEST_CASE("an archive in any order gives the data of the folder", "[lra][texts]") {
  const TemporaryFolder folder;
  const auto files = reviews(6);
  write_files(folder / "folder", files);
  std::vector<TarMember> members;
  for (const auto& [name, content] : files) members.push_back({name, content, ""});
  std::reverse(members.begin(), members.end());
  write_tar_gz(folder / "aclImdb_v1.tar.gz", members);
  const auto plain = read_texts(folder / "folder", holding_out(4));
  const auto packed = read_texts(folder / "aclImdb_v1.tar.gz", holding_out(4));
  CHECK(packed->description().source_hash == plain->description().source_hash);
  prepare(*plain, folder / "plain.lra");
  prepare(*packed, folder / "packed.lra");
  const Cache one(folder / "plain.lra");
  const Cache other(folder / "packed.lra");
  CHECK(one.content_hash() == other.content_hash());
  CHECK(one.facts(Split::validation).index_hash == other.facts(Split::validation).index_hash);
}

TEST_CASE("a validation folder of somebody's own is used as it is", "[lra][texts]") {
  const TemporaryFolder folder;
  write_files(folder.path(), {{"train/spam/a.txt", "1"},
                              {"train/ham/a.txt", "2"},
                              {"validation/spam/a.txt", "3"},
                              {"validation/ham/a.txt", "4"},
                              {"test/spam/a.txt", "5"},
                              {"test/ham/a.txt", "6"}});
  const auto source = read_texts(folder.path());
  CHECK(source->description().classes == std::vector<std::string>{"ham", "spam"});
  // The setting stays what was asked for, so that a task finds the data; the note says the rest.
  CHECK(source->description().settings.at("hold_out") == 2'500);
  CHECK(says(source->description().notes.at("held_out"), {"none", "validation"}));
  std::map<Split, std::string> texts;
  for (const Row& row : rows_of(*source)) texts[row.split] += text_of(row.tokens);
  CHECK(texts == std::map<Split, std::string>{
                     {Split::train, "21"}, {Split::validation, "43"}, {Split::test, "65"}});
}

TEST_CASE("folders of texts that are not whole are refused", "[lra][texts]") {
  const auto refused = [](const std::map<std::string, std::string>& files) {
    const TemporaryFolder folder;
    write_files(folder.path(), files);
    return refusal([&] { rows_of(*read_texts(folder.path(), holding_out(0))); });
  };
  CHECK(says(refused({{"notes.txt", "x"}}), {"expected train/CLASS/NAME.txt", "notes.txt"}));
  CHECK(says(refused({{"train/a/1.txt", "x"}}), {"there is no test/CLASS"}));
  CHECK(says(refused({{"test/a/1.txt", "x"}}), {"train"}));
  CHECK(says(refused({{"train/a/1.txt", "x"}, {"train/b/1.txt", "x"}, {"test/a/1.txt", "x"}}),
             {"classes of test (a)", "train (a, b)"}));
  CHECK(says(refused({{"train/a/1.txt", ""}, {"test/a/1.txt", "x"}}),
             {"train/a/1.txt", "empty", "remove it"}));
  CHECK(says(refused({{"x/train/a/1.txt", "1"}, {"y/train/a/1.txt", "2"}, {"test/a/1.txt", "x"}}),
             {"y/train/a/1.txt", "twice", "x/train/a/1.txt"}));
}
