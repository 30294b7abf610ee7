#include "harness/worker/probe.hpp"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "attention/torch/cuda.hpp"
#include "attention/version.hpp"
#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"

namespace attnbench::worker {
namespace {

/// The least seconds of one product of two n x n matrices, out of a few.
double product_seconds(std::int64_t n, const at::TensorOptions& where, double limit_seconds,
                       measure::Stopwatch& stopwatch) {
  const auto drawn = at::TensorOptions(at::kFloat).device(where.device());
  const at::Tensor a = at::randn({n, n}, drawn).to(where);
  const at::Tensor b = at::randn({n, n}, drawn).to(where);
  at::Tensor c = at::mm(a, b);
  double least = std::numeric_limits<double>::infinity();
  const double start = stopwatch.now();
  for (int trial = 0; trial < 12 && stopwatch.now() - start < limit_seconds; ++trial) {
    least = std::min(least, stopwatch.time([&] { at::mm_out(c, a, b); }));
  }
  return least;
}

double flops(std::int64_t n) { return 2.0 * static_cast<double>(n * n * n); }

/// FLOPs per second of at::mm. A dtype without a fast path takes seconds at the full size, so the
/// full size is tried only where a small one says that it is quick.
double product_rate(const at::TensorOptions& where, measure::Stopwatch& stopwatch) {
  const double small = flops(256) / product_seconds(256, where, 0.2, stopwatch);
  if (flops(1024) / small > 0.25) return small;
  return std::max(small, flops(1024) / product_seconds(1024, where, 0.25, stopwatch));
}

/// The size is doubled until a product takes long enough to fill the device.
double device_product_rate(const at::TensorOptions& where, measure::Stopwatch& stopwatch) {
  constexpr double long_enough = 2e-3;
  constexpr std::int64_t most = 8192;
  for (std::int64_t n = 512;; n *= 2) {
    const double seconds = product_seconds(n, where, 0.5, stopwatch);
    if (seconds >= long_enough || n >= most) return flops(n) / seconds;
  }
}

/// A dtype that the device cannot multiply has no rate.
void add_device_product_rates(Json& ceilings, const std::string& device,
                              measure::Stopwatch& stopwatch) {
  const at::NoGradGuard no_grad;
  const std::pair<const char*, at::ScalarType> dtypes[] = {{"float32", at::kFloat},
                                                           {"float64", at::kDouble},
                                                           {"bfloat16", at::kBFloat16},
                                                           {"float16", at::kHalf}};
  for (const auto& [name, type] : dtypes) {
    const auto where = at::TensorOptions().device(at::Device(device)).dtype(type);
    try {
      ceilings[std::string("gemm_") + name + "_flops_per_second"] =
          device_product_rate(where, stopwatch);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {
      std::fprintf(stderr, "%s: %s\n", name, error.what_without_backtrace());
    }
  }
}

void add_product_rates(Json& ceilings, const std::string& device, measure::Stopwatch& stopwatch) {
  const at::NoGradGuard no_grad;
  const std::pair<const char*, at::ScalarType> dtypes[] = {
      {"float32", at::kFloat}, {"float64", at::kDouble}, {"bfloat16", at::kBFloat16}};
  const int threads = at::get_num_threads();
  for (const auto& [name, type] : dtypes) {
    const auto where = at::TensorOptions().device(device).dtype(type);
    const double together = product_rate(where, stopwatch);
    // A neighbour that holds one core stalls the whole team at its barriers; what one thread does
    // alone is a rate that the machine has nevertheless.
    at::set_num_threads(1);
    const double alone = product_rate(where, stopwatch);
    at::set_num_threads(threads);
    const std::string product = std::string("gemm_") + name;
    ceilings[product + "_flops_per_second"] = std::max(together, alone);
    if (type == at::kFloat) ceilings[product + "_one_thread_flops_per_second"] = alone;
  }
}

/// Whether sampled elements of `c` agree with those of a x b computed in double.
bool is_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const std::int64_t n = a.size(0);
  const auto left = a.accessor<float, 2>();
  const auto right = b.accessor<float, 2>();
  const auto found = c.accessor<float, 2>();
  for (std::int64_t i = 0; i < n; i += n / 32 + 1) {
    for (std::int64_t j = i % 7; j < n; j += n / 32 + 1) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double term = static_cast<double>(left[i][k]) * static_cast<double>(right[k][j]);
        sum += term;
        magnitude += std::abs(term);
      }
      // NaN is not within it either.
      if (!(std::abs(static_cast<double>(found[i][j]) - sum) <= 1e-5 * magnitude)) return false;
    }
  }
  return true;
}

