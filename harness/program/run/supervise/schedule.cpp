#include "harness/program/run/supervise/schedule.hpp"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

namespace attnbench::run {

Schedule::Schedule(std::vector<Planned> planned, const Sharing& sharing)
    : planned_(std::move(planned)), sharing_(sharing) {
  const bool any = std::any_of(planned_.begin(), planned_.end(),
                               [this](const Planned& one) { return shares(one); });
  if (sharing_.jobs < 2 || any || sharing_.sharded) return;
  throw UsageFailure(
      "--jobs " + std::to_string(sharing_.jobs) +
      " is for trainings on the CPU, and there are none here: cells that are timed run "
      "one at a time, because two would share caches, cores and clock; use --shard "
      "on several machines");
}

void Schedule::add(const std::string& cell, int round, bool ok) {
  Done& done = done_[cell];
  done.rounds.insert(round);
  done.failed = done.failed || !ok;
}

bool Schedule::wanted(const Planned& planned, int round) const {
  if (!planned.runs()) return false;
  const bool asked = further_
                         ? further_->cells.contains(planned.id()) && round >= further_->begin &&
                               round < planned.rounds(further_->end)
                         : round < planned.rounds(sharing_.rounds);
  if (!asked) return false;
  const auto found = done_.find(planned.id());
  if (found == done_.end()) return true;
  return !found->second.failed && !found->second.rounds.contains(round);
}

std::size_t Schedule::steps_left(const Planned& planned) const {
  std::size_t steps = 0;
  const int end = further_ ? further_->end : sharing_.rounds;
  for (int round = 0; round < end; ++round) steps += wanted(planned, round) ? 1 : 0;
  return steps;
}

std::size_t Schedule::steps_left() const {
  std::size_t steps = 0;
  for (const Planned& planned : planned_) steps += steps_left(planned);
  return steps;
}

bool Schedule::anything_timed() const {
  return std::any_of(planned_.begin(), planned_.end(), [this](const Planned& planned) {
    return planned.is_timed() && steps_left(planned) > 0;
  });
}

std::optional<ScheduleStep> Schedule::next() {
  const int end = further_ ? further_->end : sharing_.rounds;
  for (; current_round_ < end; ++current_round_, place_ = 0) {
    const bool backwards = is_backwards();
    while (place_ < planned_.size()) {
      const std::size_t place = place_++;
      const Planned& planned = planned_[backwards ? planned_.size() - 1 - place : place];
      if (wanted(planned, current_round_)) return ScheduleStep{&planned, current_round_};
    }
  }
  return std::nullopt;
}

/// A direction that is drawn is the same for the same round, so that a run that is resumed ends as
/// an unbroken one.
bool Schedule::is_backwards() const {
  if (!is_drawn()) return sharing_.in_turns && current_round_ % 2 == 1;
  return std::mt19937(static_cast<std::uint32_t>(current_round_))() % 2 == 1;
}

bool Schedule::next_rounds(const Further& further) {
  further_ = further;
  current_round_ = further.begin;
  place_ = 0;
  return steps_left() > 0;
}

bool Schedule::shares(const Planned& planned) const {
  return sharing_.jobs > 1 && planned.forecast.once && planned.cell.on_cpu();
}

int Schedule::threads_of(const Planned& planned) const {
  return shares(planned) ? std::max(1, sharing_.threads / sharing_.jobs) : sharing_.threads;
}

std::vector<const Planned*> Schedule::side_by_side() const {
  const double share = static_cast<double>(sharing_.memory_bytes) / sharing_.jobs;
  std::vector<const Planned*> trainings;
  for (const Planned& planned : planned_) {
    const bool fits = planned.forecast.peak_bytes.value_or(0) <= share;
    if (shares(planned) && fits && wanted(planned, 0)) trainings.push_back(&planned);
  }
  if (trainings.size() < 2) trainings.clear();
  return trainings;
}

std::optional<std::size_t> Lanes::next() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_ || begun_ == pieces_) return std::nullopt;
  return begun_++;
}

void Lanes::run(std::size_t count, const std::function<void()>& lane) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([this, &lane] {
      try {
        lane();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failed_) failure_ = std::current_exception();
        failed_ = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace attnbench::run
