#include "harness/program/run/supervise/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "core/result/machine.hpp"
#include "core/text/format.hpp"
#include "harness/program/run/folder/run_result.hpp"
#include "harness/program/run/plan/pace.hpp"

namespace attnbench::run {
namespace {

constexpr int default_rounds = 5;
constexpr double default_cell_seconds = 600;
constexpr double probe_seconds = 180;

RunSettings with_threads(RunSettings settings) {
  if (settings.threads <= 0) settings.threads = threads_for(settings.process_rank);
  return settings;
}

/// Processes that train one model together can neither train several at once nor time cells.
void reject_unsupported_when_distributed(const RunSettings& settings,
                                         const std::vector<Planned>& planned) {
  if (settings.process_rank.alone()) return;
  if (settings.jobs > 1) {
    throw UsageFailure(
        "--jobs trains several models at once, and WORLD_SIZE says that several "
        "processes train one: choose");
  }
  for (const Planned& one : planned) {
    if (!one.runs() || !one.is_timed()) continue;
    throw UsageFailure("WORLD_SIZE says that " + std::to_string(settings.process_rank.size) +
                       " processes train together, but " + suite::describe(one.cell) +
                       " is timed: choose trainings by --only");
  }
}

/// Why a training did not resume from a checkpoint that was there.
std::vector<std::string> checkpoint_notes(const result::RoundRecord& record) {
  const auto& training = record.measured.training;
  return training ? training->checkpoint_notes : std::vector<std::string>{};
}

/// Keeps for `plan` how long the cells measured since `started_at` took. Trainings that shared the
/// machine say nothing of one alone.
void learn_pace(const std::filesystem::path& file, const RunStore& store,
                const std::vector<Planned>& planned, const Json& measure,
                const std::string& started_at) {
  Pace pace = remembered_pace(file);
  pace.age();
  const auto probe = store.probes().find("cpu");
  if (probe != store.probes().end()) pace.learn_rates(probe->second.ceilings);
  for (const Planned& one : planned) {
    const auto found = store.records().find(one.id());
    if (found == store.records().end()) continue;
    int rounds = 0;
    double seconds = 0;
    for (const result::RoundRecord& record : found->second) {
      const bool counts = record.ok() && record.wall_seconds && record.side_by_side.empty() &&
                          record.reused_from.empty() && record.started_at >= started_at;
      if (!counts) continue;
      ++rounds;
      seconds += *record.wall_seconds;
    }
    if (rounds > 0) pace.learn(one.cell, one.forecast, measure, rounds, seconds);
  }
  remember_pace(file, pace);
}

}  // namespace

Supervisor::Supervisor(RunSettings settings)
    : settings_(with_threads(std::move(settings))),
      started_at_(text::now_text()),
      conditions_(settings_),
      builds_(settings_.builds.empty() ? std::vector<process::Build>{settings_.plugins}
                                       : settings_.builds) {
  rounds_ = settings_.rounds.value_or(settings_.suite.rounds(default_rounds));
  cell_seconds_ = settings_.cell_timeout_seconds.value_or(
      settings_.suite.cell_timeout_seconds(default_cell_seconds));
}

RunOutcome Supervisor::run() {
  plan();
  open_store();
  const std::string how_to_resume = store_->resume_command(settings_.in_turns ? "ab" : "run");
  std::string state = "complete";
  std::string reason;
  std::string failure;
  try {
    measure_all();
  } catch (const Cancelled&) {
    state = "interrupted";
    reason = "stopped by Ctrl-C or a signal";
  } catch (const JournalFailure& error) {
    state = "stopped";
    reason = error.what();
    failure = reason +
              "; what was measured before is safe. Make room, then continue with: " + how_to_resume;
  } catch (const JournalGone&) {
    stop_measurers();
    throw;  // there is no folder for a result
  } catch (const EnvironmentFailure& error) {
    state = "stopped";
    reason = error.what();
    failure = reason + "\nWhat was measured before is safe; continue with: " + how_to_resume;
  }
  stop_measurers();
  progress_.reset();
  store_->require_there();
  RunOutcome outcome{result(state, reason), store_->folder().path};
  learn_pace(pace_file(outcome.result.machine.cpu_model), *store_, schedule_->planned(),
             settings_.suite.measure, started_at_);
  try {
    store_->write_result(outcome.result);
  } catch (const EnvironmentFailure& error) {
    if (failure.empty()) failure = std::string(error.what()) + "; continue with: " + how_to_resume;
  }
  // One that came since the last round counts, too.
  outcome.interrupted = interrupted();
  interrupts_.reset();  // from here on Ctrl-C ends the program as usual
  if (!failure.empty()) throw EnvironmentFailure(failure);
  return outcome;
}

void Supervisor::plan() {
  std::vector<Cell> cells;
  for (const Cell& cell : settings_.suite.cells) {
    if (!settings_.shard.holds(cell.id)) continue;
    conditions_.add_device(cell.device);
    cells.push_back(cell);
  }
  std::vector<Forecast> forecasts;
  try {
    // A shard may well be empty: a job array has as many jobs as it has.
    forecasts = forecasts_of(cells);
  } catch (const WorkerDied& error) {
    throw EnvironmentFailure(std::string("while planning: ") + error.what());
  }
  schedule_.emplace(
      plan_cells(cells, forecasts,
                 [this](const Cell& cell) { return conditions_.memory_limit(cell.device); }),
      Sharing{rounds_, settings_.in_turns, settings_.jobs, settings_.threads,
              conditions_.memory_bytes(), settings_.shard.count > 1});
  reject_unsupported_when_distributed(settings_, schedule_->planned());
  Progress notes(settings_.progress, 0);
  conditions_.choose_blas(settings_, schedule_->planned(),
                          [&](const std::string& sentence) { notes.say(sentence); });
}

std::vector<Forecast> Supervisor::forecasts_of(const std::vector<Cell>& cells) const {
  std::vector<Forecast> forecasts(cells.size());
  for (std::size_t build = 0; build < builds_.size(); ++build) {
    std::vector<Cell> own;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (build_of(cells[i]) != build) continue;
      own.push_back(cells[i]);
      places.push_back(i);
    }
    if (own.empty()) continue;
    std::vector<Forecast> made = forecast(own, builds_[build]);
    for (std::size_t i = 0; i < made.size(); ++i) forecasts[places[i]] = std::move(made[i]);
  }
  return forecasts;
}

