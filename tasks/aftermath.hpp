// Aftermath: what still goes on when a call has returned and its clock has stopped.
#pragma once

#include <set>
#include <string>

#include "attention/mechanism.hpp"

namespace attnbench::tasks {

/// Made before a call and asked right after it. On every device the output must stay as it was
/// handed over. On a CPU a thread that is new and neither ended nor fell asleep soon after the call
/// is said, no more: it may be a pool's, which waits by spinning. Threads that were there before
/// the call are nobody's fault; LibTorch's and its BLAS's are made first.
class Aftermath {
 public:
  Aftermath();

  /// To be called as soon as the call has returned; takes some 15 ms. Why the call was wrong, as a
  /// sentence; empty where it was not.
  std::string after(const at::Tensor& output);
  /// What else was seen, as a sentence; empty where all was quiet.
  const std::string& said() const { return said_; }

 private:
  std::set<int> threads_;
  std::string said_;
};

}  // namespace attnbench::tasks
