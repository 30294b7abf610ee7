#include "tasks/fresh_inputs.hpp"

#include <algorithm>
#include <cstring>

#include "tasks/output_checks.hpp"

namespace attnbench::tasks {
namespace {

/// A larger pool would displace the problem's numbers from a core's first cache.
constexpr std::int64_t pool_size = 512;

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

/// Numbers spread evenly over the tensor.
at::Tensor pool_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.reshape({-1});
  const std::int64_t step = std::max<std::int64_t>(1, flat.numel() / pool_size);
  const at::Tensor some = flat.slice(0, 0, flat.numel(), step);
  return some.slice(0, 0, std::min(some.numel(), pool_size)).cpu().contiguous();
}

bool is_contiguous_on_cpu(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous();
}

}  // namespace

FreshInputs::FreshInputs(std::vector<CallInput> inputs, std::uint64_t seed)
    : inputs_(std::move(inputs)), last_(inputs_.size(), -1), state_(seed) {
  const at::NoGradGuard no_grad;
  for (CallInput& each : inputs_) {
    each.tensor = each.tensor.detach();
    copies_.push_back({each.name, each.tensor.clone(), each.token_dim});
    pools_.push_back(pool_of(each.tensor));
    std::vector<std::int64_t> shape = each.tensor.sizes().vec();
    shape[static_cast<std::size_t>(each.token_dim)] = 1;
    rows_.push_back(at::empty(shape, pools_.back().options()));
  }
}

void FreshInputs::limit(std::int64_t begin, std::int64_t end) {
  begin_ = begin;
  end_ = end;
}

/// SplitMix64 (Steele, Lea and Flood 2014): few operations between calls.
std::uint64_t FreshInputs::random() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::int64_t FreshInputs::random_token(const CallInput& input) {
  const std::int64_t tokens = input.tensor.size(input.token_dim);
  const std::int64_t end = end_ < 0 ? tokens : std::min(end_, tokens);
  const std::int64_t begin = std::min(begin_, end - 1);
  return begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - begin));
}

void FreshInputs::renew() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const CallInput& input = inputs_[i];
    if (input.tensor.numel() == 0) continue;
    last_[i] = random_token(input);
    const at::Tensor& pool = pools_[i];
    const bool has_sign = at::isFloatingType(pool.scalar_type());
    const auto bytes = static_cast<std::size_t>(pool.element_size());
    const auto choices = static_cast<std::uint64_t>(pool.numel());
    const at::Tensor& row = rows_[i];
    const auto* from = static_cast<const unsigned char*>(pool.data_ptr());
    auto* to = static_cast<unsigned char*>(row.data_ptr());
    for (std::int64_t k = 0; k < row.numel(); ++k, to += bytes) {
      const std::uint64_t drawn = random();
      std::memcpy(to, from + (drawn >> 1) % choices * bytes, bytes);
      if (has_sign && (drawn & 1) != 0) to[bytes - 1] ^= 0x80;
    }
    write(input, last_[i], row);
    write(copies_[i], last_[i], row);
  }
}

void FreshInputs::write(const CallInput& input, std::int64_t token, const at::Tensor& row) {
  if (!is_contiguous_on_cpu(input.tensor)) {
    input.tensor.narrow(input.token_dim, token, 1).copy_(row);
    return;
  }
  const at::IntArrayRef sizes = input.tensor.sizes();
  const auto place = static_cast<std::size_t>(input.token_dim);
  const std::int64_t before = product(sizes.slice(0, place));
  const std::int64_t tokens = sizes[place];
  const auto bytes =
      static_cast<std::size_t>(product(sizes.slice(place + 1)) * input.tensor.element_size());
  const auto* from = static_cast<const char*>(row.data_ptr());
  auto* to = static_cast<char*>(input.tensor.data_ptr());
  for (std::int64_t i = 0; i < before; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i * tokens + token) * bytes,
                from + static_cast<std::size_t>(i) * bytes, bytes);
  }
}

std::string FreshInputs::changed() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!same_bits(inputs_[i].tensor, copies_[i].tensor)) return inputs_[i].name;
  }
  return "";
}

}  // namespace attnbench::tasks
