// ChildContext: what a child gives to the work of one cell, and what it collects from it.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/process_rank.hpp"
#include "core/result/record.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/interference.hpp"
#include "harness/worker/device.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using tasks::Json;

/// The part of a run request that the work sees.
struct WorkSettings {
  int round = 0;
  std::uint64_t seed = 0;
  std::string device = "cpu";
  measure::SamplingRule rule;
  std::filesystem::path checkpoint;
  std::string binary;             ///< fingerprint of worker, library and plugins
  std::int64_t device_bytes = 0;  ///< for tensors, on a device with memory of its own
  ProcessRank process_rank;
  bool pinned = true;  ///< to as many CPUs as threads; not where other children are at work beside
};

class ChildContext final : public tasks::Context {
 public:
  using Progress = std::function<void(double done, double total, std::string_view what)>;

  /// The number of threads is ATen's; construct after setting it and before the first operation,
  /// because this pins the process to as many CPUs, unless it is not to be pinned. The device is
  /// the one that was set up (see setup_device). `progress` is called at most ten times a
  /// second. `registry` must outlive the context.
  ChildContext(WorkSettings settings, const Registry& registry, Progress progress,
               std::function<bool()> cancelled = {});
  ~ChildContext() override;

  double measure(const std::string& what, const tasks::Body& body) override;
  tasks::PairedTimes compare(const tasks::Body& first, const tasks::Body& second,
                             double patience) override;
  tasks::MemoryMeter& memory() override;
  void progress(double done, double total, std::string_view what) override;
  bool cancelled() const override;
  std::filesystem::path checkpoint_folder() const override { return settings_.checkpoint; }
  std::string binary() const override { return settings_.binary; }
  int round() const override { return settings_.round; }
  std::uint64_t seed() const override { return settings_.seed; }
  const Registry& registry() const override { return registry_; }
  ProcessRank process_rank() const override { return settings_.process_rank; }

  /// Runs a part of the round and notes what it took, without what `measure` notes meanwhile.
  template <class Work>
  auto part(const std::string& name, const Work& work) {
    const PartClock clock(*this, name);
    return work();
  }

  /// What the context saw, with threads and cpus. `lost_share` is of all its life, on the CPU. The
  /// caller adds the check, and the sections that Work::run returns (memory, metrics, chosen).
  result::Measured measured();

 private:
  class PartClock {
   public:
    PartClock(ChildContext& context, std::string name);
    ~PartClock();
    PartClock(const PartClock&) = delete;
    PartClock& operator=(const PartClock&) = delete;

   private:
    ChildContext& context_;
    const std::string name_;
    const double begin_, noted_before_;
  };

  double noted_seconds() const;
  double calibrated();
  /// The samples that count; `timing` gets all of them, and the interference with each.
  std::vector<double> counted_samples(const tasks::Body& body, result::TimingRound& timing);
  /// The samples, on a CUDA device of a recorded graph where the body is short and can be recorded
  /// (see measure/pairs.hpp); `timing` says so.
  measure::Samples sampled(const tasks::Body& body, result::TimingRound& timing);

  WorkSettings settings_;
  const Registry& registry_;
  Progress progress_;
  std::function<bool()> cancelled_;
  const measure::Device& device_;
  std::unique_ptr<measure::Stopwatch> stopwatch_;
  std::unique_ptr<DeviceMeter> meter_;  ///< where the device has memory of its own
  std::vector<int> cpus_;
  std::vector<int> cores_;  ///< see measure::shared_cores
  measure::ThreadWatch life_;
  double begin_ = 0;
  std::vector<double> calibrations_;
  std::map<std::string, result::TimingRound> timing_;
  std::map<std::string, double> parts_;  ///< seconds by the name of the part
  double last_progress_ = 0;
};

}  // namespace attnbench::worker
