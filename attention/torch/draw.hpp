// Random numbers that depend only on a seed, a name and a shape: the same for every dtype, device,
// mechanism and order of draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"
#include "core/problem.hpp"

namespace attnbench {

/// A generator with this seed: a new one on the CPU, else the device's default generator.
at::Generator seeded_generator(std::uint64_t seed, const at::Device& device);

/// Normal numbers of this standard deviation, drawn in float32 on the CPU and converted to the
/// problem's dtype and device.
at::Tensor draw_normal(std::uint64_t seed, const std::string& name,
                       const std::vector<std::int64_t>& shape, double deviation,
                       const Problem& problem);

/// Normal numbers for large tensors: drawn on the problem's device, which gives other numbers
/// there.
at::Tensor draw_normal_in_place(std::uint64_t seed, const std::string& name,
                                const std::vector<std::int64_t>& shape, double deviation,
                                const Problem& problem);

/// Uniform numbers between `low` and `high`, likewise.
at::Tensor draw_uniform(std::uint64_t seed, const std::string& name,
                        const std::vector<std::int64_t>& shape, double low, double high,
                        const Problem& problem);

}  // namespace attnbench
