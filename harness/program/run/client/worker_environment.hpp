// The environment of a worker: this program's, without variables that are known to disturb
// measurements, and with some that steady them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::run {

/// How threads of one call wait for each other at its end.
enum class Waiting {
  active,  ///< as OpenMP does unless told: spin for a millisecond, then sleep
  passive  ///< sleep at once
};
constexpr const char* to_string(Waiting waiting) {
  return waiting == Waiting::passive ? "passive" : "active";
}

struct WorkerSurroundings {
  bool keep_blas_core = false;
  std::string blas_core;  ///< OPENBLAS_CORETYPE, see blas_core.hpp; empty = the library's choice
  std::filesystem::path shared_blas;
  Waiting waiting = Waiting::active;
};

/// The environment of a worker started from the environment `ours`, both as "NAME=value" entries.
/// - OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are removed, unless `keep_blas_core`: they can halve
///   the speed, and OpenBLAS reads them in a constructor, so that they cannot be undone later.
///   `blas_core` replaces them.
/// - An OpenBLAS that shares LibTorch's OpenMP threads comes before one with threads of its own:
///   two pools that spin on the same cores made softmax forward and backward at T=512 take 36 ms
///   instead of 8 (2 cores). With `keep_blas_core` a BLAS in LD_LIBRARY_PATH comes first.
/// - Where runs share cores threads wait passively: beside two busy processes a training of 1 s on
///   two threads took 30 to 60 s with active and 2 s with passive waiting (2 cores).
///   OMP_WAIT_POLICY and GOMP_SPINCOUNT of `ours` take precedence.
/// - glibc uses huge pages, unless its tunables choose: composite forms at T=2048 were 7 to 14 %
///   faster (one run each, 2 cores).
std::vector<std::string> worker_environment(const std::vector<std::string>& ours,
                                            const WorkerSurroundings& wanted);

/// How the threads of a worker wait that is asked for `wanted` in the environment `ours`.
Waiting waiting_of(const std::vector<std::string>& ours, Waiting wanted);
/// How the threads of a worker wait that is asked for `wanted` in this program's environment.
Waiting waiting_of(Waiting wanted);

/// The folder of Debian's OpenBLAS for OpenMP, or empty where it is not installed.
std::filesystem::path shared_blas_folder(const std::filesystem::path& libraries = "/usr/lib");

}  // namespace attnbench::run
