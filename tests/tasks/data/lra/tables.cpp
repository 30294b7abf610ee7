#include "tasks/data/lra/tables.hpp"

#include "tasks/data/cache.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/prepare.hpp"
#include "tasks/data/wanted.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

const std::string header = "Source\tTarget\r\n";
const std::string good = "( ( ( [MAX 2 ) 9 ) ] )\t9\r\n";

std::map<std::string, std::string> listops_files() {
  return {{"basic_train.tsv", header + good + "( ( ( [SM 8 ) 7 ) ] )\t5\r\n"},
          {"basic_val.tsv", "Source\tTarget\n( ( ( [MIN 3 ) 4 ) ] )\t3\n"},  // LF will do
          {"basic_test.tsv", header + "7\t7\r\n"}};
}

std::map<std::string, std::string> retrieval_files() {
  return {{"new_aan_pairs.train.tsv", "1.0\tA1\tB1\tattention\tis \"all\n0.0\tA2\tB2\tx\ty\n"},
          {"new_aan_pairs.eval.tsv", "0\tA3\tB3\tone\ttwo\r\n"},
          {"new_aan_pairs.test.tsv", "1\tA4\tB4\tthree\tfour\n"}};
}

/// What reading all rows of ListOps with `train` as the train table is refused with.
std::string refused_train(const std::string& train) {
  const TemporaryFolder folder;
  auto files = listops_files();
  files["basic_train.tsv"] = train;
  write_files(folder.path(), files);
  return refusal([&] { rows_of(*read_listops(folder.path())); });
}

std::string refused_pairs(const std::string& train) {
  const TemporaryFolder folder;
  auto files = retrieval_files();
  files["new_aan_pairs.train.tsv"] = train;
  write_files(folder.path(), files);
  return refusal([&] { rows_of(*read_retrieval(folder.path())); });
}

}  // namespace

TEST_CASE("ListOps tables are read with CRLF and LF, round brackets dropped", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder.path(), listops_files());
  const auto source = read_listops(folder.path());
  REQUIRE(source->rows() == 4);
  std::map<std::pair<Split, std::uint32_t>, std::pair<std::string, int>> found;
  for (const Row& row : rows_of(*source)) {
    found[{row.split, row.order}] = {listops_text(row.tokens), row.label};
  }
  CHECK(found[{Split::train, 0}] == std::pair<std::string, int>("[MAX 2 9 ]", 9));
  CHECK(found[{Split::train, 1}] == std::pair<std::string, int>("[SM 8 7 ]", 5));
  CHECK(found[{Split::validation, 0}] == std::pair<std::string, int>("[MIN 3 4 ]", 3));
  CHECK(found[{Split::test, 0}] == std::pair<std::string, int>("7", 7));
}

TEST_CASE("a table in an archive gives the data of the same table in a folder", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder / "folder", listops_files());
  // As in lra_release.gz: a stray copy further out, and members in any order.
  const auto files = listops_files();
  std::vector<TarMember> members;
  for (const char* name : {"basic_val.tsv", "basic_test.tsv", "basic_train.tsv"}) {
    members.push_back({std::string("lra_release/listops-1000/") + name, header + "1\t1\r\n", ""});
    members.push_back(
        {std::string("lra_release/lra_release/listops-1000/") + name, files.at(name), ""});
  }
  write_tar_gz(folder / "lra_release.gz", members);
  const auto plain = read_listops(folder / "folder");
  const auto packed = read_listops(folder / "lra_release.gz");
  CHECK(packed->description().notes.at("folder") == "lra_release/lra_release/listops-1000");
  CHECK(packed->description().source_hash == plain->description().source_hash);
  prepare(*plain, folder / "plain.lra");
  prepare(*packed, folder / "packed.lra");
  CHECK(Cache(folder / "plain.lra").content_hash() == Cache(folder / "packed.lra").content_hash());
}

TEST_CASE("a reader goes on from a later row, as resuming does", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder.path(), listops_files());
  const auto source = read_listops(folder.path());
  const std::vector<Row> rows = rows_of(*source);
  const auto again = read_listops(folder.path());
  Row row;
  again->make(2, row);
  CHECK(row.tokens == rows[2].tokens);
  CHECK(row.order == rows[2].order);
  again->make(3, row);
  CHECK(row.tokens == rows[3].tokens);
}

TEST_CASE("bad rows of ListOps tables are refused with their line", "[lra][tables]") {
  CHECK(says(refused_train(header + good + "7\r\n"),
             {"member basic_train.tsv, line 3", "1 columns", "expected 2", "Source, Target"}));
  CHECK(says(refused_train(header + "7\t7\t7\r\n"), {"line 2", "3 columns"}));
  CHECK(says(refused_train(header + "7\tseven\r\n"), {"line 2", "label is \"seven\"", "0 to 9"}));
  CHECK(says(refused_train(header + "7\t10\r\n"), {"label is \"10\""}));
  CHECK(says(refused_train(header + "\t7\r\n"), {"line 2", "no tokens"}));
  CHECK(says(refused_train(header + "( ( ( [MAX 2 ) 9 )\t9\r\n"), {"line 2", "unbalanced"}));
  CHECK(says(refused_train(header + "[MAX 2 9\t9\r\n"), {"line 2", "unbalanced"}));
  CHECK(says(refused_train(header + good + "[MAX 2 9 ]\t8\r\n"),
             {"line 3", "evaluates to 9", "its label is 8"}));
  CHECK(says(refused_train("Text\tLabel\r\n" + good), {"line 1", "expected the header"}));
  CHECK(says(refused_train(header), {"basic_train.tsv holds no rows"}));
}

