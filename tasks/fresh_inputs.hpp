// Inputs of timed calls: new numbers for every call, in the same memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::tasks {

/// A tensor that a call reads, and the dimension of its tokens.
struct CallInput {
  std::string name;
  at::Tensor tensor;
  std::int64_t token_dim = 0;
};

/// Inputs of calls: before every call one token of each tensor gets new numbers, and so does a copy
/// of the tensor. No call finds the numbers of an earlier one, and the inputs of the last call are
/// known even if a mechanism changes its own. Rewriting more than one token would move the tensors
/// into the cache of one core between calls and so change the times. New numbers are drawn, with a
/// random sign, from the tensor's first ones.
class FreshInputs {
 public:
  /// Allocates the copies. `seed` determines the numbers.
  FreshInputs(std::vector<CallInput> inputs, std::uint64_t seed);

  /// Renews, from now on, only the tokens [begin, end).
  void limit(std::int64_t begin, std::int64_t end);
  void renew();

  /// What the inputs must hold, in the same order.
  const std::vector<CallInput>& copies() const { return copies_; }
  /// The token of input `index` that was renewed last; -1 before the first time.
  std::int64_t last_token(std::size_t index) const { return last_[index]; }
  /// The name of the first input that differs from its copy; empty if none does.
  std::string changed() const;

 private:
  std::uint64_t random();
  std::int64_t random_token(const CallInput& input);
  void write(const CallInput& input, std::int64_t token, const at::Tensor& row);

  std::vector<CallInput> inputs_;
  std::vector<CallInput> copies_;
  std::vector<at::Tensor> pools_;  ///< on the CPU: numbers to draw from
  std::vector<at::Tensor> rows_;   ///< on the CPU: one token each, so that calls need no allocation
  std::vector<std::int64_t> last_;
  std::uint64_t state_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = -1;  ///< -1 = all
};

}  // namespace attnbench::tasks
