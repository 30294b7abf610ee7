#include "tasks/training/checkpoint.hpp"

#include <sys/mount.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::tasks::training;
using Catch::Matchers::Contains;

namespace {

const Json identity = {{"mechanism", "latte"}, {"settings", {{"width", "64"}}}};

Checkpoint numbered(int step) {
  Checkpoint checkpoint;
  checkpoint.facts = {{"step", step},
                      {"stopped", ""},
                      {"epoch_loss", 1.5},
                      {"curve", {{{"epoch", 1}, {"loss", 0.25}, {"good", true}}}}};
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

/// Requires that the first checkpoint is loaded, and the newest refused with the reason.
void check_previous_is_loaded(const test::TemporaryFolder& folder, const std::string& reason,
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

TEST_CASE("a truncated checkpoint is replaced by the previous one", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  const std::string whole = test::read_file(folder / "checkpoint.pt");
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
    INFO(bytes << " of " << whole.size() << " bytes");
    test::write_file(folder / "checkpoint.pt", whole.substr(0, bytes));
    check_previous_is_loaded(folder, "cut short, damaged or no checkpoint");
  }
}

TEST_CASE("a checkpoint with one byte changed is replaced by the previous one", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  const std::string whole = test::read_file(folder / "checkpoint.pt");
  std::size_t taken = 0;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << place % 8));
    test::write_file(folder / "checkpoint.pt", bytes);
    Checkpoints checkpoints(folder.path(), identity);
    const auto loaded = checkpoints.load();
    if (!loaded || loaded->facts["step"] != 1 || checkpoints.refused().size() != 1) ++taken;
  }
  CHECK(whole.size() > 1000);
  CHECK(taken == 0);
}

namespace {

/// The two parts of a checkpoint's file.
struct Parts {
  Json head;
  tasks::training::NamedTensors tensors;
};

Parts parts_of(const std::string& bytes) {
  const c10::IValue value = torch::jit::pickle_load({bytes.begin(), bytes.end()});
  Parts parts{Json::parse(value.toTupleRef().elements()[0].toStringRef()), {}};
  for (const auto& item : value.toTupleRef().elements()[1].toGenericDict()) {
    parts.tensors[item.key().toStringRef()] = item.value().toTensor();
  }
  return parts;
}

std::vector<char> archive_of(const Parts& parts) {
  c10::Dict<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : parts.tensors) named.insert(name, tensor);
  return torch::jit::pickle_save(
      c10::ivalue::Tuple::create({c10::IValue(parts.head.dump()), c10::IValue(named)}));
}

}  // namespace

TEST_CASE("a checkpoint without its digest, or of another version, is replaced by the previous one",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  Parts parts = parts_of(test::read_file(folder / "checkpoint.pt"));
  const auto write = [&](const std::vector<char>& bytes) {
    test::write_file(folder / "checkpoint.pt", {bytes.begin(), bytes.end()});
  };
  write(archive_of(parts));
  check_previous_is_loaded(folder, "has no digest");
  // With a valid digest it is loaded: only the digest protects the file.
  parts.head["facts"]["step"] = 3;
  write(sealed(archive_of(parts)));
  CHECK(Checkpoints(folder.path(), identity).load()->facts["step"] == 3);
  parts.head["version"] = 7;
  write(sealed(archive_of(parts)));
  check_previous_is_loaded(folder, "version 7, not 2");
}

TEST_CASE("a checkpoint of another build or model is replaced by the previous one",
          "[checkpoint]") {
  Json built = identity, anew = identity, wider = identity;
  built["binary"] = "0123";
  anew["binary"] = "4567";
  wider["settings"]["width"] = "128";
  const auto check = [](const Json& own, const Json& other, const std::string& reason) {
    const test::TemporaryFolder folder;
    Checkpoints(folder.path(), own).save(numbered(1));
    Checkpoints(folder.path(), other).save(numbered(2));
    check_previous_is_loaded(folder, reason, own);
  };
  check(built, anew, "the worker or a plugin was built anew");
  check(identity, wider, "of another training: width is \"128\" there and \"64\" here");
}

TEST_CASE("a checkpoint that the caller refuses is replaced by the previous one", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  Checkpoints checkpoints(folder.path(), identity);
  const auto loaded = checkpoints.load([](const Checkpoint& one) {
    if (one.facts.at("step") == 2) throw Error("fits nothing");
  });
  REQUIRE(loaded.has_value());
  CHECK(loaded->facts["step"] == 1);
  REQUIRE(checkpoints.refused().size() == 1);
  CHECK_THAT(checkpoints.refused()[0], Contains("checkpoint.pt fits nothing"));
}

TEST_CASE("weights are read from a checkpoint of the same model, whatever else differs",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  Checkpoints(folder.path(), identity).save(numbered(1));
  const auto file = Checkpoints(folder.path(), identity).newest();
  Json some = identity;
  REQUIRE(some.size() > 1);
  some.erase(some.begin());
  CHECK(read_checkpoint(file, some).facts["step"] == 1);
  CHECK(read_checkpoint(file, Json::object()).tensors.size() == numbered(1).tensors.size());
  Json wider = identity;
  wider["settings"]["width"] = "128";
  CHECK_THROWS_WITH(read_checkpoint(file, wider),
                    Contains("of another training: width is \"64\" there and \"128\" here"));
  CHECK_THROWS_WITH(read_checkpoint(folder / "none.pt", identity), Contains("cannot be read"));
  test::write_file(file, test::read_file(file) + "x");
  CHECK_THROWS_AS(read_checkpoint(file, identity), Error);
}

TEST_CASE("a bad checkpoint never replaces a good one", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  test::write_file(folder / "checkpoint.pt", "nonsense");
  Checkpoints checkpoints(folder.path(), identity);
  REQUIRE(checkpoints.load()->facts["step"] == 1);
  checkpoints.save(numbered(3));
  std::filesystem::remove(folder / "checkpoint.pt");
  CHECK(Checkpoints(folder.path(), identity).load()->facts["step"] == 1);
}

TEST_CASE("a training killed between two renames can resume", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  std::filesystem::rename(folder / "checkpoint.pt", folder / "checkpoint.previous.pt");
  test::write_file(folder / "checkpoint.writing.pt", "half");
  CHECK(Checkpoints(folder.path(), identity).load()->facts["step"] == 2);
}

TEST_CASE("a failed write leaves older checkpoints unchanged", "[checkpoint]") {
  const test::TemporaryFolder folder;
  save_two(folder);
  // A folder in the file's place cannot be opened for writing, not even by root.
  std::filesystem::create_directory(folder / "checkpoint.writing.pt");
  Checkpoints checkpoints(folder.path(), identity);
  CHECK_THROWS_WITH(checkpoints.save(numbered(3)), Contains("cannot be written"));
  CHECK_THROWS_AS(checkpoints.save(numbered(3)), CheckpointError);
  CHECK(checkpoints.load()->facts["step"] == 2);
}

TEST_CASE("a full disk leaves older checkpoints unchanged", "[checkpoint]") {
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
