// Checkpoints whose bytes were changed, as a training reads them: what comes back is one that was
// saved, bit for bit, or nothing and the reason. fuzz.py does the same to whole trainings, of which
// each takes a second; here there are thousands. ATTNBENCH_FUZZ_COUNT says how many,
// ATTNBENCH_FUZZ_SEED from which seed.
#include "tasks/training/checkpoint.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::tasks::training;

namespace {

using Random = std::mt19937_64;

constexpr unsigned limit_seconds = 10;
constexpr long max_peak_kib = 1 << 20;

const Json identity = {{"mechanism", "latte"}, {"settings", {{"width", "64"}, {"heads", "1"}}}};

Checkpoint numbered(int step) {
  Checkpoint checkpoint;
  checkpoint.facts = {{"step", step},
                      {"curve", {{{"step", 10 * step}, {"loss", 1.5 / step}}}},
                      {"epoch_loss", 12.25 * step},
                      {"stopped", ""}};
  checkpoint.tensors["weight/a"] = at::arange(64, at::kFloat) * step;
  checkpoint.tensors["optimiser/a.mean"] = at::arange(48, at::kDouble) * step;
  return checkpoint;
}

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

/// One slip in `bytes`.
void change(Random& random, std::string& bytes) {
  const std::size_t at = below(random, bytes.size());
  switch (bytes.empty() ? 4 : below(random, 7)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + below(random, 200));
      break;
    case 4:
      bytes.insert(at, 1 + below(random, 64), static_cast<char>(random()));
      break;
    case 5:
      bytes.insert(at, bytes.substr(at, 1 + below(random, 100)));
      break;
    default:
      bytes.replace(at, 8, 8, static_cast<char>(random() % 2 == 0 ? 0xff : 0));
      break;
  }
}

/// Another character in the JSON that says where the training stands, which stays as long as it is.
void change_facts(Random& random, std::string& bytes) {
  const std::size_t begin = bytes.find("{\"facts\":");
  const std::size_t end = bytes.find('}', bytes.find("\"identity\"", begin));
  if (begin == std::string::npos || end == std::string::npos) return change(random, bytes);
  const std::string letters = "0123456789abcxyz\"{}[],:-.e";
  bytes[begin + below(random, end - begin)] = letters[below(random, letters.size())];
}

void spoil(Random& random, const std::filesystem::path& file) {
  std::string bytes = test::read_file(file);
  for (std::size_t i = 0; i < 1 + below(random, 3); ++i) {
    random() % 2 == 0 ? change(random, bytes) : change_facts(random, bytes);
  }
  test::write_file(file, bytes);
}

bool same(const Checkpoint& one, const Checkpoint& other) {
  return one.facts == other.facts && hash_of(one.tensors) == hash_of(other.tensors);
}

/// What is wrong with what is loaded from `folder`; empty: nothing is.
std::string complaint(const std::filesystem::path& folder, bool previous_is_whole) {
  Checkpoints checkpoints(folder, identity);
  const auto loaded = checkpoints.load();
  for (const std::string& reason : checkpoints.refused()) {
    if (reason.find("checkpoint") == std::string::npos) return "no file in: " + reason;
    if (reason.find("[json.exception") != std::string::npos) return "raw: " + reason;
    if (reason.size() > 2048) return "a reason of " + std::to_string(reason.size()) + " bytes";
  }
  if (!loaded) {
    if (previous_is_whole) return "the checkpoint before it was not taken";
    return checkpoints.refused().empty() ? "nothing was loaded, without a word" : "";
  }
  if (same(*loaded, numbered(2))) return "";
  if (checkpoints.refused().empty()) return "other numbers than were saved, without a word";
  return same(*loaded, numbered(1)) ? "" : "other numbers than were saved";
}

/// In a process of its own, since a reader may crash, hang or take all memory.
std::string complaint_apart(const std::filesystem::path& folder, bool previous_is_whole) {
  const auto said = folder / "complaint";
  const pid_t child = fork();
  if (child == 0) {
    alarm(limit_seconds);
    try {
      test::write_file(said, complaint(folder, previous_is_whole));
    } catch (const std::exception& error) {
      test::write_file(said, std::string("thrown: ") + error.what());
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (usage.ru_maxrss > max_peak_kib) return std::to_string(usage.ru_maxrss) + " KiB of memory";
  return test::read_file(said);
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("a checkpoint changed anywhere comes back as it was saved, or not at all",
          "[checkpoint][fuzz]") {
  const test::TemporaryFolder saved;
  Checkpoints checkpoints(saved.path(), identity);
  checkpoints.save(numbered(1));
  checkpoints.save(numbered(2));
  const std::uint64_t seed = from_environment("ATTNBENCH_FUZZ_SEED", 1);
  const std::uint64_t count = from_environment("ATTNBENCH_FUZZ_COUNT", 300);
  for (std::uint64_t i = 0; i < count; ++i) {
    Random random(seed * 1000003 + i);
    const test::TemporaryFolder folder;
    std::filesystem::copy(saved.path(), folder.path());
    spoil(random, folder / "checkpoint.pt");
    const bool previous_is_whole = random() % 4 != 0;
    if (!previous_is_whole) spoil(random, folder / "checkpoint.previous.pt");
    INFO("case " << i << " of seed " << seed);
    CHECK(complaint_apart(folder.path(), previous_is_whole) == "");
  }
}
