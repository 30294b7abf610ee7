// The interface of tasks: what a mechanism is used for.
//
// A task describes itself, forecasts whether a cell is supported and what it costs, and makes its
// `Work`. The worker runs the work in a process of its own and gives it a `Context`: clock, memory
// meter, progress, cancellation. Tasks do not depend on the harness.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/registry.hpp"
#include "core/process_rank.hpp"

namespace attnbench::tasks {

using Json = nlohmann::json;

/// One point of a suite, every value resolved.
struct ResolvedCell {
  std::string id;
  std::string mechanism;  ///< the entry's name, aliases already resolved
  std::string implementation = "auto";
  std::map<std::string, OptionValue> said;  ///< options of the mechanism that the suite sets
  Options settings;                         ///< of the task, defaults filled in
  std::string device = "cpu";
};

/// Bytes in use through the counting allocator; not those of buffers inside libraries (OpenBLAS).
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;
  virtual std::int64_t live_bytes() const = 0;
  virtual std::int64_t peak_bytes() const = 0;  ///< since the last reset
  virtual void reset_peak() = 0;
  /// An allocation beyond it throws std::bad_alloc; 0 = no limit.
  virtual std::int64_t limit_bytes() const = 0;
};

/// What is timed, and what precedes each call, unclocked.
struct Body {
  std::function<void()> call;
  std::function<void()> before = {};  ///< may be empty
  /// Whether a device may record one call and replay it: `before` fills the memory that `call`
  /// reads, always at the same addresses, and no host value changes what `call` does.
  bool recordable = false;
  /// A function that may be empty: runs first, unclocked, and writes new numbers into the inputs of
  /// `call` and `before`, always at the same addresses, so that a recording reads them, too.
  std::function<void()> refresh = {};
};

/// Two bodies timed in turns, so that disturbances of the machine affect both.
struct PairedTimes {
  double first_seconds = 0;  ///< medians
  double second_seconds = 0;
  double ratio = 1;  ///< second over first: the median over pairs
  /// The interval of the ratio, at 99 %; [0, infinity] where the pairs were too few for one.
  double ratio_low = 0;
  double ratio_high = std::numeric_limits<double>::infinity();
  std::size_t pairs = 0;
  /// "decided", "equal", "time", "samples" or "disturbed": other processes used the CPU during too
  /// many pairs, and the ratio has no interval.
  std::string stop;
};

/// What the worker provides to work while it runs.
class Context {
 public:
  virtual ~Context() = default;
  /// Warms up, then calls `body` until the stopping rule is met; writes the samples to the round's
  /// record under `timing[what]`. Returns their median, in seconds.
  virtual double measure(const std::string& what, const Body& body) = 0;
  /// Warms both up, then times them in turns until the interval of their ratio excludes 1 or is
  /// narrow around it, or the sampling rule's limits are reached: its samples, or `patience` (0 to
  /// 1) times its seconds. Writes nothing to the record.
  virtual PairedTimes compare(const Body& first, const Body& second, double patience) = 0;
  virtual MemoryMeter& memory() = 0;
  /// Reports `done` of `total`, in units of `what`; shown to the user, at most ten times a second.
  virtual void progress(double done, double total, std::string_view what) = 0;
  virtual bool cancelled() const = 0;
  /// The folder of checkpoints, for work that can resume; kept with the run.
  virtual std::filesystem::path checkpoint_folder() const = 0;
  /// Fingerprint of the worker, its library and the plugins. Checkpoints of another binary are not
  /// resumed.
  virtual std::string binary() const { return {}; }
  /// Rounds are separate processes; the first one also checks and meters memory.
  virtual int round() const = 0;
  virtual std::uint64_t seed() const = 0;
  virtual const Registry& registry() const = 0;
  virtual ProcessRank process_rank() const { return {}; }
};

/// The work of one cell. Called in the order prepare, check, run; each at most once.
class Work {
 public:
  virtual ~Work() = default;
  virtual void prepare(Context& context) = 0;
  /// Correctness at the size of the cell, in round 0: {"verdict": "ok" | "wrong", "reason", …}.
  virtual Json check(Context& context) = 0;
  /// Measures through the context; returns sections for the record besides timing, such as
  /// {"memory": {…}, "metrics": {…}}, units in the key names. In every round "timed_check", of the
  /// form of `check`, may hold a check of the timed calls; it becomes the check's part "timed", and
  /// where it is wrong, so is the cell.
  virtual Json run(Context& context) = 0;
};

