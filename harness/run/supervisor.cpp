#include "harness/run/supervisor.hpp"

#include <chrono>
#include <utility>

#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/result/document.hpp"
#include "harness/run/catalogue_cache.hpp"
#include "harness/run/fingerprint.hpp"
#include "harness/run/keeping.hpp"
#include "harness/run/run_result.hpp"
#include "harness/run/side_by_side.hpp"

namespace attnbench::run {
namespace {

constexpr int default_rounds = 5;
constexpr double default_cell_seconds = 600;
constexpr double default_memory_share = 0.8;
/// How much longer than a cell's limit we wait for the worker to enforce it.
constexpr double grace_seconds = 5;
constexpr double probe_seconds = 180;

Json rule_of(Json measure) {
  if (!measure.is_object()) return Json::object();
  measure.erase("rounds");
  measure.erase("cell_timeout_seconds");
  return measure;
}

std::string machine_of(const Json& card) {
  return card.value("host", "") + ", " + card.value("cpu_model", "");
}

}  // namespace

Supervisor::Supervisor(RunSettings settings) : settings_(std::move(settings)) {
  const Json said = settings_.suite.measure.is_object() ? settings_.suite.measure : Json::object();
  rounds_ = settings_.rounds.value_or(said.value("rounds", default_rounds));
  cell_seconds_ = settings_.cell_timeout_seconds.value_or(
      said.value("cell_timeout_seconds", default_cell_seconds));
  memory_bytes_ = settings_.memory_limit_bytes.value_or(static_cast<std::int64_t>(
      default_memory_share * static_cast<double>(available_memory_bytes())));
  if (settings_.threads <= 0) settings_.threads = threads_for(settings_.seat);
  machine_ = measure::machine_card();
  started_at_ = now_text();
  identity_ = to_json(Identity{binary_fingerprint(settings_.plugins), machine_of(machine_),
                               settings_.threads, settings_.seed, rule_of(said)});
}

RunOutcome Supervisor::run() {
  plan();
  open_folder();
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
              "; what was measured before is safe. Make room, then go on with: " + how_to_go_on();
  }
  worker_.reset();
  progress_.reset();
  interrupts_.reset();  // from here on Ctrl-C ends the program as usual
  RunOutcome outcome{result(state, reason), folder_.path, state == "interrupted"};
  try {
    result::write_result(folder_.result(), outcome.result);
  } catch (const EnvironmentFailure& error) {
    if (failure.empty()) failure = std::string(error.what()) + "; go on with: " + how_to_go_on();
  }
  if (!failure.empty()) throw EnvironmentFailure(failure);
  return outcome;
}

void Supervisor::plan() {
  std::vector<Json> cells;
  for (const Json& cell : settings_.suite.cells) {
    if (!settings_.shard.holds(cell.at("id"))) continue;
    measure::usable_device(cell.value("device", "cpu"));
    cells.push_back(cell);
  }
  std::vector<Json> forecasts;
  try {
    // A shard may well be empty: a job array has as many jobs as it has.
    if (!cells.empty()) forecasts = forecast(cells, settings_.plugins);
  } catch (const WorkerDied& error) {
    throw EnvironmentFailure(std::string("while planning: ") + error.what());
  }
  planned_ = plan_cells(cells, forecasts, [this](const Json& cell) {
    return memory_limit(cell.value("device", "cpu"));
  });
  refuse_needless_jobs();
  refuse_what_is_no_team_work();
}

/// That tensors of a cell on `device` may take: the limit that was said, else a share of what is
/// there.
std::int64_t Supervisor::memory_limit(const std::string& device) const {
  const std::int64_t own = measure::usable_device(device).memory_bytes();
  if (own == 0 || settings_.memory_limit_bytes) return memory_bytes_;
  return static_cast<std::int64_t>(default_memory_share * static_cast<double>(own));
}

