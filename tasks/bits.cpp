#include "tasks/bits.hpp"

#include <sstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace attnbench::tasks {
namespace {

XXH128_hash_t hash_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  return XXH3_128bits(plain.data_ptr(), plain.nbytes());
}

/// Integers of the numbers' size, so that NaN can be compared.
at::Tensor as_integers(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  switch (plain.element_size()) {
    case 2:
      return plain.view(at::kShort);
    case 4:
      return plain.view(at::kInt);
    case 8:
      return plain.view(at::kLong);
    default:
      return plain;
  }
}

/// "float32", "int64": LibTorch's own words are those of C++.
std::string word_for(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return at::toString(type);
  }
}

}  // namespace

NamedTensors read_by(const Mechanism& mechanism, const Inputs& inputs) {
  NamedTensors tensors(inputs.tensors.begin(), inputs.tensors.end());
  if (inputs.key_mask.defined()) tensors.emplace_back("key mask", inputs.key_mask);
  for (const auto& item : mechanism.named_parameters()) {
    tensors.emplace_back("parameter " + item.key(), item.value());
  }
  return tensors;
}

Snapshot::Snapshot(NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    Seen seen{name, tensor.detach(), {0, 0}, {}};
    if (tensor.device().is_cpu()) {
      const XXH128_hash_t hash = hash_of(tensor);
      seen.hash[0] = hash.low64;
      seen.hash[1] = hash.high64;
    } else {
      seen.copy = seen.tensor.clone();
    }
    seen_.push_back(std::move(seen));
  }
}

std::string Snapshot::changed() const {
  for (const Seen& seen : seen_) {
    if (seen.copy.defined()) {
      if (!same_bits(seen.tensor, seen.copy)) return seen.name;
      continue;
    }
    const XXH128_hash_t hash = hash_of(seen.tensor);
    if (hash.low64 != seen.hash[0] || hash.high64 != seen.hash[1]) return seen.name;
  }
  return "";
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return at::equal(as_integers(a), as_integers(b));
}

std::int64_t count_not_finite(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor finite = at::isfinite(tensor.detach());
  if (finite.all().item<bool>()) return 0;
  return tensor.numel() - finite.sum().item<std::int64_t>();
}

std::string departure_from(const at::Tensor& output, at::IntArrayRef shape, at::ScalarType type,
                           const at::Device& device) {
  if (!output.defined()) return "no output";
  std::ostringstream text;
  if (output.sizes() != shape) {
    text << "an output of " << output.sizes() << ", expected " << shape;
  } else if (output.scalar_type() != type) {
    text << "an output of " << word_for(output.scalar_type()) << ", expected " << word_for(type);
  } else if (output.device().type() != device.type()) {
    text << "an output on " << output.device().str() << ", expected " << device.str();
  }
  return text.str();
}

}  // namespace attnbench::tasks
