// What the families without an order say of a CUDA device: their fused implementation is for it, or
// the program was built without its kernels. What CUDA does not run is not asked here.
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

Support fused(const std::string& mechanism, const Problem& problem,
              const std::map<std::string, OptionValue>& said = {}) {
  const Entry& entry = test::registry().entry(mechanism);
  const Options options = entry.derive(Options::resolve(entry.options, said), problem);
  return entry.implementation("fused").supports(options, problem);
}

bool without_kernels(const Support& support) {
  return support.reason.find("built without CUDA kernels") != std::string::npos;
}

}  // namespace

TEST_CASE("families without an order have a fused implementation on CUDA") {
  for (const char* name : {"latte", "macchiato", "performer", "luna", "perceiver", "linformer"}) {
    for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      const Support support = fused(name, on_cuda(dtype));
      CAPTURE(name, to_string(dtype), support.reason);
      CHECK((support.yes || without_kernels(support)));
    }
    const Support wide = fused(name, on_cuda(Dtype::float64));
    CAPTURE(name, wide.reason);
    CHECK_FALSE(wide);
    CHECK((without_kernels(wide) || wide.reason.find("float64") != std::string::npos));
  }
}

TEST_CASE("more latents than CUDA's pool takes are refused with the number") {
  Problem problem = on_cuda(Dtype::bfloat16);
  const Support support = fused("latte", problem, {{"latents_per_head", std::int64_t{5000}}});
  CAPTURE(support.reason);
  CHECK_FALSE(support);
  CHECK((without_kernels(support) || support.reason.find("4096 latents") != std::string::npos));
}

TEST_CASE("linformer's kernel is called tiled on the CPU") {
  Problem problem = on_cuda(Dtype::float32);
  problem.device = "cpu";
  CHECK(fused("linformer", problem).reason.find("tiled") != std::string::npos);
}

}  // namespace attnbench
