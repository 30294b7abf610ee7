#include "harness/measure/roofline.hpp"

#include <algorithm>
#include <cstdio>

namespace attnbench::measure {
namespace {

/// What impossible() leaves to the machine: see its contract.
constexpr double least_floor_seconds = 5e-6;
constexpr double calibrations_agree = 0.1;
constexpr double shared_headroom = 1.5;
constexpr double matrix_units = 16;
constexpr double narrow_exponentials = 2;

/// The ceiling of that name, or 0 where it is not known.
double ceiling(const Values& ceilings, const std::string& name) {
  return number_of(ceilings, name).value_or(0);
}

/// The greatest rate of multiplying and adding that was seen in this dtype. A matrix product may be
/// faster than the register loop where it uses other units, and slower where it is small or badly
/// tuned; the greater of the two is what the machine can do.
double compute_rate(const Values& ceilings, const std::string& dtype) {
  return std::max(ceiling(ceilings, "fma_" + dtype + "_flops_per_second"),
                  ceiling(ceilings, "gemm_" + dtype + "_flops_per_second"));
}

double memory_rate(const Values& ceilings, double bytes) {
  for (const std::string level : {"l1", "l2", "l3"}) {
    const double capacity = ceiling(ceilings, "capacity_" + level + "_bytes");
    const double rate = ceiling(ceilings, "bandwidth_" + level + "_bytes_per_second");
    if (rate > 0 && bytes <= capacity) return rate;
  }
  return ceiling(ceilings, "bandwidth_dram_bytes_per_second");
}

/// Whether exponentials are computed beside products, in units of their own.
bool own_exponential_units(const Values& ceilings) {
  const Json* const units = find_value(ceilings, "exponential_units");
  return units != nullptr && *units == "own";
}

/// Seconds of `amount` at `rate`; nothing where there is something to do and no rate.
std::optional<double> seconds(double amount, double rate) {
  if (amount <= 0) return 0.0;
  if (rate <= 0) return std::nullopt;
  return amount / rate;
}

/// Each cache level serves as many bytes as it holds, and DRAM the rest.
double least_memory_seconds(const Values& ceilings, double bytes) {
  double total = 0;
  double served = 0;
  for (const std::string level : {"l1", "l2", "l3"}) {
    const double capacity = ceiling(ceilings, "capacity_" + level + "_bytes");
    double rate = ceiling(ceilings, "bandwidth_" + level + "_bytes_per_second");
    if (capacity <= served || rate <= 0) continue;
    if (level == "l3") rate *= shared_headroom;
    const double here = std::min(bytes, capacity) - served;
    total += std::max(0.0, here) / rate;
    served = capacity;
    if (bytes <= served) return total;
  }
  const double rate = shared_headroom * ceiling(ceilings, "bandwidth_dram_bytes_per_second");
  return rate > 0 ? total + (bytes - served) / rate : 0;
}

bool is_narrow(const std::string& dtype) { return dtype == "bfloat16" || dtype == "float16"; }

double max_compute_rate(const Values& ceilings, const std::string& dtype) {
  double greatest = 0;
  for (const char* each : {"float32", "float64", "bfloat16", "float16"}) {
    greatest = std::max(greatest, compute_rate(ceilings, each));
  }
  if (own_exponential_units(ceilings)) return greatest;
  const double multiply_adds = ceiling(ceilings, "fma_float32_flops_per_second");
  if (is_narrow(dtype)) return std::max(greatest, matrix_units * multiply_adds);
  return std::max(
      {multiply_adds, compute_rate(ceilings, "float32"), compute_rate(ceilings, dtype)});
}

double least_seconds(const BodyWork& work, const Values& ceilings) {
  const double compute = seconds(work.flops, max_compute_rate(ceilings, work.dtype)).value_or(0);
  const double digits = is_narrow(work.dtype) ? narrow_exponentials : 1;
  const double exponentials =
      seconds(work.exponentials, digits * ceiling(ceilings, "exp_float32_per_second")).value_or(0);
  const double busy =
      own_exponential_units(ceilings) ? std::max(compute, exponentials) : compute + exponentials;
  return std::max(busy, least_memory_seconds(ceilings, work.bytes));
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", value);
  return text;
}

}  // namespace

std::optional<std::string> impossible(const BodyWork& work, const Values& ceilings,
                                      const Timed& timed, double headroom) {
  if (!(timed.seconds > 0)) return std::nullopt;
  const double then = ceiling(ceilings, "calibration_seconds");
  if (then <= 0 || timed.calibration_seconds <= 0) return std::nullopt;
  if (then > (1 + calibrations_agree) * timed.calibration_seconds) return std::nullopt;
  const double least = least_seconds(work, ceilings) / headroom;
  if (least < least_floor_seconds || least <= max_share * timed.seconds) return std::nullopt;
  return "it took " + short_number(1e6 * timed.seconds) + " us, where its work takes at least " +
         short_number(1e6 * least) +
         " us on this machine: it does not do all of it in each call, or claims more work than "
         "there is (Cost)";
}

std::optional<FloorTerms> roofline(const BodyWork& work, const Values& ceilings) {
  const auto compute = seconds(work.flops, compute_rate(ceilings, work.dtype));
  const auto memory = seconds(work.bytes, memory_rate(ceilings, work.bytes));
  const auto exponentials = seconds(work.exponentials, ceiling(ceilings, "exp_float32_per_second"));
  if (!compute || !memory || !exponentials) return std::nullopt;
  FloorTerms result;
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
