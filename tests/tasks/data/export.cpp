#include "tasks/data/export.hpp"

#include "core/arrays/npy.hpp"
#include "core/failure.hpp"
#include "tasks/data/lm/text_source.hpp"
#include "tasks/data/lra/tables.hpp"
#include "tasks/data/lra/texts.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

namespace fs = std::filesystem;

fs::path made(const TemporaryFolder& folder, const std::string& name) {
  fs::create_directories(folder / name);
  return folder / name;
}

std::shared_ptr<const Cache> prepared(RowSource& source, const fs::path& file) {
  prepare(source, file);
  return std::make_shared<Cache>(file);
}

std::vector<std::int64_t> whole_numbers(const fs::path& file, const arrays::Shape& shape) {
  const arrays::ArrayFile array = arrays::open_array(file);
  CHECK(array.element == arrays::Element::int64);
  CHECK(array.shape == shape);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(arrays::count_of(array.shape)));
  arrays::read_array(array, numbers.data());
  return numbers;
}

std::vector<std::int64_t> ids_of(const Cache& cache, Split split) {
  std::vector<std::int64_t> ids;
  for (const std::uint32_t row : cache.index(split)) {
    for (int tower = 0; tower < cache.description().towers; ++tower) {
      std::vector<std::int64_t> of_row(cache.length(row, tower));
      cache.copy(row, tower, of_row);
      ids.insert(ids.end(), of_row.begin(), of_row.end());
    }
  }
  return ids;
}

}  // namespace

