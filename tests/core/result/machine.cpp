#include "core/result/machine.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::result;
using Catch::Matchers::Contains;

namespace {

/// Rates in GFLOP/s, with all threads and with one.
attnbench::Values blas_ceilings(double fma, double gemm, double fma_one, double gemm_one) {
  return {{"fma_float32_flops_per_second", fma * 1e9},
          {"gemm_float32_flops_per_second", gemm * 1e9},
          {"fma_float32_one_thread_flops_per_second", fma_one * 1e9},
          {"gemm_float32_one_thread_flops_per_second", gemm_one * 1e9}};
}

MachineCard card_of(const char* kind, const char* core_type, const char* chosen_by) {
  MachineCard card;
  card.blas = Blas{kind, "/lib/libblas.so.3", core_type, chosen_by, {}, {}};
  return card;
}

}  // namespace

TEST_CASE("a product near the multiply-adds warns of nothing", "[blas]") {
  const attnbench::Values good = blas_ceilings(460, 380, 230, 193);
  CHECK(blas_warning(good, card_of("openblas", "SkylakeX", "library")).empty());
  CHECK(*product_shares(good).all_threads == Approx(380.0 / 460));
  CHECK(*product_shares(good).one_thread == Approx(193.0 / 230));
  CHECK(blas_warning({}, {}).empty());  // nothing was measured
}

TEST_CASE("a product below half of the multiply-adds is said with library, core type and a remedy",
          "[blas]") {
  const attnbench::Values slow = blas_ceilings(460, 29, 230, 20);
  const std::string own = blas_warning(slow, card_of("openblas", "Prescott", "library"));
  for (const char* word :
       {"9 %", "20.0 GFLOP/s", "230 GFLOP/s", "openblas Prescott (its own choice)",
        "/lib/libblas.so.3", "newer OpenBLAS"}) {
    CHECK_THAT(own, Contains(word));
  }
  CHECK_THAT(blas_warning(slow, card_of("openblas", "Prescott", "user")),
             Contains("chosen by OPENBLAS_CORETYPE") && Contains("leave --keep-blas-core out"));
  CHECK_THAT(blas_warning(slow, card_of("reference", "", "library")),
             Contains("reference BLAS") && Contains("libopenblas0-openmp"));
  CHECK_THAT(blas_warning(slow, card_of("mkl", "", "library")), Contains("mkl"));
}

TEST_CASE("the BLAS that is loaded counts, and none but OpenBLAS has a core type", "[blas]") {
  Blas chosen;
  chosen.kind = "openblas";
  chosen.core_type = "Haswell";
  chosen.chosen_by = "user";
  const Blas other = blas_as_loaded(chosen, {{"kind", "reference"}, {"library", "libblas.so.3"}});
  CHECK(other.kind == "reference");
  CHECK(other.library == "libblas.so.3");
  CHECK(other.core_type.empty());
  CHECK(other.chosen_by == "library");

  const Blas same = blas_as_loaded(chosen, {{"kind", "openblas"}, {"core_type", "Zen"}});
  CHECK(same.core_type == "Zen");
  CHECK(same.chosen_by == "user");
  CHECK(blas_as_loaded(chosen, Json()).core_type == "Haswell");  // the worker said nothing
}

TEST_CASE("a product that is slow only with all threads is another matter", "[blas]") {
  const attnbench::Values stalled = blas_ceilings(460, 193, 230, 193);
  CHECK_THAT(blas_warning(stalled, card_of("openblas", "SkylakeX", "library")),
             Contains("42 %") && Contains("others held CPUs") && Contains("one thread only"));
}

TEST_CASE("results from before the card had a part for BLAS warn as well", "[blas]") {
  const Json card = {
      {"blas", "openblas"}, {"blas_core_type", "Prescott"}, {"blas_library", "/old.so"}};
  CHECK_THAT(blas_warning(
                 {{"fma_float32_flops_per_second", 460e9}, {"gemm_float32_flops_per_second", 29e9}},
                 card.get<MachineCard>()),
             Contains("6 %") && Contains("openblas Prescott, /old.so"));
}
