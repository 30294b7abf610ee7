// The bits of tensors: whether they changed, and whether all of them are numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench::tasks {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The inputs of a mix by role, its mask as "key mask" and the mechanism's parameters as
/// "parameter NAME": all that a call may read and must leave as it is.
NamedTensors read_by(const Mechanism& mechanism, const Inputs& inputs);

/// What tensors hold at one moment: a hash of their bytes in the host's memory, a copy elsewhere.
class Snapshot {
 public:
  explicit Snapshot(NamedTensors tensors);
  /// The name of the first that holds something else now; empty where none does.
  std::string changed() const;

 private:
  struct Seen {
    std::string name;
    at::Tensor tensor;
    std::uint64_t hash[2] = {0, 0};
    at::Tensor copy;  ///< instead of the hash, on a device of its own
  };
  std::vector<Seen> seen_;
};

/// Whether both hold the same bits in the same shape and dtype; NaN equals itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// Numbers of the whole tensor that are NaN or infinite.
std::int64_t count_not_finite(const at::Tensor& tensor);

/// How `output` departs from the form it must have, such as "an output of float64, expected
/// float32"; empty where it does not.
std::string departure_from(const at::Tensor& output, at::IntArrayRef shape, at::ScalarType type,
                           const at::Device& device);

}  // namespace attnbench::tasks
