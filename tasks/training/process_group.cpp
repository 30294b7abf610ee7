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

namespace attnbench::tasks::training {

std::pair<std::int64_t, std::int64_t> share_of(std::int64_t count, int rank, int size) {
  return {count * rank / size, count * (rank + 1) / size};
}

#ifdef ATTNBENCH_GLOO
namespace {

using Clock = std::chrono::steady_clock;

class GlooGroup final : public ProcessGroup {
 public:
  /// Throws unless all processes join within `join_timeout`; `step_timeout` is the limit of each
  /// later exchange.
  GlooGroup(const ProcessRank& own, const std::string& name, std::chrono::milliseconds join_timeout,
            std::chrono::milliseconds step_timeout)
      : own_(own) {
    const auto begin = Clock::now();
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(own.port);
    options.isServer = own.rank == 0;
    options.numWorkers = static_cast<std::size_t>(own.size);
    options.timeout = join_timeout;
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        name, c10::make_intrusive<c10d::TCPStore>(own.address, options));
    // The first process's store returns without an error when its wait times out.
    if (own.rank == 0 && Clock::now() - begin >= join_timeout) {
      throw Error("not all of them came in time");
    }
    const auto gloo = c10d::ProcessGroupGloo::Options::create(step_timeout);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    gloo->threads = 1;
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, own.rank, own.size, gloo);
    gloo_->barrier()->wait();
  }

  int rank() const override { return own_.rank; }
  int size() const override { return own_.size; }

  void all_reduce(at::Tensor& tensor) override {
    std::vector<at::Tensor> one{tensor};
    gloo_->allreduce(one)->wait();
  }

  void broadcast(at::Tensor& tensor) override {
    std::vector<at::Tensor> one{tensor};
    gloo_->broadcast(one)->wait();
  }

 private:
  const ProcessRank own_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

}  // namespace

bool has_process_groups() { return true; }

std::unique_ptr<ProcessGroup> join_process_group(const ProcessRank& own, const std::string& name,
                                                 double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  // An earlier store of the first process may still be closing: retry.
  using Milliseconds = std::chrono::milliseconds;
  const auto step_timeout = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
  while (true) {
    const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
    try {
      return std::make_unique<GlooGroup>(own, name, std::max(left, Milliseconds(1)), step_timeout);
    } catch (const std::exception& error) {
      if (Clock::now() < end - std::chrono::seconds(1)) {
        std::this_thread::sleep_for(Milliseconds(50));
        continue;
      }
      throw Error("process " + std::to_string(own.rank) + " of " + std::to_string(own.size) +
                  " did not meet the others at " + own.address + ":" + std::to_string(own.port) +
                  " within " + std::to_string(static_cast<int>(seconds)) + " s: " + error.what());
    }
  }
}

#else

bool has_process_groups() { return false; }

std::unique_ptr<ProcessGroup> join_process_group(const ProcessRank& own, const std::string&,
                                                 double) {
  throw Error("this is process " + std::to_string(own.rank) + " of " + std::to_string(own.size) +
              ", but attnbench was built without c10d's Gloo, which trains in several: " +
              ATTNBENCH_GLOO_REFUSAL);
}

#endif

}  // namespace attnbench::tasks::training
