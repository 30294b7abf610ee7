#include "harness/worker/allocator.hpp"

#include "attention/torch/torch.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

/// No limit once the test is over, whatever came of it.
struct Limit {
  explicit Limit(std::int64_t bytes) { worker::set_memory_limit(bytes); }
  ~Limit() { worker::set_memory_limit(0); }
};

}  // namespace

TEST_CASE("the allocator counts what lives and remembers the peak", "[allocator]") {
  worker::install_counting_allocator();
  tasks::MemoryMeter& meter = worker::cpu_memory();
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  {
    const at::Tensor a = at::empty({1000}, at::kFloat);
    CHECK(meter.live_bytes() - before == 4000);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data_ptr()) % 64 == 0);
    { const at::Tensor b = at::empty({500}, at::kDouble); }
    CHECK(meter.live_bytes() - before == 4000);
  }
  CHECK(meter.live_bytes() == before);
  CHECK(meter.peak_bytes() - before == 8000);
  meter.reset_peak();
  CHECK(meter.peak_bytes() == before);
}

TEST_CASE("an allocation beyond the limit throws, and the process goes on", "[allocator]") {
  worker::install_counting_allocator();
  tasks::MemoryMeter& meter = worker::cpu_memory();
  const std::int64_t before = meter.live_bytes();
  const Limit limit(before + 10'000);
  const at::Tensor fits = at::empty({1000}, at::kFloat);
  try {
    at::empty({2000}, at::kFloat);
    FAIL("the limit was passed");
  } catch (const worker::OutOfMemory& error) {
    CHECK(std::string(error.what()).find("8000 bytes") != std::string::npos);
  }
  CHECK(meter.live_bytes() - before == 4000);
  CHECK_NOTHROW(at::empty({1000}, at::kFloat));
  CHECK_THROWS_AS(at::ones({50, 50}).matmul(at::ones({50, 50})), std::bad_alloc);
}

TEST_CASE("oneDNN and OpenBLAS work on counted tensors", "[allocator]") {
  worker::install_counting_allocator();
  const std::int64_t before = worker::cpu_memory().live_bytes();
  {
    const at::NoGradGuard no_grad;
    const at::Tensor a = at::randn({128, 128});
    const at::Tensor exact = at::mm(a.to(at::kDouble), a.to(at::kDouble));
    const at::Tensor single = at::mm(a, a).to(at::kDouble);
    const at::Tensor brief = at::mm(a.to(at::kBFloat16), a.to(at::kBFloat16)).to(at::kDouble);
    CHECK((single - exact).norm().item<double>() < 1e-5 * exact.norm().item<double>());
    // Sums are of bfloat16, too, where the CPU has no AVX-512.
    CHECK((brief - exact).norm().item<double>() < 3e-2 * exact.norm().item<double>());
  }
  CHECK(worker::cpu_memory().live_bytes() == before);
}

TEST_CASE("an out-of-memory inside a backward pass keeps its type", "[allocator]") {
  worker::install_counting_allocator();
  const at::Tensor x = at::ones({1000}).requires_grad_(true);
  const at::Tensor y = (x.exp() * x).sum();
  const Limit limit(worker::cpu_memory().live_bytes() + 100);
  CHECK_THROWS_AS(y.backward(), worker::OutOfMemory);
}
