#include "harness/run/supervise/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "core/result/blas.hpp"
#include "harness/run/folder/run_result.hpp"

namespace attnbench::run {
namespace {

constexpr int default_rounds = 5;
constexpr double default_cell_seconds = 600;
constexpr double probe_seconds = 180;

RunSettings with_threads(RunSettings settings) {
  if (settings.threads <= 0) settings.threads = threads_for(settings.process_rank);
  return settings;
}

/// Processes that train together cannot do anything else.
void refuse_what_no_group_does(const RunSettings& settings, const std::vector<Planned>& planned) {
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
std::vector<std::string> checkpoint_notes(const Json& record) {
  std::vector<std::string> texts;
  const Json::json_pointer place("/measured/training/checkpoint_notes");
  if (!record.contains(place) || !record.at(place).is_array()) return texts;
  for (const Json& note : record.at(place)) {
    if (note.is_string()) texts.push_back(note);
  }
  return texts;
}

}  // namespace

Supervisor::Supervisor(RunSettings settings)
    : settings_(with_threads(std::move(settings))),
      started_at_(now_text()),
      conditions_(settings_) {
  const Json& measure = settings_.suite.measure;
  const Json said = measure.is_object() ? measure : Json::object();
  rounds_ = settings_.rounds.value_or(said.value("rounds", default_rounds));
  cell_seconds_ = settings_.cell_timeout_seconds.value_or(
      said.value("cell_timeout_seconds", default_cell_seconds));
}

RunOutcome Supervisor::run() {
  plan();
  open_store();
  const std::string how_to_resume = store_->resume_command();
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
    failure =
        reason + "; what was measured before is safe. Make room, then go on with: " + how_to_resume;
  } catch (const JournalGone&) {
    measurer_->stop();
    throw;  // there is no folder for a result
  } catch (const EnvironmentFailure& error) {
    state = "stopped";
    reason = error.what();
    failure = reason + "\nWhat was measured before is safe; go on with: " + how_to_resume;
  }
  measurer_->stop();
  progress_.reset();
  interrupts_.reset();  // from here on Ctrl-C ends the program as usual
  store_->require_there();
  RunOutcome outcome{result(state, reason), store_->folder().path, state == "interrupted"};
  try {
    store_->write_result(outcome.result);
  } catch (const EnvironmentFailure& error) {
    if (failure.empty()) failure = std::string(error.what()) + "; go on with: " + how_to_resume;
  }
  if (!failure.empty()) throw EnvironmentFailure(failure);
  return outcome;
}

void Supervisor::plan() {
  std::vector<Cell> cells;
  for (Cell& cell : cells_from(settings_.suite.cells)) {
    if (!settings_.shard.holds(cell.id)) continue;
    conditions_.add_device(cell.device);
    cells.push_back(std::move(cell));
  }
  std::vector<Forecast> forecasts;
  try {
    // A shard may well be empty: a job array has as many jobs as it has.
    if (!cells.empty()) forecasts = forecast(cells, settings_.plugins);
  } catch (const WorkerDied& error) {
    throw EnvironmentFailure(std::string("while planning: ") + error.what());
  }
  schedule_.emplace(
      plan_cells(cells, forecasts,
                 [this](const Cell& cell) { return conditions_.memory_limit(cell.device); }),
      Sharing{rounds_, settings_.in_turns, settings_.jobs, settings_.threads,
              conditions_.memory_bytes(), settings_.shard.count > 1});
  refuse_what_no_group_does(settings_, schedule_->planned());
  Progress notes(settings_.progress, 0);
  conditions_.choose_blas(settings_, schedule_->planned(),
                          [&](const std::string& sentence) { notes.say(sentence); });
}

void Supervisor::open_store() {
  const bool resumed = !settings_.resume.empty();
  const std::string name = settings_.suite.header.value("name", "run");
  const RunFolder folder =
      resumed ? find_run_folder(settings_.resume) : make_run_folder(name, settings_.out);
  // Before the first line is written: a full disk must be an error of the write.
  interrupts_ = std::make_unique<Interrupts>();
  store_.emplace(folder);
  use_earlier_records();
  for (const auto& [id, records] : store_->records()) {
    for (const Json& record : records) {
      schedule_->add(id, record.value("round", -1), record.value("status", "") == "ok");
    }
  }
  progress_ = std::make_unique<Progress>(settings_.progress, schedule_->steps_left());
  for (const Planned& planned : schedule_->planned()) {
    if (planned.runs()) continue;
    progress_->say(suite::describe(planned.cell) + "  " +
                   result::to_string(planned.settled->status) + ": " + planned.settled->reason);
  }
  measurer_.emplace(worker_options(), hooks(nullptr));
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
  while (const auto step = schedule_->next()) {
    start_measurer();
    if (interrupted()) throw Cancelled{};
    store_->require_there();
    const Planned& planned = *step->planned;
    measurer_->start(waiting_for(planned, schedule_->threads_of(planned)));
    measure(*measurer_, *step);
  }
  if (interrupted()) throw Cancelled{};
}

/// Trains several models at once (--jobs), each in a worker of its own with its share of the
/// threads. The cells that are timed, or too large for their share of the memory, run after them.
void Supervisor::measure_side_by_side() {
  const std::vector<const Planned*> trainings = schedule_->side_by_side();
  if (trainings.empty()) return;
  start_measurer();  // it measures the ceilings, while nothing else runs
  const std::size_t count = std::min(static_cast<std::size_t>(settings_.jobs), trainings.size());
  const int threads = schedule_->threads_of(*trainings.front());
  progress_->say(std::to_string(count) + " trainings at a time, " + std::to_string(threads) +
                 (threads == 1 ? " thread each." : " threads each.") +
                 (trainings.size() < schedule_->planned().size()
                      ? " What is timed, or too large to share the memory, runs alone, afterwards."
                      : ""));
  Lanes lanes(trainings.size());
  lanes.run(count, [&] {
    Measurer measurer(worker_options(), hooks(&lanes));
    measurer.start(Waiting::passive);
    while (const auto i = lanes.next()) {
      store_->require_there();
      measure(measurer, {trainings[*i], 0});
    }
  });
}

void Supervisor::measure(Measurer& measurer, const Step& step) {
  const Planned& planned = *step.planned;
  const std::string& id = planned.id();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_->begin(id, suite::describe(planned.cell), step.round);
  }
  std::optional<Json> record = measurer.measure(planned, request_for(step));
  const std::lock_guard<std::mutex> lock(mutex_);
  store_->drop_empty_log(id);
  if (!record) throw Cancelled{};
  if (schedule_->shares(planned)) {
    (*record)["side_by_side"] = {{"jobs", settings_.jobs},
                                 {"threads", schedule_->threads_of(planned)}};
  }
  if (planned.cell.on_cpu()) (*record)["waiting"] = to_string(waiting_of(measurer.waiting()));
  const bool ok = record->value("status", "") == "ok";
  store_->add(*record);
  schedule_->add(id, step.round, ok);
  for (const std::string& note : checkpoint_notes(*record)) progress_->say("  " + note);
  const int dropped = ok ? 0 : planned.rounds(rounds_) - step.round - 1;
  progress_->end(*record, static_cast<std::size_t>(dropped));
}