TEST_CASE("generated ListOps become the published tables, and the same rows again",
          "[lra][export]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 1'200));
  const auto files = write_listops_tables(cache, made(folder, "out"));
  REQUIRE(files.size() == 3);
  CHECK(files[0].file == "basic_train.tsv");
  CHECK(files[0].rows == 1'200);
  CHECK(read_file(folder / "out/basic_val.tsv").starts_with("Source\tTarget\n["));
  const auto source = lra::read_listops(folder / "out");
  CHECK(prepared(*source, folder / "again")->content_hash() == cache.content_hash());
}

TEST_CASE("pairs of papers become the published tables, and the same rows again", "[lra][export]") {
  const TemporaryFolder folder;
  write_files(folder / "in", {{"new_aan_pairs.train.tsv", "1.0\tA\tB\tattention\tis \"all\n"},
                              {"new_aan_pairs.eval.tsv", "0\tA\tB\tone\ttwo \xc3\xa9\n"},
                              {"new_aan_pairs.test.tsv", "1\tA\tB\tthree\tfour\n"}});
  const auto first = lra::read_retrieval(folder / "in");
  const auto cache = prepared(*first, folder / "first");
  write_retrieval_tables(*cache, made(folder, "out"));
  CHECK(read_file(folder / "out/new_aan_pairs.train.tsv") == "1\t0a\t0b\tattention\tis \"all\n");
  const auto source = lra::read_retrieval(folder / "out");
  CHECK(prepared(*source, folder / "again")->content_hash() == cache->content_hash());
}

TEST_CASE("texts become folders of classes, those held out included", "[lra][export]") {
  const TemporaryFolder folder;
  std::map<std::string, std::string> in;
  for (const char* split : {"train", "test"}) {
    for (const char* label : {"neg", "pos"}) {
      for (int i = 0; i < 12; ++i) {
        const std::string name = std::string(split) + "/" + label + "/" + std::to_string(i);
        in[name + ".txt"] = name + "\n\twas\xc3\xa9 seen";
      }
    }
  }
  write_files(folder / "in", in);
  lra::ReviewRules rules;
  rules.hold_out = 6;
  const auto first = lra::read_texts(folder / "in", rules);
  const auto cache = prepared(*first, folder / "first");
  const auto files = write_class_folders(*cache, made(folder, "out"));
  REQUIRE(files.size() == 3);
  CHECK(files[1].rows == 6);
  CHECK(fs::exists(folder / "out/train/pos/17.txt"));
  const auto source = lra::read_texts(folder / "out", rules);
  CHECK(prepared(*source, folder / "again")->content_hash() == cache->content_hash());
}

TEST_CASE("a text becomes a file of each split, as its folders", "[lm][export]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 30'000; ++i) text += "line " + std::to_string(i) + "\n";
  write_file(folder / "book.txt", text);
  const auto first = lm::read_text(folder / "book.txt");
  const auto cache = prepared(*first, folder / "first");
  write_whole_texts(*cache, made(folder, "out"));
  CHECK(read_file(folder / "out/train/text.txt") + read_file(folder / "out/validation/text.txt") +
            read_file(folder / "out/test/text.txt") ==
        text);
  lm::TextFileRules rules;
  rules.division = lm::Division::folders;
  const auto source = lm::read_text(folder / "out", rules);
  CHECK(prepared(*source, folder / "again")->content_hash() == cache->content_hash());
}

TEST_CASE("prepared rows become arrays of documents end to end", "[lra][export]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 50));
  const auto files = write_arrays(cache, made(folder, "out"));
  CHECK(files.size() == 9);
  const auto lengths = whole_numbers(folder / "out/train.lengths.npy", {50, 1});
  const auto labels = whole_numbers(folder / "out/train.labels.npy", {50});
  for (std::size_t i = 0; i < 50; ++i) {
    const std::uint32_t row = cache.index(Split::train)[i];
    CHECK(lengths[i] == cache.length(row));
    CHECK(labels[i] == cache.label(row));
  }
  const arrays::ArrayFile tokens = arrays::open_array(folder / "out/train.tokens.npy");
  CHECK(tokens.element == arrays::Element::uint8);
  std::vector<std::uint8_t> numbers(static_cast<std::size_t>(tokens.bytes()));
  arrays::read_array(tokens, numbers.data());
  CHECK(std::vector<std::int64_t>(numbers.begin(), numbers.end()) == ids_of(cache, Split::train));
}

TEST_CASE("ids above 255 and two towers become arrays of uint16", "[lra][export]") {
  const TemporaryFolder folder;
  write_files(folder / "in", {{"new_aan_pairs.train.tsv", "1\tA\tB\t\xff!\tis\n"},
                              {"new_aan_pairs.eval.tsv", "0\tA\tB\tone\ttwo\n"},
                              {"new_aan_pairs.test.tsv", "1\tA\tB\tthree\tfour\n"}});
  const auto source = lra::read_retrieval(folder / "in", 4'096, {}, true);
  const auto cache = prepared(*source, folder / "first");
  write_arrays(*cache, made(folder, "out"));
  CHECK(whole_numbers(folder / "out/train.lengths.npy", {1, 2}) == std::vector<std::int64_t>{2, 2});
  const std::string file = read_file(folder / "out/train.tokens.npy");
  CHECK(file.find("'descr': '<u2', 'fortran_order': False, 'shape': (4,), }") != std::string::npos);
  CHECK(file.ends_with(std::string("\x00\x01\x22\x00\x6a\x00\x74\x00", 8)));
}

TEST_CASE("lines of questions become arrays, padded and -100 where nothing is asked", "[export]") {
  const TemporaryFolder folder;
  const std::string asked = R"("questions": [{"position": 1, "label": 7, "distance": 1}]})";
  write_files(folder / "in", {{"train.jsonl", R"({"tokens": [5, 7, 6], )" + asked + "\n" +
                                                  R"({"tokens": [8, 9], )" + asked + "\n"},
                              {"validation.jsonl", R"({"tokens": [[1, 2], [3, 4]], )" + asked},
                              {"test.jsonl", ""}});
  CHECK(write_arrays_of_lines(folder / "in", made(folder, "out")).size() == 9);
  CHECK(whole_numbers(folder / "out/train.tokens.npy", {2, 3}) ==
        std::vector<std::int64_t>{5, 7, 6, 8, 9, 0});
  CHECK(whole_numbers(folder / "out/train.labels.npy", {2, 3}) ==
        std::vector<std::int64_t>{-100, 7, -100, -100, 7, -100});
  CHECK(whole_numbers(folder / "out/train.lengths.npy", {2}) == std::vector<std::int64_t>{3, 2});
  CHECK(whole_numbers(folder / "out/validation.tokens.npy", {1, 2, 2}) ==
        std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(whole_numbers(folder / "out/test.tokens.npy", {0, 0}).empty());

  // A decoder's labels stand at the place that it is asked for.
  write_file(folder / "in/test.jsonl",
             R"({"tokens": [4, 5], "questions": [{"position": 1, "label": 4, "place": 0}, )"
             R"({"position": 1, "label": 5, "place": 1}]})");
  write_arrays_of_lines(folder / "in", folder / "out");
  CHECK(whole_numbers(folder / "out/test.labels.npy", {1, 2}) == std::vector<std::int64_t>{4, 5});

  write_file(folder / "in/test.jsonl", R"({"values": [0.5], "label": 3})");
  CHECK(says(refusal([&] { write_arrays_of_lines(folder / "in", folder / "out"); }),
             {"test.jsonl, line 1", "expected tokens and questions"}));
}

TEST_CASE("what cannot be written is refused with the file", "[export]") {
  const TemporaryFolder folder;
  const Cache cache(listops_cache(folder, 20));
  CHECK_THROWS_WITH(write_listops_tables(cache, folder / "none"),
                    Catch::Contains("basic_train.tsv") && Catch::Contains("No such file"));
  CHECK_THROWS_AS(write_arrays(cache, folder / "none"), EnvironmentFailure);
}

TEST_CASE("a class that is no folder's name is refused", "[lra][export]") {
  class Escaping final : public RowSource {
   public:
    Escaping() {
      description_.task = "lra.text";
      description_.classes = {"../../up"};
      description_.vocabulary = 257;
      description_.first_token = 1;
      description_.set_generated({{"test", 1}});
    }
    const DataDescription& description() const override { return description_; }
    std::uint64_t rows() const override { return 1; }
    std::uint64_t cache_bytes() const override { return 100; }
    void make(std::uint64_t, Row& row) override { row.tokens = {2, 3}; }

   private:
    DataDescription description_;
  };
  const TemporaryFolder folder;
  Escaping source;
  const auto cache = prepared(source, folder / "first");
  CHECK(says(refusal([&] { write_class_folders(*cache, made(folder, "out")); }),
             {"../../up", "folder's name", "arrays"}));
}
