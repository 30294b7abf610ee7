#include "tasks/data/cache.hpp"

#include "tasks/data/cache_format.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

/// Rows whose places in their splits are not the order they come in; two towers, wide tokens.
class OddSource final : public RowSource {
 public:
  explicit OddSource(int vocabulary = 1'000) {
    description_.task = "lra.odd";
    description_.settings = {{"kind", "odd"}};
    description_.source = "odd.txt";
    description_.source_hash = "1234";
    description_.classes = {"a", "b", "c"};
    description_.vocabulary = vocabulary;
    description_.first_token = 1;
    description_.towers = 2;
  }
  const DataDescription& description() const override { return description_; }
  std::uint64_t rows() const override { return 2'500; }
  std::uint64_t cache_bytes() const override { return 100'000; }
  void make(std::uint64_t number, Row& row) override {
    const auto id = static_cast<std::uint16_t>(number);
    const auto most = static_cast<std::uint16_t>(description_.vocabulary - 1);
    row.tokens.assign(1 + number % 7, static_cast<std::uint16_t>(1 + id % most));
    row.second.assign(1 + number % 5, most);
    row.label = static_cast<std::int32_t>(number % 3);
    row.split = number % 10 == 0 ? Split::test : Split::train;
    row.order = static_cast<std::uint32_t>(10'000 - number);
  }

 private:
  DataDescription description_;
};

std::vector<std::int64_t> tokens_of(const Cache& cache, std::uint64_t row, int tower = 0) {
  std::vector<std::int64_t> tokens(cache.length(row, tower));
  CHECK(cache.copy(row, tower, tokens) == tokens.size());
  return tokens;
}

/// `file` with the byte at `position` changed.
void damage(const std::filesystem::path& file, std::size_t position) {
  std::string bytes = read_file(file);
  bytes.at(position) = static_cast<char>(bytes[position] ^ 0x40);
  write_file(file, bytes);
}

}  // namespace

TEST_CASE("a cache gives back its rows, in the order of their splits", "[lra][cache]") {
  const TemporaryFolder folder;
  for (const int vocabulary : {1'000, 257}) {  // two bytes a token, and one
    OddSource source(vocabulary);
    const auto file = folder / (std::to_string(vocabulary) + ".lra");
    prepare(source, file);
    const Cache cache(file);
    REQUIRE(cache.rows() == 2'500);
    CHECK(Json(cache.description()) == Json(source.description()));
    CHECK(cache.bytes() == std::filesystem::file_size(file));
    Row row;
    for (std::uint64_t number = 0; number < 2'500; ++number) {
      source.make(number, row);
      const std::vector<std::int64_t> tokens = tokens_of(cache, number);
      const std::vector<std::int64_t> second = tokens_of(cache, number, 1);
      REQUIRE(std::equal(tokens.begin(), tokens.end(), row.tokens.begin(), row.tokens.end()));
      REQUIRE(std::equal(second.begin(), second.end(), row.second.begin(), row.second.end()));
      REQUIRE(cache.label(number) == row.label);
      REQUIRE(cache.split(number) == row.split);
    }
    // Orders descend while numbers ascend.
    CHECK(cache.index(Split::test).size() == 250);
    CHECK(cache.index(Split::test).front() == 2'490);
    CHECK(cache.index(Split::test).back() == 0);
    CHECK(cache.index(Split::train).front() == 2'499);
    CHECK(cache.index(Split::validation).empty());
  }
}

TEST_CASE("facts of a split are those of its rows", "[lra][cache]") {
  const TemporaryFolder folder;
  OddSource source;
  prepare(source, folder / "odd.lra");
  const Cache cache(folder / "odd.lra");
  const SplitFacts& test = cache.facts(Split::test);
  CHECK(test.rows == 250);
  CHECK(test.shortest == 1);
  CHECK(test.longest == 7);
  CHECK(test.of_label == std::vector<std::uint64_t>{84, 83, 83});
  CHECK(test.majority() == Approx(84.0 / 250));
  double tokens = 0;
  for (const std::uint32_t row : cache.index(Split::test)) {
    tokens += cache.length(row, 0) + cache.length(row, 1);
  }
  CHECK(test.mean_length(2) == Approx(tokens / 500));
  CHECK(cache.facts(Split::validation).rows == 0);
  CHECK(cache.facts(Split::validation).majority() == 0);
}

TEST_CASE("copies are cut at what there is room for, and padding is the caller's", "[lra][cache]") {
  const TemporaryFolder folder;
  OddSource source;
  prepare(source, folder / "odd.lra");
  const Cache cache(folder / "odd.lra");
  std::vector<std::int64_t> out(10, -1);
  CHECK(cache.copy(6, 0, out) == 7);
  CHECK(out == std::vector<std::int64_t>{7, 7, 7, 7, 7, 7, 7, -1, -1, -1});
  CHECK(cache.copy(6, 0, std::span(out).first(2)) == 2);
  CHECK_THROWS_AS(cache.copy(2'500, 0, out), std::out_of_range);
  CHECK_THROWS_AS(cache.length(0, 2), std::out_of_range);
}

TEST_CASE("a file that is no cache, of another version, cut short or damaged is refused",
          "[lra][cache]") {
  const TemporaryFolder folder;
  const auto file = listops_cache(folder);
  const std::string whole = read_file(file);
  const auto opened = [&] { return refusal([&] { Cache cache(file); }); };
  const std::string advice = "prepare it again with `attnbench data`";
  CHECK(opened().empty());
  CHECK(says(refusal([&] { Cache cache(folder / "none.lra"); }), {"none.lra", "No such file"}));
  CHECK(says(refusal([&] { Cache cache(folder.path()); }), {"not prepared data"}));
  write_file(file, "short");
  CHECK(says(opened(), {"listops.lra", "not prepared data", advice}));
  write_file(file, std::string(5'000, 'x'));
  CHECK(says(opened(), {"not prepared data"}));

  std::string other = whole;
  other[8] = 99;  // the version follows the magic
  write_file(file, other);
  CHECK(says(opened(), {"format version 99", "reads 1", advice}));

  for (const std::size_t bytes :
       {whole.size() - 1, whole.size() - 64, whole.size() / 2, std::size_t{200}, std::size_t{40}}) {
    INFO(bytes << " of " << whole.size() << " bytes");
    write_file(file, whole.substr(0, bytes));
    CHECK_FALSE(opened().empty());
  }
  for (const std::size_t position : {std::size_t{50}, whole.size() - 200, whole.size() - 60}) {
    INFO("byte " << position << " of " << whole.size());
    write_file(file, whole);
    damage(file, position);
    CHECK(says(opened(), {"damaged"}));
  }
}

TEST_CASE("a damaged block is refused when its rows are used, with their numbers", "[lra][cache]") {
  const TemporaryFolder folder;
  const auto file = listops_cache(folder, 2'500);
  const std::string whole = read_file(file);
  // The middle of the file is in the rows 1,000 to 1,999.
  damage(file, whole.size() / 2);
  const Cache cache(file);
  CHECK(refusal([&] { cache.label(0); }).empty());
  CHECK(says(refusal([&] { cache.label(1'234); }), {"rows 1000 to 1999 are damaged"}));
  CHECK(refusal([&] { cache.label(2'100); }).empty());
}
