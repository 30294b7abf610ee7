#include "harness/program/run/client/worker_environment.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Entries = std::vector<std::string>;

namespace {

const std::string huge = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

}  // namespace

TEST_CASE("a worker does not see what slows OpenBLAS, unless asked to", "[environment]") {
  const Entries ours{"HOME=/h", "OPENBLAS_CORETYPE=Haswell", "OPENBLAS_L2_SIZE=512", "OPENBLAS=x"};
  CHECK(run::worker_environment(ours, {}) == Entries{"HOME=/h", "OPENBLAS=x", huge});
  run::WorkerSurroundings keeping;
  keeping.keep_blas_core = true;
  Entries kept = ours;
  kept.push_back(huge);
  CHECK(run::worker_environment(ours, keeping) == kept);
}

TEST_CASE("a worker finds the BLAS that shares threads first", "[environment]") {
  const run::WorkerSurroundings shared{false, "", "/blas", run::Waiting::active};
  CHECK(run::worker_environment({"A=1"}, shared) == Entries{"A=1", "LD_LIBRARY_PATH=/blas", huge});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine", "A=1"}, shared) ==
        Entries{"A=1", "LD_LIBRARY_PATH=/blas:/mine", huge});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine"}, {}) ==
        Entries{"LD_LIBRARY_PATH=/mine", huge});
}

TEST_CASE("a worker is given the core type that was chosen, in place of the user's",
          "[environment]") {
  run::WorkerSurroundings wanted;
  wanted.blas_core = "SkylakeX";
  const Entries ours{"OPENBLAS_CORETYPE=Prescott"};
  CHECK(run::worker_environment(ours, wanted) == Entries{"OPENBLAS_CORETYPE=SkylakeX", huge});
  wanted.keep_blas_core = true;
  CHECK(run::worker_environment(ours, wanted) == Entries{"OPENBLAS_CORETYPE=Prescott", huge});
}

TEST_CASE("a BLAS that the user puts in LD_LIBRARY_PATH comes first where it is to be kept",
          "[environment]") {
  const test::TemporaryFolder theirs;
  test::write_file(theirs / "libblas.so.3", "");
  const std::string path = "LD_LIBRARY_PATH=/other:" + theirs.path().string();
  run::WorkerSurroundings wanted;
  wanted.shared_blas = "/blas";
  CHECK(run::worker_environment({path}, wanted) ==
        Entries{"LD_LIBRARY_PATH=/blas:/other:" + theirs.path().string(), huge});
  wanted.keep_blas_core = true;
  CHECK(run::worker_environment({path}, wanted) == Entries{path, huge});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/other"}, wanted) ==
        Entries{"LD_LIBRARY_PATH=/blas:/other", huge});
}

TEST_CASE("threads of a worker wait passively if asked to, unless the environment says otherwise",
          "[environment]") {
  using run::Waiting;
  run::WorkerSurroundings wanted;
  wanted.waiting = Waiting::passive;
  CHECK(run::worker_environment({"A=1"}, wanted) ==
        Entries{"A=1", "OMP_WAIT_POLICY=PASSIVE", huge});
  CHECK(run::waiting_of({"A=1"}, Waiting::passive) == Waiting::passive);
  CHECK(run::waiting_of({"A=1"}, Waiting::active) == Waiting::active);
  for (const auto& [said, waiting] :
       {std::pair<std::string, Waiting>{"OMP_WAIT_POLICY=active", Waiting::active},
        {"OMP_WAIT_POLICY=passive", Waiting::passive},
        {"GOMP_SPINCOUNT=0", Waiting::passive},
        {"GOMP_SPINCOUNT=1000", Waiting::active}}) {
    INFO(said);
    CHECK(run::worker_environment({said}, wanted) == Entries{said, huge});
    CHECK(run::waiting_of({said}, Waiting::active) == waiting);
    CHECK(run::waiting_of({said}, Waiting::passive) == waiting);
  }
}

TEST_CASE("a worker is given huge pages, unless its tunables say which pages", "[environment]") {
  CHECK(run::worker_environment({"GLIBC_TUNABLES=glibc.malloc.check=1"}, {}) ==
        Entries{"GLIBC_TUNABLES=glibc.malloc.check=1:glibc.malloc.hugetlb=1"});
  const Entries said{"GLIBC_TUNABLES=glibc.malloc.hugetlb=0"};
  CHECK(run::worker_environment(said, {}) == said);
}

TEST_CASE("the BLAS that shares threads is found where Debian puts it", "[environment]") {
  const test::TemporaryFolder libraries;
  CHECK(run::shared_blas_folder(libraries.path()).empty());
  CHECK(run::shared_blas_folder(libraries / "nowhere").empty());
  test::write_file(libraries / "some-linux-gnu/openblas-openmp/libblas.so.3", "");
  CHECK(run::shared_blas_folder(libraries.path()) == libraries / "some-linux-gnu/openblas-openmp");
}
