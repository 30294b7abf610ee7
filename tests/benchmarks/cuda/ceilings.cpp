#include "tests/benchmarks/cuda/ceilings.hpp"

#include <cstdio>
#include <memory>

#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/blas.hpp"

namespace attnbench::bench {
namespace {

std::string blas_file;

const Blas& blas() {
  static const Blas& loaded = *new Blas(blas_file);  // the driver is gone before statics are
  return loaded;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

template <class T>
Work gemm_of(Blas::Arithmetic arithmetic, const std::string& name) {
  constexpr std::int64_t n = 8192;
  const auto arrays = std::make_shared<Arrays>();
  const T* a = arrays->normal<T>(n * n);
  const T* b = arrays->normal<T>(n * n);
  T* c = arrays->uninitialised<T>(n * n);
  Work work;
  work.launch = [=, keep = arrays](int, Stream stream) {
    blas().multiply(arithmetic, n, a, b, c, stream);
  };
  work.cost = {2.0 * n * n * n, 3.0 * n * n * sizeof(T), 0, name};
  return work;
}

Ceilings measured() {
  Ceilings found;
  const Work copying = copy_work();
  found.copy_bytes_per_second = copying.cost.minimal_bytes / measure(copying).median;
  const Work exponentiating = exponential_work();
  found.exponentials_per_second = exponentiating.cost.exponentials / measure(exponentiating).median;
  try {
    found.blas_version = blas().version();
    for (const char* name : {"bf16", "fp16", "tf32", "fp32"}) {
      const Work work = gemm_work(name);
      found.gemm_flops_per_second[name] = work.cost.useful_flops / measure(work).median;
    }
  } catch (const kernels::cuda::Error& error) {
    found.no_gemm = error.what();
  }
  return found;
}

}  // namespace

void use_blas(const std::string& file) { blas_file = file; }

const Ceilings& ceilings() {
  static const Ceilings found = measured();
  return found;
}

Work copy_work() {
  constexpr std::int64_t bytes = std::int64_t{2} << 30;
  const auto arrays = std::make_shared<Arrays>();
  const float* from = arrays->normal<float>(bytes / 4);
  float* to = arrays->uninitialised<float>(bytes / 4);
  Work work;
  work.launch = [=, keep = arrays](int, Stream stream) { copy(to, from, bytes, stream); };
  work.cost = {0, 2.0 * bytes, 0, ""};
  return work;
}

Work exponential_work() {
  const auto arrays = std::make_shared<Arrays>();
  float* out = arrays->uninitialised<float>(exponential_threads());
  Work work;
  work.launch = [=, keep = arrays](int, Stream stream) { exponentials(out, stream); };
  work.cost = {0, 0, exponentials_a_call(), ""};
  return work;
}

Work gemm_work(const std::string& arithmetic) {
  if (arithmetic == "bf16") return gemm_of<kernels::BFloat16>(Blas::Arithmetic::bf16, arithmetic);
  if (arithmetic == "fp16") return gemm_of<kernels::Half>(Blas::Arithmetic::fp16, arithmetic);
  return gemm_of<float>(arithmetic == "tf32" ? Blas::Arithmetic::tf32 : Blas::Arithmetic::fp32,
                        arithmetic);
}

std::map<std::string, std::string> context() {
  const kernels::cuda::Card& card = kernels::cuda::card();
  const Ceilings& found = ceilings();
  std::map<std::string, std::string> entries{
      {"program", "attnbench"},
      {"card", card.name},
      {"compute_capability", std::to_string(card.major) + "." + std::to_string(card.minor)},
      {"multiprocessors", std::to_string(card.multiprocessors)},
      {"l2_bytes", std::to_string(card.l2_bytes)},
      {"copy_bytes_per_second", number(found.copy_bytes_per_second)},
      {"exponentials_per_second", number(found.exponentials_per_second)}};
  for (const auto& [name, rate] : found.gemm_flops_per_second) {
    entries["gemm_" + name + "_flops_per_second"] = number(rate);
  }
  if (!found.no_gemm.empty()) entries["no_gemm"] = found.no_gemm;
  if (found.blas_version > 0) entries["cublas"] = std::to_string(found.blas_version);
  return entries;
}

}  // namespace attnbench::bench
