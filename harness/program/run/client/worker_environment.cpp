#include "harness/program/run/client/worker_environment.hpp"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace attnbench::run {
namespace {

constexpr std::string_view search_path = "LD_LIBRARY_PATH=";

constexpr std::string_view tunables = "GLIBC_TUNABLES=";
constexpr std::string_view huge_pages = "glibc.malloc.hugetlb";

/// The tunables with huge pages asked for, unless they say themselves which pages they want.
std::string with_huge_pages(const std::string& theirs) {
  if (theirs.find(huge_pages) != std::string::npos) return std::string(tunables) + theirs;
  return std::string(tunables) + theirs + (theirs.empty() ? "" : ":") + std::string(huge_pages) +
         "=1";
}

constexpr std::string_view core_type = "OPENBLAS_CORETYPE=";
constexpr std::string_view wait_policy = "OMP_WAIT_POLICY=";
constexpr std::string_view spin_count = "GOMP_SPINCOUNT=";

/// The entry of that name; null where there is none.
const std::string* entry_of(const std::vector<std::string>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const std::string& entry) {
    return entry.starts_with(name);
  });
  return found == entries.end() ? nullptr : &*found;
}

bool says(const std::vector<std::string>& entries, std::string_view name) {
  return entry_of(entries, name) != nullptr;
}

/// Whether a folder of a search path holds what LibTorch asks for as its BLAS.
bool has_blas(const std::string& path) {
  std::istringstream folders(path);
  std::error_code none;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (std::filesystem::exists(std::filesystem::path(folder) / "libblas.so.3", none)) return true;
  }
  return false;
}

bool spoils(const std::string& entry) {
  return entry.starts_with(core_type) || entry.starts_with("OPENBLAS_L2_SIZE=");
}

}  // namespace

std::vector<std::string> worker_environment(const std::vector<std::string>& ours,
                                            const WorkerSurroundings& wanted) {
  std::vector<std::string> kept;
  std::string path;
  std::string tuned;
  for (const std::string& entry : ours) {
    if (entry.starts_with(search_path)) {
      path = entry.substr(search_path.size());
    } else if (entry.starts_with(tunables)) {
      tuned = entry.substr(tunables.size());
    } else if (wanted.keep_blas_core || !spoils(entry)) {
      kept.push_back(entry);
    }
  }
  const bool their_blas = wanted.keep_blas_core && has_blas(path);
  if (!wanted.shared_blas.empty() && !their_blas) {
    path = wanted.shared_blas.string() + (path.empty() ? "" : ":" + path);
  }
  const bool their_core = wanted.keep_blas_core && says(ours, core_type);
  if (!wanted.blas_core.empty() && !their_core) {
    kept.push_back(std::string(core_type) + wanted.blas_core);
  }
  if (wanted.waiting == Waiting::passive && !says(ours, wait_policy) && !says(ours, spin_count)) {
    kept.push_back(std::string(wait_policy) + "PASSIVE");
  }
  if (!path.empty()) kept.push_back(std::string(search_path) + path);
  kept.push_back(with_huge_pages(tuned));
  return kept;
}

Waiting waiting_of(const std::vector<std::string>& ours, Waiting wanted) {
  // The count is the stronger of the two for GNU's OpenMP.
  if (const std::string* count = entry_of(ours, spin_count)) {
    return count->substr(spin_count.size()) == "0" ? Waiting::passive : Waiting::active;
  }
  if (const std::string* policy = entry_of(ours, wait_policy)) {
    const std::string value = policy->substr(wait_policy.size());
    return strcasecmp(value.c_str(), "passive") == 0 ? Waiting::passive : Waiting::active;
  }
  return wanted;
}

Waiting waiting_of(Waiting wanted) {
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) ours.emplace_back(*entry);
  return waiting_of(ours, wanted);
}

std::filesystem::path shared_blas_folder(const std::filesystem::path& libraries) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(libraries, none)) {
    const auto folder = entry.path() / "openblas-openmp";
    if (std::filesystem::exists(folder / "libblas.so.3", none)) return folder;
  }
  return {};
}

}  // namespace attnbench::run
