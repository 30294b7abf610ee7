// The environment a worker is started in: ours, less what is known to spoil its measurements, and
// with what is known to steady them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::run {

/// `ours` as "NAME=value" entries; the result too.
/// - OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE go, unless `keep_blas_core`: they can halve the speed,
///   and OpenBLAS reads them in a constructor, so that only an environment without them helps.
/// - An OpenBLAS that shares LibTorch's OpenMP threads is found before one with threads of its own:
///   two pools that both spin on the same cores made softmax forward and backward at T=512 take
///   36 ms in place of 8 (2 cores).
/// - glibc is asked for huge pages, unless its tunables say which: composite forms at T=2048 were
///   7 to 14 % faster (one run each, 2 cores).
std::vector<std::string> worker_environment(const std::vector<std::string>& ours,
                                            bool keep_blas_core,
                                            const std::filesystem::path& shared_blas);

/// The folder of Debian's OpenBLAS for OpenMP, or empty where it is not installed.
std::filesystem::path shared_blas_folder(const std::filesystem::path& libraries = "/usr/lib");

}  // namespace attnbench::run
