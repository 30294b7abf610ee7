#include "tasks/learning/checkpoint.hpp"

#include <sys/mount.h>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::tasks::learning;
using Catch::Matchers::Contains;

namespace {

const Json identity = {{"mechanism", "latte"}, {"settings", {{"width", "64"}}}};

Checkpoint numbered(int step) {
  Checkpoint checkpoint;
  checkpoint.facts = {{"step", step}};
  checkpoint.tensors["weight/a"] = at::full({3, 2}, step, at::kFloat);
  checkpoint.tensors["optimiser/a.mean"] = at::arange(5, at::kDouble) * step;
  return checkpoint;
}

/// Saves two checkpoints, of the steps 1 and 2.
void save_two(const test::TemporaryFolder& folder) {
  Checkpoints checkpoints(folder.path(), identity);
  checkpoints.save(numbered(1));
  checkpoints.save(numbered(2));
}

/// What is loaded after `spoil` has dealt with the newest: the first one, and the reason.
void check_previous_is_taken(const test::TemporaryFolder& folder, const std::string& reason,
                             const Json& as = identity) {
  Checkpoints checkpoints(folder.path(), as);
  const auto loaded = checkpoints.load();
  REQUIRE(loaded.has_value());
  CHECK(loaded->facts["step"] == 1);
  REQUIRE(checkpoints.refused().size() == 1);
  CHECK_THAT(checkpoints.refused()[0], Contains("checkpoint.pt"));
  CHECK_THAT(checkpoints.refused()[0], Contains(reason));
}

}  // namespace

TEST_CASE("a checkpoint comes back bit by bit, the newest first", "[checkpoint]") {
  const test::TemporaryFolder folder;
  CHECK_FALSE(Checkpoints(folder.path(), identity).load().has_value());
  save_two(folder);
  Checkpoints checkpoints(folder.path(), identity);
  const auto loaded = checkpoints.load();
  REQUIRE(loaded.has_value());
  CHECK(checkpoints.refused().empty());
  CHECK(loaded->facts["step"] == 2);
  CHECK(hash_of(loaded->tensors) == hash_of(numbered(2).tensors));
  CHECK(at::equal(loaded->tensors.at("weight/a"), numbered(2).tensors.at("weight/a")));
  CHECK(loaded->tensors.at("optimiser/a.mean").scalar_type() == at::kDouble);
}

TEST_CASE("a checkpoint that was cut short anywhere gives way to the one before", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  const std::string whole = test::read_file(folder / "checkpoint.pt");
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
    INFO(bytes << " of " << whole.size() << " bytes");
    test::write_file(folder / "checkpoint.pt", whole.substr(0, bytes));
    check_previous_is_taken(folder, "cut short, damaged or no checkpoint");
  }
}

TEST_CASE("a checkpoint whose bits changed gives way to the one before", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  std::string bytes = test::read_file(folder / "checkpoint.pt");
  const float two = 2;  // an element of the weight
  const std::size_t place =
      bytes.find(std::string(reinterpret_cast<const char*>(&two), sizeof two) +
                 std::string(reinterpret_cast<const char*>(&two), sizeof two));
  REQUIRE(place != std::string::npos);
  bytes[place] ^= 1;
  test::write_file(folder / "checkpoint.pt", bytes);
  check_previous_is_taken(folder, "damaged");
}

TEST_CASE("a checkpoint of another version gives way to the one before", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  std::string bytes = test::read_file(folder / "checkpoint.pt");
  const std::string said = "\"version\":1";
  const std::size_t place = bytes.find(said);
  REQUIRE(place != std::string::npos);
  bytes[place + said.size() - 1] = '7';
  test::write_file(folder / "checkpoint.pt", bytes);
  check_previous_is_taken(folder, "version 7, not 1");
}

TEST_CASE("a checkpoint of another model gives way to the one before", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Json wider = identity;
  wider["settings"]["width"] = "128";
  Checkpoints(folder.path(), identity).save(numbered(1));
  Checkpoints(folder.path(), wider).save(numbered(2));
  check_previous_is_taken(folder, "of another training: width is \"128\" there and \"64\" here");
}

TEST_CASE("one that is no good never takes the place of one that is", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  test::write_file(folder / "checkpoint.pt", "nonsense");
  Checkpoints checkpoints(folder.path(), identity);
  REQUIRE(checkpoints.load()->facts["step"] == 1);
  checkpoints.save(numbered(3));
  std::filesystem::remove(folder / "checkpoint.pt");
  CHECK(Checkpoints(folder.path(), identity).load()->facts["step"] == 1);
}

TEST_CASE("what a kill leaves between two renames is gone on with", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  std::filesystem::rename(folder / "checkpoint.pt", folder / "checkpoint.previous.pt");
  test::write_file(folder / "checkpoint.writing.pt", "half");
  CHECK(Checkpoints(folder.path(), identity).load()->facts["step"] == 2);
}

TEST_CASE("where no checkpoint can be written the older ones stay", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  // A folder in the file's place: it cannot be opened for writing, whoever asks.
  std::filesystem::create_directory(folder / "checkpoint.writing.pt");
  Checkpoints checkpoints(folder.path(), identity);
  CHECK_THROWS_WITH(checkpoints.save(numbered(3)), Contains("cannot be written"));
  CHECK_THROWS_AS(checkpoints.save(numbered(3)), CheckpointError);
  CHECK(checkpoints.load()->facts["step"] == 2);
}

TEST_CASE("a full disk costs no older checkpoint", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const std::string disk = (folder / "disk").string();
  std::filesystem::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128k") != 0) {
    WARN("needs the right to mount a small file system");
    return;
  }
  {
    Checkpoints checkpoints(disk, identity);
    checkpoints.save(numbered(1));
    checkpoints.save(numbered(2));
    Checkpoint large = numbered(3);
    large.tensors["weight/b"] = at::ones({1 << 16}, at::kFloat);
    CHECK_THROWS_AS(checkpoints.save(large), CheckpointError);
    CHECK(checkpoints.load()->facts["step"] == 2);
    CHECK_FALSE(std::filesystem::exists(disk + "/checkpoint.writing.pt"));
    std::filesystem::remove(checkpoints.newest());
    CHECK(Checkpoints(disk, identity).load()->facts["step"] == 1);
  }
  umount2(disk.c_str(), MNT_DETACH);
}
