#include "core/result/blas.hpp"

#include <nlohmann/json.hpp>

#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

using Json = nlohmann::json;

constexpr double too_little = 0.5;

std::optional<double> over(const Json& ceilings, const char* product, const char* multiply_add) {
  const double top = ceilings.value(product, 0.0);
  const double bottom = ceilings.value(multiply_add, 0.0);
  if (top <= 0 || bottom <= 0) return std::nullopt;
  return top / bottom;
}

/// Of the card; results written before it was an object have its parts beside each other.
Json blas_of(const Json& machine) {
  const Json blas = machine.value("blas", Json());
  if (blas.is_object()) return blas;
  return {{"kind", blas.is_string() ? blas : Json("")},
          {"library", machine.value("blas_library", "")},
          {"core_type", machine.value("blas_core_type", "")}};
}

std::string advice(const Json& blas) {
  const std::string kind = blas.value("kind", "");
  if (kind == "reference") {
    return "It is the reference BLAS, which is not made to be fast: install OpenBLAS (Debian: "
           "apt-get install libopenblas0-openmp), and leave LD_LIBRARY_PATH without the folder of "
           "this one.";
  }
  if (kind == "openblas" && blas.value("chosen_by", "") == "user") {
    return "OPENBLAS_CORETYPE in the environment chose its core type: leave --keep-blas-core out, "
           "and the fastest is taken.";
  }
  if (kind == "openblas") {
    return "No core type of this OpenBLAS that the CPU could run was faster: install a newer "
           "OpenBLAS, or a PyTorch with its own (pip install torch, then ATTNBENCH_TORCH).";
  }
  return "Install OpenBLAS (Debian: apt-get install libopenblas0-openmp) or a PyTorch with its own "
         "BLAS.";
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(100 * share + 0.5)) + " %";
}

std::string rates(const Json& ceilings, const char* product, const char* multiply_add) {
  return human_count(ceilings.value(product, 0.0)) + "FLOP/s beside " +
         human_count(ceilings.value(multiply_add, 0.0)) + "FLOP/s of multiply-adds";
}

constexpr const char* product_all = "gemm_float32_flops_per_second";
constexpr const char* product_one = "gemm_float32_one_thread_flops_per_second";
constexpr const char* multiply_all = "fma_float32_flops_per_second";
constexpr const char* multiply_one = "fma_float32_one_thread_flops_per_second";

}  // namespace

ProductShares product_shares(const Json& ceilings) {
  return {over(ceilings, product_all, multiply_all), over(ceilings, product_one, multiply_one)};
}

std::string blas_warning(const Json& ceilings, const Json& machine) {
  const ProductShares shares = product_shares(ceilings);
  const bool slow = shares.one_thread.value_or(shares.all_threads.value_or(1)) < too_little;
  if (slow) {
    const double share = shares.one_thread ? *shares.one_thread : *shares.all_threads;
    return "Matrix products reach " + percent(share) + " of what the CPU can do: " +
           (shares.one_thread ? rates(ceilings, product_one, multiply_one) + ", on one thread"
                              : rates(ceilings, product_all, multiply_all)) +
           ". BLAS is " + blas_text(machine) + ". " + advice(blas_of(machine)) +
           " Until then every mechanism that multiplies matrices by it is shown too slow.";
  }
  if (shares.all_threads.value_or(1) < too_little) {
    return "Matrix products reach " + percent(*shares.all_threads) +
           " of what the CPU can do with all threads (" +
           rates(ceilings, product_all, multiply_all) +
           "), though enough with one: others held CPUs meanwhile, or this BLAS uses one thread "
           "only (" +
           blas_text(machine) + "; Debian's libopenblas0-openmp shares LibTorch's threads).";
  }
  return "";
}

std::string blas_text(const Json& machine) {
  const Json blas = blas_of(machine);
  std::string text = blas.value("kind", "");
  if (text.empty()) text = "unknown";
  const std::string core = blas.value("core_type", "");
  if (!core.empty()) text += " " + core;
  const std::string chosen_by = blas.value("chosen_by", "");
  if (!core.empty() && chosen_by == "user") text += " (chosen by OPENBLAS_CORETYPE)";
  if (!core.empty() && chosen_by == "library") text += " (its own choice)";
  if (!core.empty() && chosen_by == "attnbench") text += " (the fastest of those tried)";
  const std::string library = blas.value("library", "");
  if (!library.empty()) text += ", " + library;
  return text;
}

}  // namespace attnbench::result