TEST_CASE("a missing split, and something else altogether, are refused", "[lra][tables]") {
  const TemporaryFolder folder;
  auto files = listops_files();
  files.erase("basic_val.tsv");
  write_files(folder / "two", files);
  CHECK(says(refusal([&] { read_listops(folder / "two"); }), {"two", "basic_val.tsv is missing"}));
  write_files(folder / "other", {{"photo.jpg", "x"}, {"letter.txt", "y"}});
  CHECK(says(refusal([&] { read_listops(folder / "other"); }),
             {"other", "expected basic_train.tsv", "letter.txt, photo.jpg"}));
  std::filesystem::create_directories(folder / "empty");
  CHECK(says(refusal([&] { read_listops(folder / "empty"); }), {"holds no files"}));
}

TEST_CASE("a source that changed since is not what a cache was prepared from", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder / "from", listops_files());
  prepare(*read_listops(folder / "from"), folder / "data.lra");
  auto files = listops_files();
  files["basic_train.tsv"] = header + good;
  write_files(folder / "from", files);
  const auto changed = read_listops(folder / "from");
  CHECK(says(refusal([&] { prepare(*changed, folder / "data.lra"); }),
             {"data.lra", "other content", "remove it first"}));
  const Cache cache(folder / "data.lra");
  CHECK_FALSE(difference(cache.description(),
                         {"lra.listops", Json::object(), changed->description().source_hash})
                  .empty());
}

TEST_CASE("pairs of documents are read as bytes, quotes and all", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder.path(), retrieval_files());
  const auto source = read_retrieval(folder.path());
  CHECK(source->description().towers == 2);
  CHECK(source->description().vocabulary == 257);
  std::map<std::pair<Split, std::uint32_t>, Row> rows;
  for (const Row& row : rows_of(*source)) rows[{row.split, row.order}] = row;
  REQUIRE(rows.size() == 4);
  const Row& first = rows.at({Split::train, 0});
  CHECK(text_of(first.tokens) == "attention");
  CHECK(text_of(first.second) == "is \"all");
  CHECK(first.label == 1);
  CHECK(first.tokens[0] == 'a' + 1);
  CHECK(rows.at({Split::train, 1}).label == 0);
  CHECK(text_of(rows.at({Split::validation, 0}).second) == "two");  // without its CR
  CHECK(rows.at({Split::test, 0}).label == 1);
}

TEST_CASE("documents are kept up to their first bytes", "[lra][tables]") {
  const TemporaryFolder folder;
  write_files(folder.path(), retrieval_files());
  for (const Row& row : rows_of(*read_retrieval(folder.path(), 3))) {
    CHECK(row.tokens.size() <= 3);
    CHECK(row.second.size() <= 3);
  }
  CHECK(
      says(refusal([&] { read_retrieval(folder.path(), 0); }), {"text_bytes is 0", "1 to 10000"}));
}

TEST_CASE("bad pairs are refused with their line", "[lra][tables]") {
  CHECK(says(refused_pairs("1\tA\tB\ttext\n"),
             {"new_aan_pairs.train.tsv, line 1", "4 columns", "5"}));
  CHECK(says(refused_pairs("2\tA\tB\tx\ty\n"), {"label is \"2\"", "expected 0, 1, 0.0 or 1.0"}));
  CHECK(says(refused_pairs("yes\tA\tB\tx\ty\n"), {"label is \"yes\""}));
  CHECK(says(refused_pairs("1\tA\tB\tx\ty\n1\tA\tB\t\ty\n"), {"line 2", "no bytes"}));
}

TEST_CASE("tables whose bytes are no text are taken where --raw says so alone", "[lra][tables]") {
  const std::string odd = "1\tA\tB\t" + std::string(20, '\1') + "\ty\n";
  CHECK(says(refused_pairs(odd), {"new_aan_pairs.train.tsv", "% of its bytes", "--raw"}));
  CHECK(says(refused_train(header + std::string(20, '\1')),
             {"basic_train.tsv", "% of its bytes", "--raw"}));
  const TemporaryFolder folder;
  auto files = retrieval_files();
  files["new_aan_pairs.train.tsv"] = odd;
  write_files(folder.path(), files);
  const auto source = read_retrieval(folder.path(), 4096, {}, true);
  REQUIRE(source->rows() == 3);
  std::set<std::string> texts;
  for (const Row& row : rows_of(*source)) texts.insert(text_of(row.tokens));
  CHECK(texts.count(std::string(20, '\1')) == 1);
}
