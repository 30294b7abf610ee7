#include "attention/torch/draw.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "attention/mechanism.hpp"

namespace attnbench {
namespace {

/// FNV-1a of the seed, a name and sizes.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name,
                      const std::vector<std::int64_t>& shape) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto take = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 1099511628211ull;
    }
  };
  take(seed);
  for (const char c : name) take(static_cast<unsigned char>(c));
  for (const auto size : shape) take(static_cast<std::uint64_t>(size));
  return hash;
}

at::Generator generator_of(std::uint64_t seed, const std::string& name,
                           const std::vector<std::int64_t>& shape) {
  return seeded_generator(seed_of(seed, name, shape), at::kCPU);
}

at::Tensor placed(const at::Tensor& numbers, const Problem& problem) {
  return numbers.to(at::Device(problem.device), scalar_type(problem.dtype));
}

}  // namespace

at::Generator seeded_generator(std::uint64_t seed, const at::Device& device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed);
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
  return generator;
}

at::Tensor draw_normal_in_place(std::uint64_t seed, const std::string& name,
                                const std::vector<std::int64_t>& shape, double deviation,
                                const Problem& problem) {
  if (problem.device == "cpu") return draw_normal(seed, name, shape, deviation, problem);
  const at::Device device(problem.device);
  const at::Generator generator = seeded_generator(seed_of(seed, name, shape), device);
  const auto numbers = at::randn(shape, generator, at::TensorOptions(at::kFloat).device(device));
  return placed(at::Tensor(numbers).mul_(deviation), problem);
}

at::Tensor draw_normal(std::uint64_t seed, const std::string& name,
                       const std::vector<std::int64_t>& shape, double deviation,
                       const Problem& problem) {
  const auto generator = generator_of(seed, name, shape);
  return placed(at::randn(shape, generator, at::kFloat).mul_(deviation), problem);
}

at::Tensor draw_uniform(std::uint64_t seed, const std::string& name,
                        const std::vector<std::int64_t>& shape, double low, double high,
                        const Problem& problem) {
  const auto generator = generator_of(seed, name, shape);
  return placed(at::rand(shape, generator, at::kFloat).mul_(high - low).add_(low), problem);
}

}  // namespace attnbench
