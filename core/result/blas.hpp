// BLAS: what a machine's matrix products reach of its multiply-adds, and what to do where that is
// little.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace attnbench::result {

/// A float32 product's rate over that of multiply-adds from registers, of the CPU's `ceilings`:
/// with all threads, and with one, which no neighbour stalls. Nothing where it was not measured.
struct ProductShares {
  std::optional<double> all_threads;
  std::optional<double> one_thread;
};
ProductShares product_shares(const nlohmann::json& ceilings);

/// Where products reach less than half of the multiply-adds: a sentence with the library, its core
/// type and what to install or set. Empty elsewhere. `machine` is the card with its `blas`.
std::string blas_warning(const nlohmann::json& ceilings, const nlohmann::json& machine);

/// "openblas SkylakeX (the fastest of those tried) /usr/lib/…/libblas.so.3".
std::string blas_text(const nlohmann::json& machine);

}  // namespace attnbench::result
