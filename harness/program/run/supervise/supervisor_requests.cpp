// What the supervisor tells the worker, the journal and the result of the run.
#include <utility>

#include "harness/program/run/folder/run_result.hpp"
#include "harness/program/run/supervise/supervisor.hpp"

namespace attnbench::run {

protocol::Run Supervisor::request_for(const ScheduleStep& step) const {
  const Planned& planned = *step.planned;
  protocol::Run request;
  request.cell = planned.cell;
  request.round = step.round;
  request.seed = settings_.seed;
  request.threads = schedule_->threads_of(planned);
  request.pinned = !schedule_->shares(planned);  // two might take the same CPU
  request.limits = {cell_seconds_, conditions_.memory_bytes(),
                    conditions_.memory_limit(planned.cell.device)};
  request.measure = conditions_.identity().measure;
  request.log = store_->folder().cell_log(planned.id());
  request.checkpoint = store_->folder().checkpoints(planned.id());
  request.binary = conditions_.identity().binary;
  if (!settings_.process_rank.alone()) request.process_rank = settings_.process_rank;
  return request;
}

WorkerOptions Supervisor::worker_options(const process::Build& build) const {
  WorkerOptions options;
  options.plugins = build.plugins;
  options.program = build.worker;
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
  Json header{{"type", "header"},
              {"schema", journal_schema},
              {"suite", settings_.suite.header},
              {"cells", settings_.suite.cells},
              {"measure", settings_.suite.measure},
              {"rounds", rounds_},
              {"plugins", settings_.plugins},
              {"seed", settings_.seed},
              {"threads", settings_.threads},
              {"jobs", settings_.jobs},
              {"blas", conditions_.blas()},
              {"command", settings_.command},
              {"reproduce", settings_.reproduce},
              {"started_at", started_at_},
              {"identity", conditions_.identity()}};
  if (settings_.budget_seconds) header["budget_seconds"] = *settings_.budget_seconds;
  return header;
}

result::Result Supervisor::result(const std::string& state, const std::string& reason) const {
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
  facts.budget_seconds = settings_.budget_seconds;
  facts.plugins = settings_.plugins;
  facts.shard = settings_.shard;
  facts.binary = conditions_.identity().binary;
  facts.suite = settings_.suite.header.get<result::SuiteInfo>();
  facts.machine = conditions_.card();
  facts.blas_core_kept = settings_.keep_blas_core;
  facts.waited_for_quiet_seconds = conditions_.waited_for_quiet_seconds();
  return run_result(facts, schedule_->planned(), store_->records(), store_->probes());
}

}  // namespace attnbench::run
