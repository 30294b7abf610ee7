// What the families without an order say of a CUDA device. What it runs is not asked here.
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

Problem on_cuda(Dtype dtype) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 300;
  problem.head_dim = problem.value_dim = 64;
  problem.pattern = Pattern::bidirectional;
  problem.dtype = dtype;
  problem.device = "cuda";
  problem.gradient = true;
  return problem;
}

Support fused(const std::string& mechanism, const Problem& problem) {
  const Entry& entry = test::registry().entry(mechanism);
  const Options options = entry.derive(Options::resolve(entry.options, {}), problem);
  return entry.implementation("fused").supports(options, problem);
}

}  // namespace

TEST_CASE("a pool without an order is refused on CUDA, with what runs there") {
  for (const char* name : {"latte", "macchiato", "performer"}) {
    const Support support = fused(name, on_cuda(Dtype::bfloat16));
    CAPTURE(name, support.reason);
    CHECK_FALSE(support);
    CHECK(support.reason.find("composite runs there") != std::string::npos);
  }
}

TEST_CASE("linformer's kernel is called tiled on the CPU") {
  Problem problem = on_cuda(Dtype::float32);
  problem.device = "cpu";
  CHECK(fused("linformer", problem).reason.find("tiled") != std::string::npos);
}

}  // namespace attnbench
