// KeptWorker: a worker that a rebuild does not replace while a run needs it.
#pragma once

#include <filesystem>

namespace attnbench::run {

/// Further names of a worker and its libraries, as bin/ and lib/ below `folder`. A linker removes
/// the file that it replaces, so these names keep what the run began with.
class KeptWorker {
 public:
  /// Replaces what an interrupted run left in `folder`. Copies where files cannot be linked, and
  /// keeps nothing where neither succeeds, for a worker that is a script, as in a wheel, and where
  /// no libraries are in ../lib.
  KeptWorker(std::filesystem::path worker, std::filesystem::path folder);
  /// Removes the names.
  ~KeptWorker();
  KeptWorker(const KeptWorker&) = delete;
  KeptWorker& operator=(const KeptWorker&) = delete;

  /// The kept worker, or the one that was given where nothing was kept.
  const std::filesystem::path& program() const { return program_; }

 private:
  std::filesystem::path program_;
  std::filesystem::path folder_;
};

}  // namespace attnbench::run
