#include "tasks/data/lm/text.hpp"

#include <array>
#include <cmath>

#include "tasks/data/lm/text_source.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lm;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

/// A text of a folder for each split.
std::shared_ptr<const Cache> text_of_splits(const TemporaryFolder& folder, const std::string& train,
                                            const std::string& test) {
  write_files(folder / "raw", {{"train/a", train}, {"validation/a", "unused"}, {"test/a", test}});
  TextFileRules rules;
  rules.division = Division::folders;
  const auto source = read_text(folder / "raw", rules);
  prepare(*source, folder / "text.prepared");
  return std::make_shared<Cache>(folder / "text.prepared");
}

}  // namespace

TEST_CASE("levels are those of counts made by hand", "[lm]") {
  // a b a b a c: 3 a, 2 b, 1 c; a is followed by b twice and by c once, b by a twice; ab by a
  // twice, ba by b once and by c once. Scored: the b and the c of a a b c, after aa and ab.
  const TemporaryFolder folder;
  const Text text(text_of_splits(folder, "ababac", "aabc"));
  const double b = 3.0 / 262, c = 2.0 / 262;      // (2 + 1) and (1 + 1) over 6 + 256
  const double b_after_a = (2 + 2 * b) / 5;       // a is followed three times
  const double c_after_b = (0 + c) / 3;           // b twice
  const double b_after_aa = (0 + b_after_a) / 1;  // aa never
  const double c_after_ab = (0 + c_after_b) / 3;  // ab twice
  const auto mean = [](double x, double y) { return -(std::log2(x) + std::log2(y)) / 2; };
  const std::vector<Level> levels = counted_levels(text);
  REQUIRE(levels.size() == 3);
  CHECK(levels[0].context == 0);
  CHECK(levels[0].bits_per_byte == Approx(mean(b, c)).epsilon(1e-12));
  CHECK(levels[1].bits_per_byte == Approx(mean(b_after_a, c_after_b)).epsilon(1e-12));
  CHECK(levels[2].context == 2);
  CHECK(levels[2].bits_per_byte == Approx(mean(b_after_aa, c_after_ab)).epsilon(1e-12));
  // Among the first three bytes of the test, b alone is scored.
  CHECK(counted_levels(text, 3)[0].bits_per_byte == Approx(-std::log2(b)).epsilon(1e-12));
  CHECK(counted_levels(text, 2).empty());
  // Counts of the first byte of training, an a.
  CHECK(counted_levels(text, 0, 1)[0].bits_per_byte == Approx(std::log2(257)).epsilon(1e-12));
}

TEST_CASE("probabilities of all bytes add up to one", "[lm]") {
  const auto after_ab = [](char byte) {
    const TemporaryFolder folder;
    const Text text(text_of_splits(folder, "abracadabra", std::string("ab") + byte));
    std::array<double, 3> found{};
    const std::vector<Level> levels = counted_levels(text);
    for (std::size_t i = 0; i < 3; ++i) found[i] = std::exp2(-levels[i].bits_per_byte);
    return found;
  };
  // The 251 bytes that the training text lacks are alike.
  const auto absent = after_ab('\0');
  for (const char byte : {'e', 'z', '\x7f', '\xff'}) CHECK(after_ab(byte) == absent);
  std::array<double, 3> sums{};
  for (std::size_t i = 0; i < 3; ++i) sums[i] = 251 * absent[i];
  for (const char byte : std::string("abrcd")) {
    const auto present = after_ab(byte);
    for (std::size_t i = 0; i < 3; ++i) sums[i] += present[i];
  }
  for (const double sum : sums) CHECK(sum == Approx(1).epsilon(1e-9));
}

TEST_CASE("prepared data of another task are no text", "[lm]") {
  const TemporaryFolder folder;
  DataDescription description;
  description.task = "lra.text";
  description.settings = Json::object();
  description.classes = {"x"};
  description.vocabulary = 257;
  description.first_token = 1;
  class One final : public RowSource {
   public:
    explicit One(DataDescription description) : description_(std::move(description)) {}
    const DataDescription& description() const override { return description_; }
    std::uint64_t rows() const override { return 1; }
    std::uint64_t cache_bytes() const override { return 1000; }
    void make(std::uint64_t, Row& row) override { row.tokens = {5}; }

   private:
    DataDescription description_;
  } source(description);
  prepare(source, folder / "other.prepared");
  CHECK(says(refusal([&] { Text(std::make_shared<Cache>(folder / "other.prepared")); }),
             {"holds data of lra.text, expected a text", "attnbench data lm --from FILE"}));
}
