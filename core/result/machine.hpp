// The machine card: what cells were measured on. machine.cpp says what each member is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_schema.hpp"

namespace attnbench::result {

/// The library of matrix products.
struct Blas {
  std::string kind;
  std::string library;
  std::string core_type;
  std::string chosen_by;
  std::optional<std::map<std::string, double>> tried;
  Values further;
};

/// A device with memory of its own.
struct DeviceCard {
  std::string name;
  std::string compute_capability;
  std::string driver;
  std::string driver_cuda;
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> multiprocessors;
  Values further;
};

/// The cache sizes of one core, and of the last level of all cores together.
struct Caches {
  std::optional<std::int64_t> l1_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> l3_bytes;
};

/// How busy the machine was.
struct Load {
  std::optional<double> average_1_minute;
  std::optional<double> average_5_minutes;
  std::optional<double> average_15_minutes;
  Values further;  ///< who else ran, as harness/measure/neighbours.hpp has it
};

/// What the supervisor knows; the worker adds its own part (version, build, allocator, blas, …),
/// which is among `further` but for the BLAS.
struct MachineCard {
  std::string host;
  std::string os;
  std::string kernel;
  std::string architecture;
  std::string cpu_model;
  std::optional<std::int64_t> cores;
  std::optional<std::int64_t> threads;
  std::optional<std::vector<int>> allowed_cpus;
  std::optional<double> cpu_quota;
  std::optional<Caches> caches;
  std::optional<std::int64_t> memory_bytes;
  std::string governor;
  std::optional<double> clock_hz;
  std::optional<bool> virtualised;
  std::optional<std::vector<std::string>> isa;
  std::optional<Load> load;
  std::optional<std::map<std::string, std::string>> environment;
  std::optional<Blas> blas;
  std::map<std::string, DeviceCard> devices;
  std::optional<std::vector<std::string>> noise_sources;  ///< sentences; the key is "spoilers"
  std::optional<std::vector<std::string>> kept_from_worker;
  Values further;

  const std::vector<std::string>& noise() const;  ///< `noise_sources`, or none
};

// to_json writes a part as the schema has it; from_json throws SchemaError. Results from before the
// card had an object for the BLAS have its kind there, and its other parts beside it.
ATTNBENCH_DESCRIBED(Blas);
ATTNBENCH_DESCRIBED(DeviceCard);
ATTNBENCH_DESCRIBED(Caches);
ATTNBENCH_DESCRIBED(Load);
ATTNBENCH_DESCRIBED(MachineCard);

/// The BLAS `chosen`, with what the worker has loaded, which takes precedence. Only OpenBLAS has
/// core types and reads OPENBLAS_CORETYPE, so that a shell's setting does not describe another
/// library.
Blas blas_as_loaded(const Blas& chosen, const Json& loaded);

/// A float32 product's rate over that of multiply-adds from registers, of the CPU's `ceilings`:
/// with all threads, and with one, which no neighbour stalls. Nothing where it was not measured.
struct ProductShares {
  std::optional<double> all_threads;
  std::optional<double> one_thread;
};
ProductShares product_shares(const Values& ceilings);

/// A sentence with the library, its core type and what to install or set, where products reach less
/// than half of the multiply-adds. Empty elsewhere.
std::string blas_warning(const Values& ceilings, const MachineCard& machine);

/// The BLAS in words: "openblas SkylakeX (the fastest of those tried) /usr/lib/…/libblas.so.3".
std::string blas_text(const MachineCard& machine);

}  // namespace attnbench::result
