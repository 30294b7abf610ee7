// BlasCore: which of OpenBLAS's sets of kernels ("core types") a worker uses. OpenBLAS chooses by a
// list of CPUs, and takes the oldest set for an unknown one: a sixth of the speed on a CPU with
// AVX-512. So the core types that the CPU can run are tried, each in a fresh process since OpenBLAS
// reads OPENBLAS_CORETYPE in a constructor, and the choice is cached.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

/// What one process found: its BLAS, and the rate of a float32 product on one thread, checked
/// against plain loops. The rate is per CPU time, so that a busy machine decides as a quiet one.
struct BlasTrial {
  std::string kind;       ///< openblas, mkl, reference, …; empty where it is not known
  std::string library;    ///< file
  std::string core_type;  ///< of OpenBLAS; empty of others
  double flops_per_second = 0;
};

/// Tries one core type (empty = the library's own choice) in a fresh process. Nothing where that
/// process crashed, was too slow or had a wrong product.
using TryBlas = std::function<std::optional<BlasTrial>(const std::string& core_type)>;

/// All that is known of a machine's BLAS.
struct BlasTrials {
  BlasTrial own;                         ///< the library's own choice
  std::map<std::string, double> others;  ///< FLOP/s by core type
  std::set<std::string> unknown;         ///< core types that the library does not have
  std::string appearance = {};           ///< of the library's file, where they are remembered
};

struct BlasChoice {
  std::string kind;
  std::string library;
  std::string core_type;                ///< core type that is used
  std::string set;                      ///< OPENBLAS_CORETYPE of workers; empty = none
  std::string chosen_by = "library";    ///< library, attnbench or user
  std::map<std::string, double> tried;  ///< FLOP/s by core type
};

/// The machine card's `blas`, without `set`.
ATTNBENCH_JSON(BlasChoice);
ATTNBENCH_JSON(BlasTrial);
ATTNBENCH_JSON(BlasTrials);
/// Reads what to_json wrote; nothing where it is something else.
std::optional<BlasChoice> blas_choice_from(const Json& value);

/// The core types that a CPU of these /proc/cpuinfo flags can run, the most promising first.
std::vector<std::string> core_types_for(const std::string& vendor, const std::string& flags);

/// The library's own choice, unless another is more than a tenth faster. Of those that are about as
/// fast as the fastest, the first in `order`: the same in every run.
BlasChoice choose(const BlasTrials& trials, const std::vector<std::string>& order);

/// Tries all that `known` does not say yet, so that a second run has nothing left to try and
/// chooses as the first did. Failures are in nothing that it returns. Nothing where not even the
/// library's own choice works.
std::optional<BlasTrials> try_all(std::optional<BlasTrials> known,
                                  const std::vector<std::string>& core_types,
                                  const TryBlas& try_blas);

/// The trials that a file remembers; nothing where it is damaged, or of a library that has changed
/// since.
std::optional<BlasTrials> remembered_trials(const std::filesystem::path& file);
void remember_trials(const std::filesystem::path& file, BlasTrials trials);

/// While it exists no other process has one of the same file, for which it waits: runs that begin
/// together would each try, come to different choices, and have other bits than those after them.
/// None is held where the disk has no locks, or after a minute of waiting.
class TrialsLock {
 public:
  explicit TrialsLock(const std::filesystem::path& file);
  ~TrialsLock();
  TrialsLock(const TrialsLock&) = delete;
  TrialsLock& operator=(const TrialsLock&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

enum class BlasTrying { allowed, only_remembered };

/// The choice for the workers of this program on this machine. With `keep` an OPENBLAS_CORETYPE of
/// the environment is what is used. Tries at a machine's first use, some seconds, if that is
/// allowed. `say` hears before that it takes a moment, and afterwards of a choice that is not the
/// library's.
BlasChoice blas_choice(bool keep, BlasTrying trying,
                       const std::function<void(const std::string& sentence)>& say = {});

}  // namespace attnbench::run
