#include "harness/program/run/client/kept_worker.hpp"

#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;

/// Throws fs::filesystem_error where the file can neither be linked nor copied.
void keep(const fs::path& file, const fs::path& folder) {
  fs::create_directories(folder);
  std::error_code failed;
  fs::create_hard_link(file, folder / file.filename(), failed);
  if (failed) fs::copy_file(file, folder / file.filename());
}

/// Whether the file is a program of its own. A wheel's worker is a script, which looks for its
/// Python beside itself.
bool is_binary(const fs::path& file) {
  std::string begin(4, ' ');
  return std::ifstream(file).read(begin.data(), 4) && begin == "\177ELF";
}

}  // namespace

KeptWorker::KeptWorker(fs::path worker, fs::path folder)
    : program_(std::move(worker)), folder_(std::move(folder)) {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  const fs::path libraries = program_.parent_path().parent_path() / "lib";
  if (!is_binary(program_) || !fs::exists(libraries / "libattnbench_attention.so", ignored)) return;
  try {
    keep(program_, folder_ / "bin");
    for (const auto& entry : fs::directory_iterator(libraries)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libattnbench") && entry.path().extension() == ".so") {
        keep(entry.path(), folder_ / "lib");
      }
    }
    const fs::path kept = folder_ / "bin" / program_.filename();
    // On a disk that runs no programs it stays where it is.
    if (access(kept.c_str(), X_OK) == 0) program_ = kept;
  } catch (const fs::filesystem_error&) {
    fs::remove_all(folder_, ignored);  // the disk may be full: the run goes on without
  }
}

KeptWorker::~KeptWorker() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace attnbench::run
