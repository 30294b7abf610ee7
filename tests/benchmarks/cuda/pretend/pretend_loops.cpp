// device_loops.hpp and blas.hpp on the device that only pretends, at rates of round numbers.
#include "tests/benchmarks/cuda/blas.hpp"
#include "tests/benchmarks/cuda/device_loops.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_device.hpp"

namespace attnbench::bench {

template <class T>
void fill_normal(T*, std::int64_t, std::uint64_t, Stream) {}
template void fill_normal(float*, std::int64_t, std::uint64_t, Stream);
template void fill_normal(kernels::BFloat16*, std::int64_t, std::uint64_t, Stream);
template void fill_normal(kernels::Half*, std::int64_t, std::uint64_t, Stream);

void copy(void*, const void*, std::size_t bytes, Stream stream) {
  pretend::launch(2 * static_cast<double>(bytes) / 4e12, stream);
}
void exponentials(float*, Stream stream) { pretend::launch(exponentials_a_call() / 4e12, stream); }
std::int64_t exponential_threads() { return 1024; }
double exponentials_a_call() { return 4e9; }
double clock_hz(Stream) { return 1.5e9; }
void forget_error() noexcept {}

struct Blas::Library {};
Blas::Blas(const std::string& file) {
  if (file == "none") throw kernels::cuda::Error("none: cannot open shared object file");
}
Blas::~Blas() = default;
int Blas::version() const { return 130000; }
void Blas::multiply(Arithmetic arithmetic, std::int64_t n, const void*, const void*, void*,
                    Stream stream) const {
  const bool half = arithmetic == Arithmetic::bf16 || arithmetic == Arithmetic::fp16;
  const double rate = half ? 800e12 : arithmetic == Arithmetic::tf32 ? 400e12 : 50e12;
  pretend::launch(2.0 * static_cast<double>(n * n * n) / rate, stream);
}

}  // namespace attnbench::bench
