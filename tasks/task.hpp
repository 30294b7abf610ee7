// The one interface of tasks: what a mechanism is put to.
//
// A task describes itself, answers for one cell whether it can be done and what it will cost, and
// hands over `Work`. The worker runs the work in a process of its own and gives it a `Context`:
// clock, memory meter, progress, cancellation. Tasks know nothing of the harness.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attention/registry.hpp"

namespace attnbench::tasks {

using Json = nlohmann::json;

/// One point of a suite, every value resolved. What the suite's expansion sends.
struct Cell {
  std::string id;
  std::string mechanism;  ///< the entry's name, aliases already resolved
  std::string implementation = "auto";
  std::map<std::string, OptionValue> said;  ///< options of the mechanism that were said
  Options settings;                         ///< of the task, defaults filled in
  std::string device = "cpu";
};

/// Bytes in use through the counting allocator. Library-internal buffers (OpenBLAS's own) are not
/// seen.
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;
  virtual std::int64_t live_bytes() const = 0;
  virtual std::int64_t peak_bytes() const = 0;  ///< since the last reset
  virtual void reset_peak() = 0;
  /// Beyond which an allocation throws std::bad_alloc; 0 = no limit.
  virtual std::int64_t limit_bytes() const = 0;
};

/// What is timed, and what comes before each call of it, unclocked.
struct Body {
  std::function<void()> call;
  std::function<void()> before = {};  ///< may be empty
  /// Many short calls of which a device may record one and play it again: `before` fills whatever
  /// memory `call` reads, always in the same place, and nothing of the host decides what is done.
  bool recordable = false;
  /// May be empty: comes first of all, unclocked, and puts other numbers where `call` and `before`
  /// read them, always in the same place, so that a recording finds them, too.
  std::function<void()> refresh = {};
};

/// Two bodies timed in turns, so that what slows the machine down slows both.
struct Comparison {
  double first_seconds = 0;  ///< medians
  double second_seconds = 0;
  double ratio = 1;  ///< second over first: the median over pairs
  /// Of the ratio, at 99 %; [0, infinity] where the pairs were too few for one.
  double ratio_low = 0;
  double ratio_high = std::numeric_limits<double>::infinity();
  std::size_t pairs = 0;
  /// "decided", "equal", "time", "samples" or "disturbed": other processes took the CPU from too
  /// many pairs, the ratio has no interval and decides nothing.
  std::string stop;
};

/// The place of this process among those that train together (torchrun's RANK, WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT). Alone, it is the first of one.
struct Seat {
  int rank = 0;
  int size = 1;
  std::string address;  ///< where the first one listens
  int port = 0;
};

/// What the worker gives to work while it runs.
class Context {
 public:
  virtual ~Context() = default;
  /// Warms up, then calls `body` until the stopping rule is met, and files the samples in the
  /// round's record under `timing[what]`. Returns their median, in seconds.
  virtual double measure(const std::string& what, const Body& body) = 0;
  /// Warms both up, then times them in turns until the interval of their ratio leaves 1 or cannot
  /// matter any more, or the sampling rule's limits are hit, `patience` (0 to 1) times its seconds.
  /// Files nothing.
  virtual Comparison compare(const Body& first, const Body& second, double patience) = 0;
  virtual MemoryMeter& memory() = 0;
  /// `done` of `total` of whatever `what` counts; shown to the user, at most ten times a second.
  virtual void progress(double done, double total, std::string_view what) = 0;
  virtual bool cancelled() const = 0;
  /// For work that can go on where it was stopped; kept with the run.
  virtual std::filesystem::path checkpoint_folder() const = 0;
  /// Fingerprint of what computes: the worker, its library and the plugins. What another binary
  /// began is not gone on with.
  virtual std::string binary() const { return {}; }
  /// Rounds are fresh processes; the first one also checks and meters memory.
  virtual int round() const = 0;
  virtual std::uint64_t seed() const = 0;
  virtual const Registry& registry() const = 0;
  virtual Seat seat() const { return {}; }
};

/// One cell, ready to be done. Called in the order prepare, check, run; each at most once.
class Work {
 public:
  virtual ~Work() = default;
  virtual void prepare(Context& context) = 0;
  /// Correctness at the size of the cell, in round 0: {"verdict": "ok" | "wrong", "reason", …}.
  virtual Json check(Context& context) = 0;
  /// Measures through the context; returns sections for the record besides timing, such as
  /// {"memory": {…}, "metrics": {…}}, units in the key names. In every round "timed_check", of the
  /// form of `check`, may say what became of the calls that were timed; it becomes the check's part
  /// "timed", and where it is wrong, so is the cell.
  virtual Json run(Context& context) = 0;
};

/// What is known of a cell before it runs.
struct Forecast {
  Support support;
  Cost cost;                   ///< of one timed body, whole problem
  double peak_bytes = 0;       ///< predicted, all tensors together
  std::string implementation;  ///< chosen
  std::string choice_reason;
  Growth growth;    ///< claimed by that implementation
  Options options;  ///< of the mechanism, resolved and derived
  Problem problem;
  /// Training: done in one round, however many the run has; its cost is that of all of it.
  bool once = false;
};

/// The data that a task learns from. As with Task, no function is defined elsewhere: a plugin's
/// task must find all of it in this header.
class TaskData {
 public:
  virtual ~TaskData() = default;
  /// Those that decide the data; at least one.
  virtual std::vector<Option> settings() const = 0;
  /// Writes them into `folder`, which exists, as JSON Lines, one file for each split. Returns
  /// {files: [{file, examples}…], …}. Throws UsageError, and Error where the disk refuses.
  virtual Json write(const Options& settings, std::uint64_t seed,
                     const std::filesystem::path& folder) const = 0;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string name() const = 0;
  virtual std::string title() const = 0;
  virtual std::vector<Option> settings() const = 0;
  /// Default figures by name, which reports know how to draw: time, memory, slopes, roofline,
  /// state.
  virtual std::vector<std::string> figures() const = 0;
  /// Those that a suite may name besides.
  virtual std::vector<std::string> further_figures() const { return {}; }
  /// The setting that is the x axis where several vary.
  virtual std::string axis() const = 0;
  /// Known departures from published code; told to users.
  virtual std::vector<Departure> differs_from() const { return {}; }
  virtual Forecast forecast(const Registry& registry, const Cell& cell) const = 0;
  virtual std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const = 0;
  /// What it learns from; null where it learns from nothing. Lives as long as the task.
  virtual const TaskData* data() const { return nullptr; }
};

/// Names to tasks: the built-in ones, from a table that is generated from the folders of tasks/,
/// and those of plugins. Copies share the tasks.
class TaskTable {
 public:
  static TaskTable with_builtins();

  /// Throws PluginError where the name is taken or malformed, a setting has no default of its type,
  /// or no figure is named.
  void add(std::shared_ptr<const Task> task);
  /// Throws UsageError naming the closest.
  const Task& find(const std::string& name) const;
  const std::vector<std::shared_ptr<const Task>>& all() const { return tasks_; }  ///< by name

 private:
  std::vector<std::shared_ptr<const Task>> tasks_;
};

/// The built-in ones.
const TaskTable& builtin_tasks();
/// One of them; throws UsageError naming the closest.
const Task& find_task(const std::string& name);

}  // namespace attnbench::tasks
