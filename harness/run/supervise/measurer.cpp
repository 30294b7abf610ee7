#include "harness/run/supervise/measurer.hpp"

#include <stdexcept>
#include <utility>

#include "core/schema/result_check.hpp"
#include "harness/run/folder/combine.hpp"
#include "harness/run/folder/run_result.hpp"

namespace attnbench::run {
namespace {

using Clock = std::chrono::steady_clock;

/// How much longer than a limit we wait for the worker to enforce it.
constexpr double grace_seconds = 5;
/// What a worker gets to act on an interrupt; one that was stopped (SIGSTOP) never does.
constexpr auto cancel_patience = std::chrono::seconds(3);

/// `record` where it is one of this cell and round; else one that says why it is none. What is
/// appended to the journal is read back by every later start.
Json held_to_schema(Json record, const Planned& planned, int round) {
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

/// A worker says "cancelled" only after it was told of an interrupt; anything else is no answer.
bool Measurer::was_cancelled(const Json& answer) const {
  return answer.value("type", Json()) == "cancelled" && hooks_.interrupts() > 0;
}

std::optional<Json> Measurer::measure(const Planned& planned, const protocol::Run& request) {
  Json record = answer_or_failure(request);
  if (was_cancelled(record)) return std::nullopt;
  return held_to_schema(std::move(record), planned, request.round);
}

Json Measurer::answer_or_failure(const protocol::Run& request) {
  const auto begin = Clock::now();
  Json record = {{"type", "record"},
                 {"cell", request.cell.id},
                 {"round", request.round},
                 {"started_at", now_text()}};
  try {
    return client_->request(request, hooks_.on_event, request.limits.seconds + grace_seconds);
  } catch (const WorkerDied& error) {
    record["status"] = "crashed";
    record["reason"] = error.what();
  } catch (const WorkerSilent&) {
    client_->kill();
    record["status"] = "timeout";
    record["reason"] = "neither the cell nor the worker came to an end within the cell's limit";
  } catch (const WorkerRefused& error) {
    record["status"] = "error";
    record["reason"] = error.what();
  }
  record["wall_seconds"] = std::chrono::duration<double>(Clock::now() - begin).count();
  return record;
}

Measurer::Probed Measurer::probe(const protocol::Probe& request) {
  Probed probed;
  try {
    Json answer =
        client_->request(request, hooks_.on_event, request.limits.seconds + grace_seconds);
    if (was_cancelled(answer)) throw Cancelled{};
    const std::string fault = result::answer_fault("probe", answer);
    if (!fault.empty()) throw std::runtime_error("the answer is not of its form: " + fault);
    probed.answer = std::move(answer);
  } catch (const std::runtime_error& error) {
    probed.failure = error.what();
    client_->kill();
  }
  return probed;
}

}  // namespace attnbench::run