struct TaskForecast;

/// One mechanism of a stack, by itself.
struct StackedMechanism {
  ResolvedCell cell;
  std::shared_ptr<const TaskForecast> forecast;
};

/// What is known of a cell before it runs.
struct TaskForecast {
  Support support;
  Cost cost;                   ///< of one timed body, whole problem
  double peak_bytes = 0;       ///< predicted, all tensors
  std::string implementation;  ///< chosen
  std::string choice_reason;
  Growth growth;    ///< claimed by that implementation
  Options options;  ///< of the mechanism, resolved and derived
  Problem problem;
  /// Whether it is a training: done in one round, whatever the number of rounds; `cost` is that of
  /// all steps.
  bool once = false;
  /// Calls that the longest timed body makes one after another, such as the steps of a generation,
  /// and what they cost together where they are several.
  std::int64_t calls = 1;
  Cost calls_cost;
  std::optional<Cost> prefill_cost;  ///< of reading a context, where that is timed by itself
  /// Of what each round does before its clock starts: reading the past of a call.
  std::optional<Cost> unclocked_cost = {};
  /// Where the blocks of a model hold several mechanisms (tasks/stack.hpp): that of each, a pattern
  /// that repeats. Empty where all hold the cell's.
  std::vector<StackedMechanism> stack = {};
};

/// The training data of a task. As with Task, all functions are defined in this header, which is
/// all that a plugin has.
class TaskData {
 public:
  virtual ~TaskData() = default;
  /// The settings that determine the data; at least one.
  virtual std::vector<Option> settings() const = 0;
  /// Writes the data into the existing `folder` as JSON Lines, one file for each split. Returns
  /// {files: [{file, examples}…], …}. Throws UsageError, and Error where a file cannot be written.
  virtual Json write(const Options& settings, std::uint64_t seed,
                     const std::filesystem::path& folder) const = 0;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string name() const = 0;
  virtual std::string title() const = 0;
  virtual std::vector<Option> settings() const = 0;
  /// Default figures by name, as reports know them: time, memory, slopes, roofline, state.
  virtual std::vector<std::string> figures() const = 0;
  /// Other figures that a suite may name.
  virtual std::vector<std::string> further_figures() const { return {}; }
  /// The setting that is the x axis where several vary.
  virtual std::string axis() const = 0;
  /// Known departures from published code, for users.
  virtual std::vector<Departure> differs_from() const { return {}; }
  virtual TaskForecast forecast(const Registry& registry, const ResolvedCell& cell) const = 0;
  /// The forecast of a cell whose data are not prepared, by the sizes that its settings say or that
  /// the published data have: an estimate alone, since the cell cannot run. Nothing where they do
  /// not say enough.
  virtual std::optional<TaskForecast> forecast_without_data(const Registry& registry,
                                                            const ResolvedCell& cell) const {
    static_cast<void>(registry);
    static_cast<void>(cell);
    return std::nullopt;
  }
  virtual std::unique_ptr<Work> make(const Registry& registry, const ResolvedCell& cell) const = 0;
  /// The training data; null for tasks without. Lives as long as the task.
  virtual const TaskData* data() const { return nullptr; }
};

/// Tasks by name: the built-in ones, from a table generated from the folders of tasks/, and those
/// of plugins. Copies share the tasks.
class TaskTable {
 public:
  static TaskTable with_builtins();

  /// Throws NameTaken, and PluginError where the name is malformed, the default of a setting has
  /// another type, or no figure is named.
  void add(std::shared_ptr<const Task> task);
  /// Throws UsageError naming the closest one.
  const Task& find(const std::string& name) const;
  const std::vector<std::shared_ptr<const Task>>& all() const { return tasks_; }  ///< by name

 private:
  std::vector<std::shared_ptr<const Task>> tasks_;
};

/// The built-in ones.
const TaskTable& builtin_tasks();
/// The task of that name; throws UsageError naming the closest one.
const Task& find_task(const std::string& name);

}  // namespace attnbench::tasks
