// The part of the supervisor that talks with a worker: what is asked, and what is made of the
// answers.
#include <chrono>
#include <filesystem>
#include <utility>

#include "core/result/blas.hpp"
#include "core/schema/result_check.hpp"
#include "harness/run/folder/combine.hpp"
#include "harness/run/folder/run_result.hpp"
#include "harness/run/supervise/side_by_side.hpp"
#include "harness/run/supervise/supervisor.hpp"

namespace attnbench::run {
namespace {

/// How much longer than a cell's limit we wait for the worker to enforce it.
constexpr double grace_seconds = 5;
constexpr double probe_seconds = 180;
/// What a worker gets to act on Ctrl-C; one that was stopped (SIGSTOP) never does.
constexpr auto cancel_patience = std::chrono::seconds(3);

/// Why a training did not go on from a checkpoint that was there.
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

/// One that is told of Ctrl-C, and stops where another of the `lanes` (may be null) has failed.
std::unique_ptr<WorkerClient> Supervisor::make_worker(const SideBySide* lanes, Waiting waiting) {
  WorkerOptions options;
  options.plugins = settings_.plugins;
  options.threads = settings_.threads;
  options.keep_blas_core = settings_.keep_blas_core;
  options.blas_core = blas_.set;
  options.waiting = waiting;
  for (const Planned& planned : planned_) {
    const std::string device = planned.cell.value("device", "cpu");
    if (planned.runs() && device != "cpu") options.device = device;
  }
  options.log = folder_.worker_log();
  auto worker = std::make_unique<WorkerClient>(std::move(options));
  worker->on_tick([this, lanes, told = Told{}, client = worker.get()]() mutable {
    if (lanes != nullptr && lanes->failed()) throw Cancelled{};
    on_tick(*client, told);
  });
  worker->start();
  return worker;
}

void Supervisor::start_worker() {
  worker_ = make_worker(nullptr, Waiting::active);
  worker_waiting_ = Waiting::active;
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
    if (was_cancelled(answer)) throw Cancelled{};
    if (const std::string fault = result::answer_fault("probe", answer); !fault.empty()) {
      throw std::runtime_error("the answer is not of its form: " + fault);
    }
    answer["device"] = device;
    if (device == "cpu") {
      Json blas = to_json(blas_);
      blas.update(answer["machine"].value("blas", Json::object()));  // as it is, not as wanted
      answer["machine"]["blas"] = blas;
      const std::string slow = result::blas_warning(answer["ceilings"], answer["machine"]);
      if (!slow.empty()) progress_->warn(slow);
    }
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
  if (was_cancelled(record)) throw Cancelled{};
  record = held_to_its_form(std::move(record), planned, round);
  if (shares(planned)) {
    record["side_by_side"] = {{"jobs", settings_.jobs}, {"threads", threads_of(planned)}};
  }
  if (planned.cell.value("device", "cpu") == "cpu") {
    const bool side_by_side = &worker != worker_.get();
    record["waiting"] = to_string(waiting_of(side_by_side ? Waiting::passive : worker_waiting_));
  }
  journal_->append(record);
  records_[id].push_back(record);
  const bool ok = record.value("status", "") == "ok";
  // What it could have gone on from is of use to nobody now; after a failure it may be.
  if (ok) std::filesystem::remove_all(folder_.checkpoints(id), ignored);
  for (const std::string& note : checkpoint_notes(record)) progress_->say("  " + note);
  progress_->end(record, ok ? 0 : static_cast<std::size_t>(planned.rounds(rounds_) - round - 1));
}

/// Nobody else may end the run: a worker says so only after it was told.
bool Supervisor::was_cancelled(const Json& answer) const {
  return answer.value("type", Json()) == "cancelled" && interrupts_->count() > 0;
}

/// What is appended to the journal, and read back by every later start, is a record of this cell
/// and round. What is not is no measurement, and costs its cell.
Json Supervisor::held_to_its_form(Json record, const Planned& planned, int round) const {
  std::string fault = result::round_fault(record);
  if (fault.empty() && record["cell"] != planned.id()) fault = "cell: another one";
  if (fault.empty() && record["round"] != round) fault = "round: another one";
  if (fault.empty()) fault = result::joined_fault(planned.cell, planned.forecast, record);
  if (fault.empty()) {
    record["type"] = "record";
    return record;
  }
  return {{"type", "record"},  {"cell", planned.id()},
          {"round", round},    {"started_at", now_text()},
          {"status", "error"}, {"reason", "its record is not of the form of one: " + fault}};
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
                    {"checkpoint", folder_.checkpoints(id)},
                    {"binary", identity_["binary"]}};
    if (!settings_.seat.alone()) request["process_rank"] = to_json(settings_.seat);
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

/// `told` is what this worker knows of.
void Supervisor::on_tick(WorkerClient& worker, Told& told) {
  const int count = interrupts_->count();
  if (count == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (count > 1 || (told.interrupts > 0 && now - told.since > cancel_patience)) {
    worker.kill();
    throw Cancelled{};
  }
  if (told.interrupts > 0) return;
  told = {count, now};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (interrupts_told_++ == 0) {
    progress_->say("Stopping; what was measured is kept. Once more ends it at once.");
  }
  worker.tell({{"type", "cancel"}});
}

}  // namespace attnbench::run
