// A ThreadTeam whose threads stay and spin between calls, as those of LibTorch's OpenMP do: for
// timing calls shorter than the start of a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "attention/kernels/team.hpp"

namespace attnbench::test {

class PoolTeam : public kernels::ThreadTeam {
 public:
  explicit PoolTeam(int size) : size_(size) {
    for (int worker = 1; worker < size; ++worker) {
      threads_.emplace_back([this, worker] { serve(worker); });
    }
  }
  ~PoolTeam() override {
    body_ = nullptr;
    ++calls_;
    calls_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  PoolTeam(const PoolTeam&) = delete;
  PoolTeam& operator=(const PoolTeam&) = delete;

  int size() const override { return size_; }
  void run(const std::function<void(int)>& body) override {
    body_ = &body;
    busy_ = size_ - 1;
    ++calls_;
    calls_.notify_all();
    body(0);
    while (busy_ != 0) {
    }
  }

 private:
  void serve(int worker) {
    for (std::uint64_t seen = 0;;) {
      // Long enough for the next call of a loop, short enough to leave the core to others.
      for (int i = 0; i < 100'000 && calls_ == seen; ++i) {
      }
      calls_.wait(seen);
      seen = calls_;
      if (body_ == nullptr) return;
      (*body_)(worker);
      --busy_;
    }
  }

  int size_;
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<int> busy_{0};
  std::vector<std::thread> threads_;
};

}  // namespace attnbench::test