/// Before the first cell the devices are probed.
void Supervisor::start_measurer() {
  if (measurer_->started()) return;
  measurer_->start(Waiting::active);
  if (!settings_.ceilings) return;
  for (const Planned& planned : schedule_->planned()) {
    if (interrupted()) return;
    if (planned.runs() && !store_->has_probe(planned.cell.device)) probe(planned.cell.device);
  }
}

/// Without ceilings there are no roofline shares; the times are as good.
void Supervisor::probe(const std::string& device) {
  progress_->begin("", "measuring what the machine can do", 0);
  protocol::Probe request;
  request.device = device;
  request.threads = settings_.threads;
  request.limits.seconds = probe_seconds;
  auto [answer, failure] = measurer_->probe(request);
  if (!failure.empty()) {
    progress_->say("The machine's ceilings are not known: " + failure);
    return store_->add_no_probe(device);
  }
  answer["device"] = device;
  if (device == "cpu") {
    Json blas = to_json(conditions_.blas());
    blas.update(answer["machine"].value("blas", Json::object()));  // as it is, not as wanted
    answer["machine"]["blas"] = blas;
    const std::string slow = result::blas_warning(answer["ceilings"], answer["machine"]);
    if (!slow.empty()) progress_->warn(slow);
  }
  store_->add_probe(device, std::move(answer));
}