void Supervisor::open_store() {
  const bool resumed = !settings_.resume.empty();
  const std::string name = settings_.suite.name();
  const RunFolder folder =
      resumed ? find_run_folder(settings_.resume) : make_run_folder(name, settings_.out);
  // Before the first line is written: a full disk must be an error of the write.
  interrupts_ = std::make_unique<process::Interrupts>();
  store_.emplace(folder, settings_.keep_checkpoints);
  use_earlier_records();
  for (const auto& [id, records] : store_->records()) {
    for (const result::RoundRecord& record : records) {
      schedule_->add(id, record.round, record.ok());
    }
  }
  progress_ = std::make_unique<Progress>(settings_.progress, schedule_->steps_left());
  progress_->follow(live_table());
  for (const Planned& planned : schedule_->planned()) {
    if (planned.runs()) continue;
    progress_->say(suite::describe(planned.cell) + "  " + to_string(planned.settled->status) +
                   ": " + planned.settled->reason);
  }
  for (process::Build& build : builds_) {
    const std::string side = std::to_string(kept_workers_.size());
    kept_workers_.emplace_back(build.program(), store_->folder().kept_worker(side));
    build.worker = kept_workers_.back().program();
    measurers_.emplace_back(worker_options(build), hooks(nullptr));
  }
}

/// Of all cells, with what earlier starts measured.
LiveTable Supervisor::live_table() const {
  std::vector<Cell> cells;
  for (const Planned& planned : schedule_->planned()) cells.push_back(planned.cell);
  LiveTable table(cells);
  for (const Planned& planned : schedule_->planned()) {
    if (planned.runs()) continue;
    result::RoundRecord settled;
    settled.cell = planned.id();
    settled.status = planned.settled->status;
    table.add(settled);
  }
  for (const auto& [id, records] : store_->records()) {
    for (const result::RoundRecord& record : records) table.add(record);
  }
  return table;
}

