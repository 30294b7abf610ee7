#include "harness/worker/probe.hpp"

#include <nlohmann/json.hpp>

#include "attention/torch.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("the probe measures products of each dtype beside the ceilings", "[probe]") {
  const int threads = at::get_num_threads();
  const tasks::Json answer = worker::probe_in_child({{"device", "cpu"}, {"threads", threads}});
  const tasks::Json& ceilings = answer.at("ceilings");
  for (const char* name : {"gemm_float32_flops_per_second", "gemm_float64_flops_per_second",
                           "gemm_bfloat16_flops_per_second", "fma_float32_flops_per_second",
                           "exp_float32_per_second", "bandwidth_dram_bytes_per_second"}) {
    INFO(name);
    CHECK(ceilings.at(name).get<double>() > 0);
  }
  CHECK(ceilings.at("threads") == threads);
  CHECK(ceilings.at("gemm_float64_flops_per_second") <
        ceilings.at("gemm_float32_flops_per_second"));
}

TEST_CASE("the torch card names its version and its BLAS", "[probe]") {
  const tasks::Json card = worker::torch_card();
  CHECK_FALSE(card.at("version").get<std::string>().empty());
  CHECK(card.at("threads") == at::get_num_threads());
  // Where OpenBLAS answers it also names its kernels: the pair that decides half the speed.
  if (card.value("blas", "") == "openblas") CHECK(card.contains("blas_core_type"));
}