void Supervisor::open_folder() {
  const bool resumed = !settings_.resume.empty();
  const std::string name = settings_.suite.header.value("name", "run");
  folder_ = resumed ? find_run_folder(settings_.resume) : make_run_folder(name, settings_.out);
  // Before the first line is written: a full disk must be an error of the write.
  interrupts_ = std::make_unique<Interrupts>();
  journal_ = std::make_unique<Journal>(folder_.journal());
  std::size_t steps = 0;
  if (resumed) {
    const JournalContents contents = read_journal(folder_.journal());
    journal_->append(header());
    take_earlier(contents);
  } else {
    journal_->append(header());
  }
  if (!settings_.reuse.empty()) take_from_other_run();
  for (const Planned& planned : planned_) {
    if (planned.runs()) steps += steps_left(planned);
  }
  progress_ = std::make_unique<Progress>(settings_.progress, steps);
  for (const Planned& planned : planned_) {
    if (!planned.runs()) {
      progress_->say(suite::describe(planned.cell) + "  " +
                     planned.settled["status"].get<std::string>() + ": " +
                     planned.settled["reason"].get<std::string>());
    }
  }
}

void Supervisor::measure_all() {
  train_side_by_side();
  for (int round = 0; round < rounds_; ++round) measure_round(round);
  if (interrupts_->count() > 0) throw Cancelled{};
}

void Supervisor::measure_round(int round) {
  const bool backwards = settings_.in_turns && round % 2 == 1;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const Planned& planned = planned_[backwards ? planned_.size() - 1 - i : i];
    if (!wanted(planned, round)) continue;
    if (!worker_) start_worker();
    if (interrupts_->count() > 0) throw Cancelled{};
    measure_cell(*worker_, planned, round);
  }
}

bool Supervisor::wanted(const Planned& planned, int round) const {
  if (!planned.runs() || round >= planned.rounds(rounds_)) return false;
  const auto found = records_.find(planned.id());
  if (found == records_.end()) return true;
  for (const Json& record : found->second) {
    if (record.value("status", "") != "ok" || record.value("round", -1) == round) return false;
  }
  return true;
}

std::size_t Supervisor::steps_left(const Planned& planned) const {
  const auto rounds = static_cast<std::size_t>(planned.rounds(rounds_));
  const auto found = records_.find(planned.id());
  if (found == records_.end()) return rounds;
  for (const Json& record : found->second) {
    if (record.value("status", "") != "ok") return 0;
  }
  return rounds - std::min(found->second.size(), rounds);
}

/// One that is told of Ctrl-C, and stops where another of the `lanes` (may be null) has failed.
std::unique_ptr<WorkerClient> Supervisor::make_worker(const SideBySide* lanes) {
  WorkerOptions options;
  options.plugins = settings_.plugins;
  options.threads = settings_.threads;
  options.keep_blas_core = settings_.keep_blas_core;
  for (const Planned& planned : planned_) {
    const std::string device = planned.cell.value("device", "cpu");
    if (planned.runs() && device != "cpu") options.device = device;
  }
  options.log = folder_.worker_log();
  auto worker = std::make_unique<WorkerClient>(std::move(options));
  worker->on_tick([this, lanes, told = 0, client = worker.get()]() mutable {
    if (lanes != nullptr && lanes->failed()) throw Cancelled{};
    on_tick(*client, told);
  });
  worker->start();
  return worker;
}

void Supervisor::start_worker() {
  worker_ = make_worker(nullptr);
  probe_devices();
}

void Supervisor::probe_devices() {
  if (!settings_.ceilings) return;
  for (const Planned& planned : planned_) {
    const std::string device = planned.cell.value("device", "cpu");
    if (interrupts_->count() > 0) return;
    if (planned.runs() && probes_.count(device) == 0) probe(device);
  }
}