/// Writes the header, and uses what this run's folder and the run of --reuse have.
void Supervisor::use_earlier_records() {
  const std::vector<Planned>& planned = schedule_->planned();
  const std::string count = std::to_string(planned.size());
  const Reuse reuse{conditions_.identity(), settings_.retry};
  Progress notes(settings_.progress, 0);
  if (settings_.resume.empty()) {
    store_->begin(header());
  } else {
    const Resumed resumed = store_->resume(header(), planned, reuse);
    notes.say("Going on with " + store_->folder().path.string() + ": " +
              std::to_string(resumed.records.size()) + " of " + count +
              " cells have records that hold.");
    for (const std::string& line : resumed.skipped) notes.say("  skipped: " + line);
    for (const Planned& one : planned) {
      const auto found = resumed.repeated.find(one.id());
      if (found == resumed.repeated.end()) continue;
      notes.say("  again: " + suite::describe(one.cell) + ": " + found->second);
    }
  }
  if (settings_.reuse.empty()) return;
  const Resumed copied = store_->copy_from(find_run_folder(settings_.reuse), planned, reuse);
  notes.say("Taken from " + settings_.reuse.string() + ": " +
            std::to_string(copied.records.size()) + " of " + count + " cells.");
  for (const std::string& line : copied.skipped) notes.say("  skipped: " + line);
  for (const auto& [id, reason] : copied.repeated) {
    notes.say("  not taken: " + id + ": " + reason);
  }
}

void Supervisor::measure_all() {
  if (schedule_->anything_timed()) {
    QuietSurroundings surroundings = real_surroundings();
    surroundings.stopped = [this] { return interrupted(); };
    surroundings.say = [this](const std::string& sentence) { progress_->say(sentence); };
    surroundings.show = [this](const std::string& line) { progress_->show(line); };
    conditions_.await_quiet(settings_, surroundings);
    if (interrupted()) throw Cancelled{};
  }
  measure_side_by_side();
  measure_rounds();
  while (settings_.next_rounds) {
    const auto further = settings_.next_rounds(result("complete", ""), seconds_of_rounds());
    if (!further || !schedule_->next_rounds(*further)) break;
    if (!further->note.empty()) progress_->say(further->note);
    rounds_ = std::max(rounds_, further->end);
    progress_->add_steps(schedule_->steps_left());
    measure_rounds();
  }
}

/// The devices are probed after the first round, so that the first number does not wait for that.
void Supervisor::measure_rounds() {
  std::optional<int> first;
  while (const auto step = schedule_->next()) {
    // Forked children share their worker's memory layout, which may favour one side.
    const bool fresh = builds_.size() > 1 || schedule_->is_drawn();
    if (fresh && step->round != std::exchange(round_, step->round)) stop_measurers();
    start_measurers();
    if (step->round != first.value_or(step->round)) probe_devices();
    first = first.value_or(step->round);
    if (interrupted()) throw Cancelled{};
    store_->require_there();
    const Planned& planned = *step->planned;
    Measurer& measurer = measurers_[build_of(planned.cell)];
    measurer.start(waiting_for(planned, schedule_->threads_of(planned)));
    measure(measurer, *step);
  }
  if (interrupted()) throw Cancelled{};
  if (!first) return;
  start_measurers();
  probe_devices();
}

void Supervisor::stop_measurers() {
  for (Measurer& measurer : measurers_) measurer.stop();
}

