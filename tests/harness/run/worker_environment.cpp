#include "harness/run/worker_environment.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Entries = std::vector<std::string>;

TEST_CASE("a worker does not see what slows OpenBLAS, unless asked to", "[environment]") {
  const Entries ours{"HOME=/h", "OPENBLAS_CORETYPE=Haswell", "OPENBLAS_L2_SIZE=512", "OPENBLAS=x"};
  CHECK(run::worker_environment(ours, false, {}) == Entries{"HOME=/h", "OPENBLAS=x"});
  CHECK(run::worker_environment(ours, true, {}) == ours);
}

TEST_CASE("a worker finds the BLAS that shares threads first", "[environment]") {
  CHECK(run::worker_environment({"A=1"}, false, "/blas") ==
        Entries{"A=1", "LD_LIBRARY_PATH=/blas"});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine", "A=1"}, false, "/blas") ==
        Entries{"A=1", "LD_LIBRARY_PATH=/blas:/mine"});
  CHECK(run::worker_environment({"LD_LIBRARY_PATH=/mine"}, false, {}) ==
        Entries{"LD_LIBRARY_PATH=/mine"});
}

TEST_CASE("the BLAS that shares threads is found where Debian puts it", "[environment]") {
  const test::TemporaryFolder libraries;
  CHECK(run::shared_blas_folder(libraries.path()).empty());
  CHECK(run::shared_blas_folder(libraries / "nowhere").empty());
  test::write_file(libraries / "some-linux-gnu/openblas-openmp/libblas.so.3", "");
  CHECK(run::shared_blas_folder(libraries.path()) == libraries / "some-linux-gnu/openblas-openmp");
}
