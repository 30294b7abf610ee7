#include "harness/run/worker_environment.hpp"

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

bool spoils(const std::string& entry) {
  return entry.starts_with("OPENBLAS_CORETYPE=") || entry.starts_with("OPENBLAS_L2_SIZE=");
}

}  // namespace

std::vector<std::string> worker_environment(const std::vector<std::string>& ours,
                                            bool keep_blas_core,
                                            const std::filesystem::path& shared_blas) {
  std::vector<std::string> kept;
  std::string path;
  std::string tuned;
  for (const std::string& entry : ours) {
    if (entry.starts_with(search_path)) {
      path = entry.substr(search_path.size());
    } else if (entry.starts_with(tunables)) {
      tuned = entry.substr(tunables.size());
    } else if (keep_blas_core || !spoils(entry)) {
      kept.push_back(entry);
    }
  }
  if (!shared_blas.empty()) path = shared_blas.string() + (path.empty() ? "" : ":" + path);
  if (!path.empty()) kept.push_back(std::string(search_path) + path);
  kept.push_back(with_huge_pages(tuned));
  return kept;
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
