// A ThreadTeam of std::threads, for programs without LibTorch.
#pragma once

#include <thread>
#include <vector>

#include "attention/kernels/team.hpp"

namespace attnbench::test {

class StdTeam : public kernels::ThreadTeam {
 public:
  explicit StdTeam(int size) : size_(size) {}
  int size() const override { return size_; }
  void run(const std::function<void(int)>& body) override {
    std::vector<std::thread> threads;
    for (int worker = 1; worker < size_; ++worker) threads.emplace_back(body, worker);
    body(0);
    for (auto& thread : threads) thread.join();
  }

 private:
  int size_;
};

}  // namespace attnbench::test
