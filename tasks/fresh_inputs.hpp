// Fresh inputs: other numbers for every call, in the same memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::tasks {

/// A tensor that a call reads, and the dimension along which its tokens lie.
struct Given {
  std::string name;
  at::Tensor tensor;
  std::int64_t token_dim = 0;
};

/// Before every call one token of each tensor gets other numbers, and a copy of the tensor the
/// same: so no call finds the numbers of another one, and what they were is known however a
/// mechanism treats its inputs. One token, because rewriting all of them would move them into the
/// cache of one core between any two calls and so change the times; its new numbers are drawn, with
/// a random sign, from those that the tensor began with.
class FreshInputs {
 public:
  /// Takes the memory of the copies. Numbers follow `seed`.
  FreshInputs(std::vector<Given> given, std::uint64_t seed);

  /// Tokens from `begin` to `end` - 1 may be renewed from now on; all, unless said.
  void limit(std::int64_t begin, std::int64_t end);
  void renew();

  const std::vector<Given>& live() const { return live_; }
  /// What the live ones must hold, in the same order.
  const std::vector<Given>& kept() const { return kept_; }
  /// The token of number `index` that was renewed last; -1 before the first time.
  std::int64_t last_token(std::size_t index) const { return last_[index]; }
  /// The name of the first tensor that holds something else than was put there; empty: none does.
  std::string changed() const;

 private:
  std::uint64_t random();
  std::int64_t some_token(const Given& given);
  void write(const Given& given, std::int64_t token, const at::Tensor& row);

  std::vector<Given> live_;
  std::vector<Given> kept_;
  std::vector<at::Tensor> pools_;  ///< in the host's memory: numbers to draw from
  std::vector<at::Tensor> rows_;   ///< likewise, of one token: nothing is allocated between calls
  std::vector<std::int64_t> last_;
  std::uint64_t state_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = -1;  ///< -1 = all
};

}  // namespace attnbench::tasks
