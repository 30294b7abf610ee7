// attnbench --version.

#include "core/process/fingerprint.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/run/plan/blas_core.hpp"
#include "harness/program/run/plan/planning.hpp"

namespace attnbench::commands {
namespace {

std::string commit_text() {
  const result::Provenance known = process::provenance("");
  if (known.commit.empty()) return "not known: the program is in no checkout of its sources";
  return known.commit + (known.dirty.value_or(false) ? ", with uncommitted changes" : "");
}

/// From the catalogue's cache, or from a worker that starts for it.
std::string torch_text() {
  try {
    const std::string torch = run::load_catalogue({}).stamp.torch;
    return torch.empty() ? "not known" : torch;
  } catch (const std::exception& error) {
    return std::string("not known: ") + error.what();
  }
}

/// As it was found at this machine's first run; a trial takes seconds.
std::string blas_text() {
  try {
    const run::BlasChoice blas = run::blas_choice(false, run::BlasTrying::only_remembered);
    if (blas.library.empty()) return "not known before the first run or `attnbench doctor`";
    return (blas.kind.empty() ? "" : blas.kind + " ") + blas.library +
           (blas.core_type.empty() ? "" : ", core type " + blas.core_type);
  } catch (const std::exception& error) {
    return std::string("not known: ") + error.what();
  }
}

}  // namespace

std::string version_text() {
  return "attnbench " + std::string(ATTNBENCH_VERSION_TEXT) + "\ncommit    " + commit_text() +
         "\nLibTorch  " + torch_text() + "\nBLAS      " + blas_text();
}

}  // namespace attnbench::commands
