// Random numbers that depend on a seed, a name and a shape alone: the same for every dtype, device,
// mechanism and order of drawing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

/// A generator in that state: a new one on the CPU, the device's own on any other.
at::Generator seeded_generator(std::uint64_t seed, const at::Device& device);

/// Normal numbers of this standard deviation. Drawn in float32 on the CPU, then given the problem's
/// dtype and device.
at::Tensor draw_normal(std::uint64_t seed, const std::string& name,
                       const std::vector<std::int64_t>& shape, double deviation,
                       const Problem& problem);

/// The same for what is large: on a device of its own drawn there, which gives other numbers.
at::Tensor draw_normal_in_place(std::uint64_t seed, const std::string& name,
                                const std::vector<std::int64_t>& shape, double deviation,
                                const Problem& problem);

/// Uniform numbers between `low` and `high`, likewise.
at::Tensor draw_uniform(std::uint64_t seed, const std::string& name,
                        const std::vector<std::int64_t>& shape, double low, double high,
                        const Problem& problem);

}  // namespace attnbench