/// CPU time of this thread: what neighbours take from it is not in it.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// One float32 product that is right, and how fast on this thread alone; throws where it is not
/// right. Some 0.2 s.
protocol::Product try_product() {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t n = 768;
  const at::Tensor a = at::randn({n, n});
  const at::Tensor b = at::randn({n, n});
  at::Tensor c = at::mm(a, b);
  if (!is_product(a, b, c)) {
    throw UsageError("a float32 product of " + std::to_string(n) + " x " + std::to_string(n) +
                     " matrices is wrong");
  }
  double least = std::numeric_limits<double>::infinity();
  const double begin = thread_seconds();
  for (int trial = 0; trial < 12 && thread_seconds() - begin < 0.15; ++trial) {
    const double start = thread_seconds();
    at::mm_out(c, a, b);
    least = std::min(least, thread_seconds() - start);
  }
  return {flops(n) / least};
}

/// The library that answers matrix products, as the loader resolved it.
std::string blas_library() {
  Dl_info info{};
  void* product = dlsym(RTLD_DEFAULT, "sgemm_");
  if (product == nullptr || dladdr(product, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code ignored;
  const auto real = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? info.dli_fname : real.string();
}

/// The text that a function of `library`, or of those that it needs, returns. Not of the
/// whole process: LAPACK may load another OpenBLAS, which computes no products.
std::string text_from(const std::string& library, const char* function) {
  using Text = const char* (*)();
  void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return "";
  // POSIX has data and function pointers convert through void*.
  const auto call = reinterpret_cast<Text>(dlsym(handle, function));
  const char* text = call != nullptr ? call() : nullptr;
  const std::string answer = text != nullptr ? text : "";
  dlclose(handle);
  return answer;
}

std::string blas_kind(const std::string& library) {
  if (!text_from(library, "openblas_get_config").empty()) return "openblas";
  if (at::Context::hasMKL()) return "mkl";
  if (library.find("blis") != std::string::npos) return "blis";
  return library.find("/blas/") != std::string::npos ? "reference" : "";
}

void put(Json& card, const char* key, const std::string& text) {
  if (!text.empty()) card[key] = text;
}

/// oneDNN's own version structure, as far as it is read here.
struct DnnlVersion {
  int major;
  int minor;
  int patch;
};

std::string dnnl_version() {
  using Version = const DnnlVersion* (*)();
  const auto call = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (call == nullptr) return "";
  const DnnlVersion* version = call();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace

Json torch_card() {
  Json card = {{"build", ATTNBENCH_TORCH_BUILD},
               {"threads", at::get_num_threads()},
               {"interop_threads", at::get_num_interop_threads()},
               {"onednn", at::Context::hasMKLDNN()},
               {"openmp", at::Context::hasOpenMP()},
               {"allocator", "counting, over glibc's malloc"}};
  const std::string build = ATTNBENCH_TORCH_BUILD;
  put(card, "version", build.substr(0, build.find(' ')));
  const std::string library = blas_library();
  Json& blas = card["blas"] = Json::object();
  put(blas, "kind", blas_kind(library));
  put(blas, "library", library);
  put(blas, "core_type", text_from(library, "openblas_get_corename"));
  put(blas, "config", text_from(library, "openblas_get_config"));
  put(card, "onednn_version", dnnl_version());
  return card;
}

protocol::ProbeAnswer probe(const protocol::Probe& request) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  measure::pin_to_cpus(at::get_num_threads());
  const std::string& word = request.device;
  const measure::Device& device = measure::usable_device(word);
  if (request.product) return {{}, try_product(), torch_card()};
  Json ceilings = device.ceilings(at::get_num_threads());
  // Whether a cell was timed in a slower or faster moment than this one: see measure::impossible.
  ceilings["calibration_seconds"] = device.calibration_seconds(at::get_num_threads());
  const auto stopwatch = device.stopwatch();
  if (is_cuda(word)) {
    add_device_product_rates(ceilings, torch_device(word), *stopwatch);
  } else {
    add_product_rates(ceilings, word, *stopwatch);
  }
  return {ceilings, std::nullopt, torch_card()};
}

}  // namespace attnbench::worker
