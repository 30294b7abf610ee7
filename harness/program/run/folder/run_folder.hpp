// The folder of a run: where its files are, and how it is found again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace attnbench::run {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path journal() const { return path / "journal.jsonl"; }
  std::filesystem::path result() const { return path / "result.json"; }
  std::filesystem::path worker_log() const { return path / "logs" / "worker.log"; }
  std::filesystem::path kept_worker(const std::string& side) const {
    return path / (".attnbench-worker-" + side);
  }
  std::filesystem::path cell_log(const std::string& id) const {
    return path / "logs" / (id + ".log");
  }
  std::filesystem::path checkpoints(const std::string& id) const {
    return path / "checkpoints" / id;
  }
};

/// A folder for a new run: `out` if it is not empty, else runs/NAME-YYYYMMDD-HHMMSS, which then
/// gets the symlink runs/NAME-latest. Throws UsageFailure if `out` holds a run already,
/// EnvironmentFailure if the folder cannot be made.
RunFolder make_run_folder(const std::string& name, const std::filesystem::path& out);

/// The folder of an existing run. Throws UsageFailure if it has no journal.
RunFolder find_run_folder(const std::filesystem::path& path);

/// The folder of a run or of its result.json.
RunFolder folder_holding(const std::filesystem::path& file_or_folder);

/// Removes the kept workers that a run left when it was killed; none of a run that goes on.
void remove_left_workers(const RunFolder& folder);

}  // namespace attnbench::run
