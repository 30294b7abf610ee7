#include "harness/program/run/client/kept_worker.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using attnbench::run::KeptWorker;
namespace fs = std::filesystem;

namespace {

/// A worker with this content and rights, and the library beside it.
struct BuiltWorker {
  explicit BuiltWorker(const std::string& content, fs::perms rights = fs::perms::owner_all) {
    fs::create_directories(folder / "bin");
    fs::create_directories(folder / "lib");
    attnbench::test::write_file(worker(), content);
    fs::permissions(worker(), rights);
    attnbench::test::write_file(folder / "lib/libattnbench_attention.so", "library");
  }
  fs::path worker() const { return folder / "bin/attnbench-worker"; }
  fs::path kept() const { return folder / "run/kept"; }

  attnbench::test::TemporaryFolder folder;
};

const std::string binary = "\177ELF and more";

}  // namespace

TEST_CASE("a worker is kept with its library for as long as it is needed", "[kept_worker]") {
  const BuiltWorker built(binary);
  {
    const KeptWorker kept(built.worker(), built.kept());
    CHECK(kept.program() == built.kept() / "bin/attnbench-worker");
    fs::remove(built.worker());
    CHECK(attnbench::test::read_file(kept.program()) == binary);
    CHECK(fs::exists(built.kept() / "lib/libattnbench_attention.so"));
  }
  CHECK_FALSE(fs::exists(built.kept()));
}

TEST_CASE("a script, as a wheel's, and what may not be run stay where they are", "[kept_worker]") {
  const BuiltWorker script("#!/bin/sh\n");
  CHECK(KeptWorker(script.worker(), script.kept()).program() == script.worker());
  const BuiltWorker forbidden(binary, fs::perms::owner_read);
  CHECK(KeptWorker(forbidden.worker(), forbidden.kept()).program() == forbidden.worker());
}
