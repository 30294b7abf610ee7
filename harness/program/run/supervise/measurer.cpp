#include "harness/program/run/supervise/measurer.hpp"

#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/process/signals.hpp"
#include "core/result/result_check.hpp"
#include "core/text/format.hpp"
#include "harness/program/run/folder/combine.hpp"
#include "harness/program/run/folder/run_result.hpp"

namespace attnbench::run {
namespace {

using Clock = std::chrono::steady_clock;

/// How much longer than a limit we wait for the worker to enforce it.
constexpr double grace_seconds = 5;
/// What a worker gets to act on an interrupt; one that was stopped (SIGSTOP) never does.
constexpr auto cancel_patience = std::chrono::seconds(3);
/// How far apart the signals of one end may come.
constexpr auto signal_patience = std::chrono::milliseconds(300);

/// `record` where it is one of this cell and round; else one that says why it is not. What is
/// appended to the journal is read back by every later start.
result::RoundRecord held_to_schema(const Json& answer, const Planned& planned, int round) {
  result::RoundRecord record;
  std::string fault = result::round_fault(answer);
  try {
    if (fault.empty()) record = answer.get<result::RoundRecord>();
  } catch (const SchemaError& error) {
    fault = error.what();
  }
  if (fault.empty() && record.cell != planned.id()) fault = "cell: another one";
  if (fault.empty() && record.round != round) fault = "round: another one";
  if (fault.empty()) {
    fault = joined_fault(planned_record(planned.cell, planned.forecast), record);
  }
  if (fault.empty()) return record;
  record = {};
  record.cell = planned.id();
  record.round = round;
  record.started_at = text::now_text();
  record.reason = "its record is not of the form of one: " + fault;
  return record;
}

/// A cluster's SIGTERM goes to all processes of a job at once: what it killed is not a crash of the
/// cell, but the run's own end, whose signal may come to us a moment later.
bool was_ended_with_us(const result::RoundRecord& record, const std::function<int()>& interrupts) {
  const bool terminated = record.status == Status::crashed &&
                          record.reason.find(process::signal_text(SIGTERM)) != std::string::npos;
  if (!terminated) return false;
  const auto begin = Clock::now();
  while (interrupts() == 0 && Clock::now() - begin < signal_patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return interrupts() > 0;
}

}  // namespace

Measurer::Measurer(WorkerOptions options, MeasurerHooks hooks)
    : options_(std::move(options)), hooks_(std::move(hooks)) {}

void Measurer::start(Waiting waiting) {
  if (client_ && options_.waiting == waiting) return;
  options_.waiting = waiting;
  auto client = std::make_unique<WorkerClient>(options_);
  client->on_tick([this, told = Told{}, one = client.get()]() mutable { on_tick(*one, told); });
  client->start();
  client_ = std::move(client);
}

void Measurer::on_tick(WorkerClient& client, Told& told) {
  if (hooks_.abandoned && hooks_.abandoned()) throw Cancelled{};
  const int count = hooks_.interrupts();
  if (count == 0) return;
  const auto now = Clock::now();
  if (count > 1 || (told.interrupts > 0 && now - told.since > cancel_patience)) {
    client.kill();
    throw Cancelled{};
  }
  if (told.interrupts > 0) return;
  told = {count, now};
  if (hooks_.on_cancel) hooks_.on_cancel();
  client.tell({{"type", "cancel"}});
}

/// A worker answers "cancelled" only after an interrupt was passed on to it; without one the
/// answer is invalid.
bool Measurer::was_cancelled(const Json& answer) const {
  const auto type = answer.find("type");
  return type != answer.end() && *type == "cancelled" && hooks_.interrupts() > 0;
}

std::optional<result::RoundRecord> Measurer::measure(const Planned& planned,
                                                     const protocol::Run& request) {
  const Json answer = answer_or_failure(request);
  if (was_cancelled(answer)) return std::nullopt;
  result::RoundRecord record = held_to_schema(answer, planned, request.round);
  if (was_ended_with_us(record, hooks_.interrupts)) return std::nullopt;
  return record;
}

Json Measurer::answer_or_failure(const protocol::Run& request) {
  const auto begin = Clock::now();
  result::RoundRecord record;
  record.cell = request.cell.id;
  record.round = request.round;
  record.started_at = text::now_text();
  try {
    return client_->request(request, hooks_.on_event, request.limits.seconds + grace_seconds);
  } catch (const WorkerDied& error) {
    record.status = Status::crashed;
    record.reason = error.what();
  } catch (const WorkerSilent&) {
    client_->kill();
    record.status = Status::timeout;
    record.reason = "neither the cell nor the worker came to an end within the cell's limit";
  } catch (const WorkerRefused& error) {
    record.status = Status::error;
    record.reason = error.what();
  }
  record.wall_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return record;
}

Measurer::Probed Measurer::probe(const protocol::Probe& request) {
  Probed probed;
  try {
    const Json answer =
        client_->request(request, hooks_.on_event, request.limits.seconds + grace_seconds);
    if (was_cancelled(answer)) throw Cancelled{};
    const std::string fault = result::answer_fault("probe", answer);
    if (!fault.empty()) throw std::runtime_error("the answer is not of its form: " + fault);
    probed.answer = answer.get<DeviceProbe>();
  } catch (const std::runtime_error& error) {
    probed.failure = error.what();
    client_->kill();
  }
  return probed;
}

}  // namespace attnbench::run
