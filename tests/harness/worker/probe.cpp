#include "harness/worker/probe.hpp"

#include <nlohmann/json.hpp>

#include "attention/torch/torch.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("the probe measures products of each dtype beside the ceilings", "[probe]") {
  const int threads = at::get_num_threads();
  protocol::Probe request;
  request.threads = threads;
  const tasks::Json answer = worker::probe(request);
  const tasks::Json& ceilings = answer.at("ceilings");
  for (const char* name :
       {"gemm_float32_flops_per_second", "gemm_float64_flops_per_second",
        "gemm_bfloat16_flops_per_second", "fma_float32_flops_per_second",
        "gemm_float32_one_thread_flops_per_second", "fma_float32_one_thread_flops_per_second",
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
  const tasks::Json& blas = card.at("blas");
  CHECK_FALSE(blas.at("library").get<std::string>().empty());
  if (blas.value("kind", "") == "openblas") CHECK(blas.contains("core_type"));
}

TEST_CASE("the probe of one product has its rate and whose it is, and no ceilings", "[probe]") {
  const int threads = at::get_num_threads();
  protocol::Probe request;
  request.threads = 1;
  request.product = true;
  const tasks::Json answer = worker::probe(request);
  at::set_num_threads(threads);  // it is made for a child
  CHECK(answer.at("product").at("flops_per_second").get<double>() > 1e8);
  CHECK(answer.at("machine").at("blas") == worker::torch_card().at("blas"));
  CHECK_FALSE(answer.contains("ceilings"));
}
