// Conditions: what a run's numbers hold under: the machine, its devices, its BLAS, its memory and
// who else uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/result/machine.hpp"
#include "harness/program/run/client/worker_environment.hpp"
#include "harness/program/run/folder/resume.hpp"
#include "harness/program/run/plan/blas_core.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/run/supervise/quiet.hpp"
#include "harness/program/run/supervise/settings.hpp"

namespace attnbench::run {

class Conditions {
 public:
  /// `settings.threads` must be set.
  explicit Conditions(const RunSettings& settings);

  const result::MachineCard& card() const { return card_; }
  const Identity& identity() const { return identity_; }
  const BlasChoice& blas() const { return blas_; }
  /// Bytes that tensors may take beside the limit of a device.
  std::int64_t memory_bytes() const { return memory_bytes_; }
  /// Bytes that tensors of a cell on `device` may take: the limit that the user set, else a share
  /// of the device's own memory, or of the machine's.
  std::int64_t memory_limit(const std::string& device) const;

  /// Adds a device that cells name: its card becomes part of the identity. Throws where the device
  /// cannot be used.
  void add_device(const std::string& device);
  /// Chooses the BLAS kernels, where a cell runs on the CPU. A run that is resumed keeps its
  /// choice, so that its trainings end with the same bits. `say` gets a message.
  void choose_blas(const RunSettings& settings, const std::vector<Planned>& planned,
                   const std::function<void(const std::string& sentence)>& say);

  /// Waits until there is room for the run's threads, as wait_for_quiet does.
  void await_quiet(const RunSettings& settings, const QuietSurroundings& surroundings);
  double waited_for_quiet_seconds() const { return waited_for_quiet_seconds_; }

 private:
  result::MachineCard card_;
  Identity identity_;
  std::int64_t memory_bytes_ = 0;
  bool limited_by_user_ = false;
  BlasChoice blas_;
  double waited_for_quiet_seconds_ = 0;
};

/// How the threads of a cell's worker should wait. Active where the cell is timed, so that its time
/// can be compared. A training's wait passively where others leave too few CPUs for them: looks at
/// them for a moment.
Waiting waiting_for(const Planned& planned, int threads);

}  // namespace attnbench::run
