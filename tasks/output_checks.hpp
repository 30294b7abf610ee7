// Checks of a call that need no reference: the form of its output, finite numbers, unchanged
// inputs, equal rows of two outputs, nothing left running.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"
#include "tasks/reference_rows.hpp"

namespace attnbench::tasks {

using ReadTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// All that a call may read and must not change: the inputs of a mix by role, its mask as "key
/// mask" and the mechanism's parameters as "parameter NAME".
ReadTensors read_by(const Mechanism& mechanism, const Inputs& inputs);

/// The content of tensors at one moment: a hash of their bytes on the CPU, a copy elsewhere.
class Snapshot {
 public:
  explicit Snapshot(ReadTensors tensors);
  /// The name of the first tensor whose content has changed; empty if none has.
  std::string changed() const;

 private:
  struct Content {
    std::string name;
    at::Tensor tensor;
    std::uint64_t hash[2] = {0, 0};
    at::Tensor copy;  ///< instead of the hash, outside the CPU
  };
  std::vector<Content> contents_;
};

/// Whether both hold the same bits in the same shape and dtype; NaN equals itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// How many numbers of the whole tensor are NaN or infinite.
std::int64_t count_not_finite(const at::Tensor& tensor);

/// The finding in words, "numbers that are not finite: 3 of 64"; empty where all are finite.
std::string not_finite_in(const at::Tensor& tensor);

/// How the form of `output` differs from the expected one, such as "an output of float64, expected
/// float32"; empty where it does not.
std::string form_mismatch(const at::Tensor& output, at::IntArrayRef shape, at::ScalarType type,
                          const at::Device& device);

/// The root mean square of all numbers.
double root_mean_square_of(const at::Tensor& output);

/// Rows of [B, H, T, Dv] whose error is above `bar`, at most `most`, the worst first. The error of
/// a row is the root mean square of a - b over that of b's row or, where greater, of all of `b`:
/// small rows are sums with cancellation, of no relative accuracy.
Rows differing_rows(const at::Tensor& a, const at::Tensor& b, double bar, std::size_t most);

/// The number of such rows, for any dimensions before the last.
std::int64_t count_differing_rows(const at::Tensor& a, const at::Tensor& b, double bar);

/// Finds what still happens after a call has returned and its clock has stopped. Made before the
/// call. On every device the output must stay unchanged. On a CPU a new thread that neither ended
/// nor slept soon after the call is noted, no more: it may belong to a pool whose threads spin.
/// Threads from before the call are ignored; those of LibTorch and its BLAS are started here.
class AfterCallCheck {
 public:
  AfterCallCheck();

  /// A sentence that says why the call was wrong; empty if it was not. Call it as soon as the call
  /// has returned; takes some 15 ms.
  std::string failure(const at::Tensor& output);
  /// A sentence on other observations; empty if there are none.
  const std::string& note() const { return note_; }

 private:
  std::set<int> threads_;
  std::string note_;
};

}  // namespace attnbench::tasks
