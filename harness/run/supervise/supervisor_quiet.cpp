// The part of the supervisor that deals with who else is at work on the machine, and with its BLAS.
#include <algorithm>

#include "harness/measure/machine.hpp"
#include "harness/measure/neighbours.hpp"
#include "harness/run/supervise/quiet.hpp"
#include "harness/run/supervise/supervisor.hpp"

namespace attnbench::run {
namespace {

/// Of a training, which takes seconds to hours.
constexpr double look_seconds = 0.25;

bool on_cpu(const Planned& planned) { return planned.cell.value("device", "cpu") == "cpu"; }

}  // namespace

/// What is told of a training is what it learned; the seconds beside it are no measurement.
bool Supervisor::is_timed(const Planned& planned) const {
  return !planned.forecast.value("once", false);
}

/// A run that is gone on with keeps the core type that it began with: its trainings are to end with
/// the same bits.
void Supervisor::take_blas() {
  const bool any = std::any_of(planned_.begin(), planned_.end(), [](const Planned& planned) {
    return planned.runs() && on_cpu(planned);
  });
  if (!any) return;
  std::optional<BlasChoice> earlier;
  if (!settings_.resume.empty() && !settings_.keep_blas_core) {
    const Json header = read_journal(find_run_folder(settings_.resume).journal()).header;
    const Json identity = header.value("identity", Json::object());
    if (identity.value("machine", "") == identity_.value("machine", "")) {
      earlier = blas_choice_from(header.value("blas", Json()));
    }
  }
  if (earlier && earlier->chosen_by != "user") {
    blas_ = *earlier;
  } else {
    Progress notes(settings_.progress, 0);
    blas_ = blas_choice(settings_.keep_blas_core, BlasTrying::allowed,
                        [&](const std::string& sentence) { notes.say(sentence); });
  }
  if (blas_.chosen_by != "library") identity_["blas_core"] = blas_.core_type;
  machine_["blas"] = to_json(blas_);
}

void Supervisor::await_quiet() {
  const bool any = std::any_of(planned_.begin(), planned_.end(), [this](const Planned& planned) {
    return planned.runs() && is_timed(planned) && steps_left(planned) > 0;
  });
  if (!any) return;
  QuietSurroundings surroundings = real_surroundings();
  surroundings.stopped = [this] { return interrupts_->count() > 0; };
  surroundings.say = [this](const std::string& sentence) { progress_->say(sentence); };
  surroundings.show = [this](const std::string& line) { progress_->show(line); };
  const Quiet quiet =
      wait_for_quiet(surroundings, measure::neighbours_from(machine_.at("load")), settings_.threads,
                     usable_cores(), longest_wait(settings_.wait_seconds, on_terminal()));
  if (quiet.waited_seconds > 0) measure::note_neighbours(machine_, quiet.neighbours);
  waited_for_quiet_seconds_ = quiet.waited_seconds;
  if (interrupts_->count() > 0) throw Cancelled{};
}

/// What is timed always waits as on a quiet machine, so that its times can be compared. A training
/// waits passively where others, who come and go, leave too few CPUs for its threads.
Waiting Supervisor::waiting_for(const Planned& planned) {
  if (is_timed(planned) || !on_cpu(planned)) return Waiting::active;
  const int threads = threads_of(planned);
  if (threads == 1) return Waiting::active;
  const measure::Neighbours others = measure::neighbours(look_seconds);
  return measure::crowded(others, threads, usable_cores()) ? Waiting::passive : Waiting::active;
}

/// OpenMP decides how it waits when it is loaded.
void Supervisor::use_worker(Waiting waiting) {
  if (worker_ && worker_waiting_ == waiting) return;
  worker_ = make_worker(nullptr, waiting);
  worker_waiting_ = waiting;
}

}  // namespace attnbench::run
