#include "tasks/training/process_group.hpp"

#include "core/errors.hpp"

#ifdef ATTNBENCH_GLOO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#pragma GCC diagnostic pop
#endif

#include <chrono>
#include <thread>

namespace attnbench::tasks::learning {

std::pair<std::int64_t, std::int64_t> share_of(std::int64_t count, int rank, int size) {
  return {count * rank / size, count * (rank + 1) / size};
}

#ifdef ATTNBENCH_GLOO
namespace {

using Clock = std::chrono::steady_clock;

class GlooCrew final : public Crew {
 public:
  /// Meets the others within `meeting`; waits for one that has met them for `patience`, in every
  /// step of theirs.
  GlooCrew(const Seat& seat, const std::string& name, std::chrono::milliseconds meeting,
           std::chrono::milliseconds patience)
      : seat_(seat) {
    const auto begin = Clock::now();
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(seat.port);
    options.isServer = seat.rank == 0;
    options.numWorkers = static_cast<std::size_t>(seat.size);
    options.timeout = meeting;
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        name, c10::make_intrusive<c10d::TCPStore>(seat.address, options));
    // The store of the first process ends its wait without a word.
    if (seat.rank == 0 && Clock::now() - begin >= meeting) {
      throw Error("not all of them came in time");
    }
    const auto gloo = c10d::ProcessGroupGloo::Options::create(patience);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    gloo->threads = 1;
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, seat.rank, seat.size, gloo);
    group_->barrier()->wait();
  }

  int rank() const override { return seat_.rank; }
  int size() const override { return seat_.size; }

  void add_up(at::Tensor& tensor) override {
    std::vector<at::Tensor> one{tensor};
    group_->allreduce(one)->wait();
  }

  void take_first(at::Tensor& tensor) override {
    std::vector<at::Tensor> one{tensor};
    group_->broadcast(one)->wait();
  }

 private:
  const Seat seat_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace

bool has_crews() { return true; }

std::unique_ptr<Crew> join_crew(const Seat& seat, const std::string& name, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  // The first process's last store may be closing down: then it is tried again.
  using Milliseconds = std::chrono::milliseconds;
  const auto patience = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
  while (true) {
    const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
    try {
      return std::make_unique<GlooCrew>(seat, name, std::max(left, Milliseconds(1)), patience);
    } catch (const std::exception& error) {
      if (Clock::now() < end - std::chrono::seconds(1)) {
        std::this_thread::sleep_for(Milliseconds(50));
        continue;
      }
      throw Error("process " + std::to_string(seat.rank) + " of " + std::to_string(seat.size) +
                  " did not meet the others at " + seat.address + ":" + std::to_string(seat.port) +
                  " within " + std::to_string(static_cast<int>(seconds)) + " s: " + error.what());
    }
  }
}

#else

bool has_crews() { return false; }

std::unique_ptr<Crew> join_crew(const Seat& seat, const std::string&, double) {
  throw Error("this is process " + std::to_string(seat.rank) + " of " + std::to_string(seat.size) +
              ", but attnbench was built without c10d's Gloo, which trains in several: " +
              ATTNBENCH_GLOO_REFUSAL);
}

#endif

}  // namespace attnbench::tasks::learning