void Supervisor::probe(const std::string& device) {
  progress_->begin("", "measuring what the machine can do", 0);
  try {
    Json answer = worker_->request(
        {{"type", "probe"},
         {"device", device},
         {"threads", settings_.threads},
         {"limits", {{"seconds", probe_seconds}}}},
        [this](const Json& event) { progress_->event(event); }, probe_seconds + grace_seconds);
    if (answer.value("type", "") == "cancelled") throw Cancelled{};
    answer["device"] = device;
    journal_->append(answer);
    probes_[device] = std::move(answer);
  } catch (const std::runtime_error& error) {
    if (dynamic_cast<const JournalFailure*>(&error) != nullptr) throw;
    // Without ceilings there are no roofline shares; the times are as good.
    progress_->say(std::string("The machine's ceilings are not known: ") + error.what());
    probes_[device] = Json::object();
    worker_->kill();
  }
}

void Supervisor::measure_cell(WorkerClient& worker, const Planned& planned, int round) {
  const std::string id = planned.id();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_->begin(id, suite::describe(planned.cell), round);
  }
  Json record = ask_for_record(worker, planned, round);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::error_code ignored;
  if (std::filesystem::file_size(folder_.cell_log(id), ignored) == 0) {
    std::filesystem::remove(folder_.cell_log(id), ignored);
  }
  if (record.value("type", "") == "cancelled") throw Cancelled{};
  if (shares(planned)) {
    record["side_by_side"] = {{"jobs", settings_.jobs}, {"threads", threads_of(planned)}};
  }
  journal_->append(record);
  records_[id].push_back(record);
  const bool ok = record.value("status", "") == "ok";
  // What it could have gone on from is of use to nobody now; after a failure it may be.
  if (ok) std::filesystem::remove_all(folder_.checkpoints(id), ignored);
  progress_->end(record, ok ? 0 : static_cast<std::size_t>(planned.rounds(rounds_) - round - 1));
}

Json Supervisor::ask_for_record(WorkerClient& worker, const Planned& planned, int round) {
  const std::string id = planned.id();
  const auto begin = std::chrono::steady_clock::now();
  Json record = {{"type", "record"}, {"cell", id}, {"round", round}, {"started_at", now_text()}};
  const std::string device = planned.cell.value("device", "cpu");
  try {
    Json request = {{"type", "run"},
                    {"cell", planned.cell},
                    {"round", round},
                    {"seed", settings_.seed},
                    {"threads", threads_of(planned)},
                    {"pinned", !shares(planned)},  // two might take the same CPU
                    {"limits",
                     {{"seconds", cell_seconds_},
                      {"memory_bytes", memory_bytes_},
                      {"device_bytes", memory_limit(device)}}},
                    {"measure", identity_["measure"]},
                    {"log", folder_.cell_log(id)},
                    {"checkpoint", folder_.checkpoints(id)}};
    if (!settings_.seat.alone()) request["seat"] = to_json(settings_.seat);
    return worker.request(
        request,
        [this](const Json& event) {
          const std::lock_guard<std::mutex> lock(mutex_);
          progress_->event(event);
        },
        cell_seconds_ + grace_seconds);
  } catch (const WorkerDied& error) {
    record["status"] = "crashed";
    record["reason"] = error.what();
  } catch (const WorkerSilent&) {
    worker.kill();
    record["status"] = "timeout";
    record["reason"] = "neither the cell nor the worker came to an end within the cell's limit";
  } catch (const WorkerRefused& error) {
    record["status"] = "error";
    record["reason"] = error.what();
  }
  record["wall_seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return record;
}

/// `told` is how many interrupts this worker knows of.
void Supervisor::on_tick(WorkerClient& worker, int& told) {
  const int count = interrupts_->count();
  if (count == told) return;
  told = count;
  if (count > 1) {
    worker.kill();
    throw Cancelled{};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (interrupts_told_++ == 0) {
    progress_->say("Stopping; what was measured is kept. Once more ends it at once.");
  }
  worker.tell({{"type", "cancel"}});
}

std::string Supervisor::how_to_go_on() const {
  return "attnbench run --resume " + folder_.path.string();
}

}  // namespace attnbench::run
