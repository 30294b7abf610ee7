#include "harness/measure/roofline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attnbench::measure {
namespace {

/// The ceiling of that name, or 0 where it is not known.
double ceiling(const Json& ceilings, const std::string& name) {
  const auto found = ceilings.find(name);
  return found != ceilings.end() && found->is_number() ? found->get<double>() : 0;
}

/// The greatest rate of multiplying and adding that was seen in this dtype. A matrix product may be
/// faster than the register loop where it uses other units, and slower where it is small or badly
/// tuned; the greater of the two is what the machine can do.
double compute_rate(const Json& ceilings, const std::string& dtype) {
  return std::max(ceiling(ceilings, "fma_" + dtype + "_flops_per_second"),
                  ceiling(ceilings, "gemm_" + dtype + "_flops_per_second"));
}

double memory_rate(const Json& ceilings, double bytes) {
  for (const std::string level : {"l1", "l2", "l3"}) {
    const double capacity = ceiling(ceilings, "capacity_" + level + "_bytes");
    const double rate = ceiling(ceilings, "bandwidth_" + level + "_bytes_per_second");
    if (rate > 0 && bytes <= capacity) return rate;
  }
  return ceiling(ceilings, "bandwidth_dram_bytes_per_second");
}

/// Whether exponentials are computed beside products, in units of their own.
bool own_exponential_units(const Json& ceilings) {
  const auto found = ceilings.find("exponential_units");
  return found != ceilings.end() && *found == "own";
}

/// Seconds of `amount` at `rate`; nothing where there is something to do and no rate.
std::optional<double> seconds(double amount, double rate) {
  if (amount <= 0) return 0.0;
  if (rate <= 0) return std::nullopt;
  return amount / rate;
}

}  // namespace

std::optional<Roofline> roofline(const Work& work, const Json& ceilings) {
  if (!ceilings.is_object()) return std::nullopt;
  const auto compute = seconds(work.flops, compute_rate(ceilings, work.dtype));
  const auto memory = seconds(work.bytes, memory_rate(ceilings, work.bytes));
  const auto exponentials = seconds(work.exponentials, ceiling(ceilings, "exp_float32_per_second"));
  if (!compute || !memory || !exponentials) return std::nullopt;
  Roofline result;
  result.compute_seconds = *compute;
  result.memory_seconds = *memory;
  result.exponential_seconds = *exponentials;
  const double busy = own_exponential_units(ceilings) ? std::max(*compute, *exponentials)
                                                      : *compute + *exponentials;
  result.floor_seconds = std::max(busy, *memory);
  if (result.floor_seconds <= 0) return std::nullopt;
  if (*memory >= busy) {
    result.bound = "memory";
  } else {
    result.bound = *compute >= *exponentials ? "compute" : "exponentials";
  }
  return result;
}

}  // namespace attnbench::measure