protocol::Run Supervisor::request_for(const Step& step) const {
  const Planned& planned = *step.planned;
  protocol::Run request;
  request.cell = planned.cell;
  request.round = step.round;
  request.seed = settings_.seed;
  request.threads = schedule_->threads_of(planned);
  request.pinned = !schedule_->shares(planned);  // two might take the same CPU
  request.limits = {cell_seconds_, conditions_.memory_bytes(),
                    conditions_.memory_limit(planned.cell.device)};
  request.measure = conditions_.identity().at("measure");
  request.log = store_->folder().cell_log(planned.id());
  request.checkpoint = store_->folder().checkpoints(planned.id());
  request.binary = conditions_.identity().at("binary");
  if (!settings_.process_rank.alone()) request.process_rank = settings_.process_rank;
  return request;
}

WorkerOptions Supervisor::worker_options() const {
  WorkerOptions options;
  options.plugins = settings_.plugins;
  options.threads = settings_.threads;
  options.keep_blas_core = settings_.keep_blas_core;
  options.blas_core = conditions_.blas().set;
  for (const Planned& planned : schedule_->planned()) {
    if (planned.runs() && !planned.cell.on_cpu()) options.device = planned.cell.device;
  }
  options.log = store_->folder().worker_log();
  return options;
}

/// `lanes` may be null.
MeasurerHooks Supervisor::hooks(const Lanes* lanes) {
  MeasurerHooks hooks;
  hooks.interrupts = [this] { return interrupts_->count(); };
  hooks.on_cancel = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(told_of_interrupt_, true)) {
      progress_->say("Stopping; what was measured is kept. Once more ends it at once.");
    }
  };
  if (lanes != nullptr) hooks.abandoned = [lanes] { return lanes->failed(); };
  hooks.on_event = [this](const Json& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_->event(event);
  };
  return hooks;
}

Json Supervisor::header() const {
  return {{"type", "header"},
          {"schema", journal_schema},
          {"suite", settings_.suite.header},
          {"cells", settings_.suite.cells},
          {"measure", settings_.suite.measure},
          {"rounds", rounds_},
          {"plugins", settings_.plugins},
          {"seed", settings_.seed},
          {"threads", settings_.threads},
          {"jobs", settings_.jobs},
          {"blas", to_json(conditions_.blas())},
          {"command", settings_.command},
          {"reproduce", settings_.reproduce},
          {"started_at", started_at_},
          {"identity", conditions_.identity()}};
}

Json Supervisor::result(const std::string& state, const std::string& reason) const {
  RunFacts facts;
  facts.state = state;
  facts.reason = reason;
  facts.started_at = started_at_;
  facts.command = settings_.command;
  facts.reproduce = settings_.reproduce;
  facts.seed = settings_.seed;
  facts.threads = settings_.threads;
  facts.jobs = settings_.jobs;
  facts.rounds = rounds_;
  facts.plugins = settings_.plugins;
  facts.shard = settings_.shard;
  facts.binary = conditions_.identity().at("binary");
  facts.suite = settings_.suite.header;
  facts.machine = conditions_.card();
  facts.blas_core_kept = settings_.keep_blas_core;
  facts.waited_for_quiet_seconds = conditions_.waited_for_quiet_seconds();
  return run_result(facts, schedule_->planned(), store_->records(), store_->probes());
}

}  // namespace attnbench::run
