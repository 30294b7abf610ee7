// LibTorch's scaled_dot_product_attention: which of its backends can do what, told without a
// device.
#include <set>

#include "attention/registry.hpp"
#include "attention/torch/torch.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

const Registry& sdpa_registry() {
  static const Registry builtins = Registry::with_builtins();
  return builtins;
}

/// The implementations of `mechanism` whose names begin with sdpa.
std::set<std::string> sdpa_names(const char* mechanism) {
  std::set<std::string> names;
  for (const Implementation& each : sdpa_registry().entry(mechanism).implementations) {
    if (each.name.rfind("torch_sdpa", 0) == 0) names.insert(each.name);
  }
  return names;
}

Problem on_device() {
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.length = problem.key_length = 256;
  problem.head_dim = problem.value_dim = 64;
  problem.dtype = Dtype::bfloat16;
  problem.device = "cuda";
  return problem;
}

Options options_of(const char* mechanism, const Problem& problem) {
  const Entry& entry = sdpa_registry().entry(mechanism);
  return entry.derive(Options::resolve(entry.options, {}), problem);
}

/// Why `backend` does not do it; empty where it does.
std::string refusal(const char* mechanism, const std::string& backend, const Problem& problem) {
  const Implementation& implementation =
      sdpa_registry().entry(mechanism).implementation("torch_sdpa_" + backend);
  return implementation.supports(options_of(mechanism, problem), problem).reason;
}

constexpr const char* backends[] = {"flash", "cudnn", "efficient", "math"};

}  // namespace

TEST_CASE("scaled_dot_product_attention is there from LibTorch 2.1 on", "[sdpa]") {
  for (const char* mechanism : {"softmax", "window"}) {
    CHECK((sdpa_names(mechanism).count("torch_sdpa") == 1) == (ATTNBENCH_TORCH_VERSION >= 201));
  }
}

TEST_CASE("on a card auto takes it for softmax and windows, on the CPU our kernel", "[sdpa]") {
  for (const char* mechanism : {"softmax", "window"}) {
    const Entry& entry = sdpa_registry().entry(mechanism);
    const auto taken = [&](const Problem& problem) {
      return Registry::choose(entry, "auto", options_of(mechanism, problem), problem)
          .implementation->name;
    };
    INFO(mechanism);
    if (ATTNBENCH_TORCH_VERSION >= 201) CHECK(taken(on_device()) == "torch_sdpa");
    Problem on_cpu = on_device();
    on_cpu.device = "cpu";
    CHECK(taken(on_cpu) == "tiled");
    // Ours stands right behind it, before tensor operations.
    const auto rank = [&](const char* name) {
      return entry.implementation(name).cuda_rank.value_or(entry.implementation(name).rank);
    };
    CHECK(rank("fused") < 5);
    for (const char* behind : {"tiled", "chunked", "composite"})
      CHECK(rank("fused") > rank(behind));
  }
}

TEST_CASE("its backends are told apart where LibTorch has CUDA, and on CUDA alone", "[sdpa]") {
  if (sdpa_names("softmax").size() < 2) return;  // LibTorch without CUDA
  Problem on_cpu = on_device();
  on_cpu.device = "cpu";
  for (const char* backend : backends) {
    INFO(backend);
    CHECK(refusal("softmax", backend, on_device()).empty());
    CHECK_THAT(refusal("softmax", backend, on_cpu), Catch::Contains("torch_sdpa runs here"));
  }
  Problem single = on_device();
  single.dtype = Dtype::float32;
  CHECK_FALSE(refusal("softmax", "flash", single).empty());
  CHECK_FALSE(refusal("softmax", "cudnn", single).empty());
  CHECK(refusal("softmax", "efficient", single).empty());
  Problem wide = on_device();
  wide.head_dim = wide.value_dim = 192;
  CHECK(refusal("softmax", "flash", wide).empty());
  CHECK_FALSE(refusal("softmax", "cudnn", wide).empty());
  Problem grouped = on_device();
  grouped.kv_heads = 2;
  CHECK(refusal("softmax", "flash", grouped).empty());
  CHECK_FALSE(refusal("softmax", "efficient", grouped).empty());
  Problem odd = on_device();
  odd.head_dim = odd.value_dim = 20;
  CHECK(refusal("softmax", "flash", odd).empty());
  CHECK_FALSE(refusal("softmax", "cudnn", odd).empty());
  CHECK_FALSE(refusal("softmax", "efficient", odd).empty());
  // A band is a mask, which two of them are not given.
  CHECK_FALSE(refusal("window", "flash", on_device()).empty());
  CHECK_FALSE(refusal("window", "cudnn", on_device()).empty());
  CHECK(refusal("window", "efficient", on_device()).empty());
  CHECK(refusal("window", "math", on_device()).empty());
}

TEST_CASE("a backend that LibTorch refuses is unsupported, with what LibTorch says", "[sdpa]") {
  if (sdpa_names("softmax").size() < 2) return;
  Problem problem = on_device();
  problem.device = "cpu";  // where LibTorch has neither
  problem.dtype = Dtype::float32;
  const Entry& entry = sdpa_registry().entry("softmax");
  const auto mechanism = entry.make(options_of("softmax", problem), problem);
  Inputs inputs;
  for (const Role& role : mechanism->roles()) {
    inputs.tensors[role.name] = at::randn({1, 4, 256, role.width});
  }
  for (const char* backend : {"efficient", "cudnn"}) {
    const Implementation& forced = entry.implementation(std::string("torch_sdpa_") + backend);
    CHECK_THROWS_AS(forced.mix(*mechanism, inputs, nullptr), UnsupportedError);
  }
  // And what was forced is forgotten.
  CHECK_NOTHROW(entry.implementation("torch_sdpa").mix(*mechanism, inputs, nullptr));
}
