#include "tasks/data/prepare.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "tasks/data/cache.hpp"
#include "tasks/data/lra/listops.hpp"
#include "tasks/data/lra/pathfinder.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::tasks::data;
using namespace attnbench::test;

namespace {

namespace fs = std::filesystem;

ListOpsRules listops_rules(std::uint32_t rows, std::uint64_t seed = 0) {
  ListOpsRules rules;
  rules.length_minimum = 4;
  rules.length_maximum = 60;
  rules.rows = {rows, 300, 300};
  rules.seed = seed;
  return rules;
}

/// Prepares rules until `stop_at` rows are made, then cancels.
void interrupt(const fs::path& file, const ListOpsRules& rules, std::uint64_t stop_at) {
  ListOpsGenerator generator(rules);
  PrepareOptions options;
  options.progress = [&](const PreparationProgress& progress) { return progress.done < stop_at; };
  // The last call comes when all rows are made, if none before.
  CHECK_THROWS_AS(prepare(generator, file, options), PreparationCancelled);
}

/// Makes rows of a generator in one go up to a row that fails.
class FailingSource final : public RowSource {
 public:
  explicit FailingSource(std::uint64_t fails_at, bool any_order)
      : generator_(listops_rules(5'000)), fails_at_(fails_at), any_order_(any_order) {}
  const DataDescription& description() const override { return generator_.description(); }
  std::uint64_t rows() const override { return generator_.rows(); }
  std::uint64_t cache_bytes() const override { return generator_.cache_bytes(); }
  bool any_order() const override { return any_order_; }
  void make(std::uint64_t number, Row& row) override {
    if (number == fails_at_) throw UsageError("row " + std::to_string(number) + " is bad");
    generator_.make(number, row);
  }

 private:
  ListOpsGenerator generator_;
  std::uint64_t fails_at_;
  bool any_order_;
};

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("an interrupted preparation resumes and gives the file of an unbroken one",
          "[lra][prepare]") {
  const TemporaryFolder folder;
  const ListOpsRules rules = listops_rules(7'000);
  ListOpsGenerator generator(rules);
  prepare(generator, folder / "whole.lra");
  const std::string whole = read_file(folder / "whole.lra");
  const fs::path file = folder / "broken.lra";
  const fs::path part = folder / "broken.lra.part";

  interrupt(file, rules, 1);  // before the first row
  CHECK_FALSE(fs::exists(file));
  REQUIRE(fs::exists(part));
  // As a kill leaves it: three whole blocks and a piece of the fourth. Their ends are told by the
  // rows: what follows the header of the whole file, less half of the rest.
  write_file(part, whole.substr(0, whole.size() / 2));
  std::uint64_t first_done = ~std::uint64_t{0};
  PrepareOptions options;
  options.threads = 2;
  options.progress = [&](const PreparationProgress& progress) {
    first_done = std::min(first_done, progress.done);
    return true;
  };
  const PrepareResult result = prepare(generator, file, options);
  CHECK(result.resumed_rows >= 2'000);
  CHECK(result.resumed_rows <= 4'000);
  CHECK(result.resumed_rows % 1'000 == 0);
  CHECK(first_done == result.resumed_rows);
  CHECK(read_file(file) == whole);
  CHECK_FALSE(fs::exists(part));
}

TEST_CASE("a damaged block of a part is made again, with all behind it", "[lra][prepare]") {
  const TemporaryFolder folder;
  ListOpsGenerator generator(listops_rules(4'000));
  prepare(generator, folder / "whole.lra");
  const std::string whole = read_file(folder / "whole.lra");
  std::string part = whole;
  part[part.size() / 3] ^= 1;
  write_file(folder / "broken.lra.part", part);
  const PrepareResult result = prepare(generator, folder / "broken.lra");
  CHECK(result.resumed_rows < 2'000);
  CHECK(read_file(folder / "broken.lra") == whole);
}

TEST_CASE("a part of other data is begun anew", "[lra][prepare]") {
  const TemporaryFolder folder;
  ListOpsGenerator before(listops_rules(2'000, 1));
  prepare(before, folder / "before.lra");
  fs::rename(folder / "before.lra", folder / "file.lra.part");
  ListOpsGenerator now(listops_rules(2'000, 2));
  CHECK(prepare(now, folder / "file.lra").resumed_rows == 0);
  prepare(now, folder / "whole.lra");
  CHECK(read_file(folder / "file.lra") == read_file(folder / "whole.lra"));
}

TEST_CASE("a killed process leaves what the next one goes on from", "[lra][prepare]") {
  const TemporaryFolder folder;
  PathfinderRules rules;
  rules.rows = {full_counts() ? 200'000u : 6'000u, 0, 0};
  PathfinderGenerator generator(rules);
  const fs::path file = folder / "p.lra";
  const fs::path part = folder / "p.lra.part";
  const std::uint64_t kill_at = rules.rows.total() * 4 / 10;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    PrepareOptions options;
    options.threads = 2;
    options.progress = [&](const PreparationProgress& progress) {
      // Rows are made ahead of the block that is written: wait for one block of 32 x 32 bytes a
      // row.
      const bool kept = fs::exists(part) && fs::file_size(part) > 1'000 * 32 * 32;
      if (progress.done > kill_at && kept) ::kill(::getpid(), SIGKILL);
      return true;
    };
    prepare(generator, file, options);
    ::_exit(0);
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  REQUIRE(WIFSIGNALED(state));
  CHECK_FALSE(fs::exists(file));
  const PrepareResult result = prepare(generator, file);
  std::cout << "killed at 40 % of " << rules.rows.total() << " images; the next run went on from "
            << result.resumed_rows << "\n";
  CHECK(result.resumed_rows >= 1'000);
  PrepareOptions two;
  two.threads = 2;
  prepare(generator, folder / "unbroken.lra", two);
  CHECK(read_file(file) == read_file(folder / "unbroken.lra"));
}

TEST_CASE("progress tells rows, rate and time left, and what was there before does not count",
          "[lra][prepare]") {
  PreparationProgress progress;
  progress.done = 600;
  progress.resumed = 400;
  progress.total = 1'000;
  progress.seconds = 2;
  CHECK(progress.rate() == 100);
  CHECK(progress.seconds_left() == 4);
  progress.seconds = 0;
  CHECK(progress.seconds_left() < 0);

  const TemporaryFolder folder;
  ListOpsGenerator generator(listops_rules(1'000));
  std::vector<std::uint64_t> done;
  PrepareOptions options;
  options.progress = [&](const PreparationProgress& now) {
    CHECK(now.total == 1'600);
    done.push_back(now.done);
    return true;
  };
  prepare(generator, folder / "file.lra", options);
  REQUIRE(done.size() >= 2);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(done.back() == 1'600);
}

TEST_CASE("finished files are not made again, other files are not overwritten", "[lra][prepare]") {
  const TemporaryFolder folder;
  ListOpsGenerator generator(listops_rules(1'000));
  prepare(generator, folder / "file.lra");
  const std::string before = read_file(folder / "file.lra");
  CHECK(prepare(generator, folder / "file.lra").already_there);
  ListOpsGenerator other(listops_rules(1'000, 9));
  CHECK(says(refusal([&] { prepare(other, folder / "file.lra"); }),
             {"file.lra", "data_seed 0, not 9", "remove it first"}));
  CHECK(read_file(folder / "file.lra") == before);
  write_file(folder / "file.lra", "something of a user");
  CHECK(says(refusal([&] { prepare(generator, folder / "file.lra"); }), {"not prepared data"}));
  CHECK(read_file(folder / "file.lra") == "something of a user");
}

TEST_CASE("a bad row leaves nothing behind", "[lra][prepare]") {
  const TemporaryFolder folder;
  for (const bool any_order : {false, true}) {
    FailingSource source(3'210, any_order);
    PrepareOptions options;
    options.threads = 2;
    CHECK(says(refusal([&] { prepare(source, folder / "new/file.lra", options); }),
               {"row 3210 is bad"}));
    CHECK(files_in(folder.path()) == 0);
  }
}

TEST_CASE("disk space is asked for first", "[lra][prepare]") {
  const TemporaryFolder folder;
  PathfinderRules rules;
  rules.side = 128;
  PathfinderGenerator generator(rules);
  PrepareOptions options;
  options.free_bytes = [](const fs::path&) { return std::uint64_t{2} << 30; };
  CHECK(says(refusal([&] { prepare(generator, folder / "new/file.lra", options); }),
             {"no space left", "3.06 GiB are needed", "2.00 GiB are free", "another place"}));
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a write that fails is said, and leaves nothing behind", "[lra][prepare]") {
  const TemporaryFolder folder;
  ListOpsGenerator generator(listops_rules(5'000));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{50'000, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string refused = refusal([&] { prepare(generator, folder / "file.lra"); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(says(refused, {"file.lra.part", "cannot be written", "File too large", "make room"}));
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("two processes do not prepare one file", "[lra][prepare]") {
  const TemporaryFolder folder;
  ListOpsGenerator generator(listops_rules(1'000));
  const int other = ::open((folder / "file.lra.part").c_str(), O_RDWR | O_CREAT, 0644);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  CHECK(says(refusal([&] { prepare(generator, folder / "file.lra"); }), {"another process"}));
  ::close(other);
  CHECK(refusal([&] { prepare(generator, folder / "file.lra"); }).empty());
}

TEST_CASE("rows held out are of each class alike, and the same for the same seed", "[lra][rows]") {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 1'000; ++i) labels.push_back(i < 600 ? 0 : i < 900 ? 1 : 2);
  const std::vector<bool> held = hold_out(labels, 100, 4);
  std::array<int, 3> of_class{};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    of_class[static_cast<std::size_t>(labels[i])] += held[i];
  }
  CHECK(of_class == std::array<int, 3>{60, 30, 10});
  CHECK(hold_out(labels, 100, 4) == held);
  CHECK(hold_out(labels, 100, 5) != held);
  CHECK(says(refusal([&] { hold_out(labels, 1'000, 4); }), {"hold_out is 1000", "only 1000 rows"}));

  const std::vector<Split> splits{Split::train, Split::test, Split::train, Split::train,
                                  Split::train};
  const std::vector<Place> places = place_rows(splits, {0, 0, 1, 0, 1}, 2, 0);
  CHECK(places[1].split == Split::test);
  CHECK(std::count_if(places.begin(), places.end(),
                      [](const Place& p) { return p.split == Split::validation; }) == 2);
}

TEST_CASE("a hash of content does not depend on its pieces or the order of files", "[lra][rows]") {
  ContentHash whole, pieces;
  whole.add("attention");
  pieces.add("att");
  pieces.add("ention");
  CHECK(whole.text() == pieces.text());
  CHECK(whole.value() == hash_of("attention"));
  CHECK(whole.text().size() == 32);
  CHECK(hash_of_files({{"a", "1"}, {"b", "2"}}) == hash_of_files({{"b", "2"}, {"a", "1"}}));
  CHECK(hash_of_files({{"a", "1"}, {"b", "2"}}) != hash_of_files({{"a", "2"}, {"b", "1"}}));
}
