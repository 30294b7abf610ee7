// Aftermath: what still goes on when a call has returned and its clock has stopped.
#pragma once

#include <set>
#include <string>

#include "attention/mechanism.hpp"

namespace attnbench::tasks {

/// Made before a call and asked right after it. Threads that were there before the call are
/// nobody's fault: LibTorch's are made first. On a CPU a thread that is new must have ended or be
/// asleep soon after the call; on every device the output must stay as it was handed over.
class Aftermath {
 public:
  Aftermath();

  /// To be called as soon as the call has returned; takes some 15 ms. What was seen, as a sentence;
  /// empty where all was quiet.
  std::string after(const at::Tensor& output) const;

 private:
  std::set<int> threads_;
};

}  // namespace attnbench::tasks
