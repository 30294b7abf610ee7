#include "harness/run/supervise/supervisor.hpp"

#include <utility>

#include "harness/measure/noise_sources.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "core/result/document.hpp"
#include "harness/run/plan/catalogue_cache.hpp"
#include "harness/run/folder/fingerprint.hpp"
#include "harness/run/folder/resume.hpp"
#include "harness/run/folder/run_result.hpp"

namespace attnbench::run {
namespace {

constexpr int default_rounds = 5;
constexpr double default_cell_seconds = 600;
constexpr double default_memory_share = 0.8;

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
  } catch (const JournalGone&) {
    worker_.reset();
    throw;  // there is no place for a result
  } catch (const EnvironmentFailure& error) {
    state = "stopped";
    reason = error.what();
    failure = reason + "\nWhat was measured before is safe; go on with: " + how_to_go_on();
  }
  worker_.reset();
  progress_.reset();
  interrupts_.reset();  // from here on Ctrl-C ends the program as usual
  journal_->require_there();
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
    note_device(cell.value("device", "cpu"));
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
  take_blas();
}

/// Refuses a device that cannot be used; what it is becomes part of what numbers hold under.
void Supervisor::note_device(const std::string& device) {
  if (machine_.contains("devices") && machine_["devices"].contains(device)) return;
  const measure::Device& kind = measure::usable_device(device);
  const int index = measure::device_index(device);
  const Json card = kind.card(index);
  if (card.empty()) return;
  machine_["devices"][device] = card;
  identity_["devices"][device] = card;
  for (const std::string& sentence : measure::card_noise_sources(device, kind.condition(index))) {
    machine_["spoilers"].push_back(sentence);
  }
}

/// That tensors of a cell on `device` may take: the limit that was said, else a share of what is
/// there.
std::int64_t Supervisor::memory_limit(const std::string& device) const {
  const Json card = measure::usable_device(device).card(measure::device_index(device));
  const auto own = card.value("memory_bytes", std::int64_t{0});
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
  await_quiet();
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
    journal_->require_there();
    use_worker(waiting_for(planned));
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

std::string Supervisor::how_to_go_on() const {
  return "attnbench run --resume " + folder_.path.string();
}

}  // namespace attnbench::run
