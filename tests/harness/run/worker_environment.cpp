#include "harness/run/worker_environment.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Entries = std::vector<std::string>;

namespace {

const std::string huge = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

}  // namespace

TEST_CASE("a worker does not see what slows OpenBLAS, unless asked to", "[environment]") {
  const Entries ours{"HOME=/h", "OPENBLAS_CORETYPE=Haswell", "OPENBLAS_L2_SIZE=512", "OPENBLAS=x"};
  CHECK(run::worker_environment(ours, false, {}) == Entries{"HOME=/h", "OPENBLAS=x", huge});
  Entries kept = ours;
  kept.push_back(huge);
  CHECK(run::worker_environment(ours, true, {}) == kept);
}

TEST_CASE("a worker finds the BLAS that shares threads first", "[environment]") {
  CHECK(run::worker_environment({"A=1"}, false, "/blas") ==
        Entries{"A=1", "LD_LIBRARY_PATH=/blas", huge});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine", "A=1"}, false, "/blas") ==
        Entries{"A=1", "LD_LIBRARY_PATH=/blas:/mine", huge});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine"}, false, {}) ==
        Entries{"LD_LIBRARY_PATH=/mine", huge});
}

TEST_CASE("a worker is given huge pages, unless its tunables say which pages", "[environment]") {
  CHECK(run::worker_environment({"GLIBC_TUNABLES=glibc.malloc.check=1"}, false, {}) ==
        Entries{"GLIBC_TUNABLES=glibc.malloc.check=1:glibc.malloc.hugetlb=1"});
  const Entries said{"GLIBC_TUNABLES=glibc.malloc.hugetlb=0"};
  CHECK(run::worker_environment(said, false, {}) == said);
}

TEST_CASE("the BLAS that shares threads is found where Debian puts it", "[environment]") {
  const test::TemporaryFolder libraries;
  CHECK(run::shared_blas_folder(libraries.path()).empty());
  CHECK(run::shared_blas_folder(libraries / "nowhere").empty());
  test::write_file(libraries / "some-linux-gnu/openblas-openmp/libblas.so.3", "");
  CHECK(run::shared_blas_folder(libraries.path()) == libraries / "some-linux-gnu/openblas-openmp");
}