/// Trains several models at once (--jobs), each in a worker of its own with its share of the
/// threads. The cells that are timed, or too large for their share of the memory, run after them.
void Supervisor::measure_side_by_side() {
  const std::vector<const Planned*> trainings = schedule_->side_by_side();
  if (trainings.empty()) return;
  start_measurers();
  probe_devices();  // while nothing else runs
  const std::size_t count = std::min(static_cast<std::size_t>(settings_.jobs), trainings.size());
  const int threads = schedule_->threads_of(*trainings.front());
  progress_->say(std::to_string(count) + " trainings at a time, " + std::to_string(threads) +
                 (threads == 1 ? " thread each." : " threads each.") +
                 (trainings.size() < schedule_->planned().size()
                      ? " What is timed, or too large to share the memory, runs alone, afterwards."
                      : ""));
  Lanes lanes(trainings.size());
  lanes.run(count, [&] {
    Measurer measurer(worker_options(builds_.front()), hooks(&lanes));
    measurer.start(Waiting::passive);
    while (const auto i = lanes.next()) {
      store_->require_there();
      measure(measurer, {trainings[*i], 0});
    }
  });
}

void Supervisor::measure(Measurer& measurer, const ScheduleStep& step) {
  const Planned& planned = *step.planned;
  const std::string& id = planned.id();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_->begin(id, suite::describe(planned.cell), step.round);
    if (!first_step_) first_step_ = std::chrono::steady_clock::now();
  }
  std::optional<result::RoundRecord> record = measurer.measure(planned, request_for(step));
  const std::lock_guard<std::mutex> lock(mutex_);
  store_->drop_empty_log(id);
  if (!record) throw Cancelled{};
  if (schedule_->shares(planned)) {
    record->side_by_side = {{"jobs", settings_.jobs}, {"threads", schedule_->threads_of(planned)}};
  }
  if (planned.cell.on_cpu()) record->waiting = to_string(waiting_of(measurer.waiting()));
  const bool ok = record->ok();
  measured_seconds_ += record->wall_seconds.value_or(0);
  store_->add(*record);
  schedule_->add(id, step.round, ok);
  for (const std::string& note : checkpoint_notes(*record)) progress_->say("  " + note);
  const int dropped = ok ? 0 : planned.rounds(rounds_) - step.round - 1;
  progress_->end(*record, static_cast<std::size_t>(dropped));
}

std::map<std::string, double> Supervisor::seconds_of_rounds() const {
  double share = 1;  // of what is between rounds
  if (first_step_ && measured_seconds_ > 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - *first_step_;
    share = std::max(1.0, passed.count() / measured_seconds_);
  }
  std::map<std::string, double> seconds;
  for (const auto& [id, records] : store_->records()) {
    double sum = 0;
    for (const result::RoundRecord& record : records) sum += record.wall_seconds.value_or(0);
    if (!records.empty()) seconds[id] = share * sum / static_cast<double>(records.size());
  }
  return seconds;
}

void Supervisor::start_measurers() {
  for (Measurer& measurer : measurers_) {
    if (!measurer.started()) measurer.start(Waiting::active);
  }
}

/// Each once. The measurers are started.
void Supervisor::probe_devices() {
  if (!settings_.ceilings) return;
  for (const Planned& planned : schedule_->planned()) {
    if (interrupted()) return;
    if (planned.runs() && !store_->has_probe(planned.cell.device)) probe(planned.cell.device);
  }
}

/// Without ceilings there are no roofline shares; the times are as good.
void Supervisor::probe(const std::string& device) {
  progress_->begin("", "measuring what the machine can do", 0);
  const auto begin = std::chrono::steady_clock::now();
  measurers_.front().start(Waiting::active);
  protocol::Probe request;
  request.device = device;
  request.threads = settings_.threads;
  request.limits.seconds = probe_seconds;
  auto [answer, failure] = measurers_.front().probe(request);
  if (first_step_) *first_step_ += std::chrono::steady_clock::now() - begin;
  if (!failure.empty()) {
    progress_->say("The machine's ceilings are not known: " + failure);
    return store_->add_no_probe(device);
  }
  answer.device = device;
  if (device == "cpu") {
    Json& blas = answer.machine["blas"];
    blas = result::blas_as_loaded(Json(conditions_.blas()).get<result::Blas>(), blas);
    const std::string slow =
        result::blas_warning(answer.ceilings, Json(answer.machine).get<result::MachineCard>());
    if (!slow.empty()) progress_->warn(slow);
  }
  store_->add_probe(std::move(answer));
}

}  // namespace attnbench::run
