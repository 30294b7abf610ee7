#include "tasks/fresh_inputs.hpp"

#include <algorithm>
#include <cstring>

#include "tasks/bits.hpp"

namespace attnbench::tasks {
namespace {

/// More numbers to draw from would leave a core's first cache with less of the problem's own.
constexpr std::int64_t pool_size = 512;

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

/// Evenly from the whole tensor.
at::Tensor pool_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.reshape({-1});
  const std::int64_t step = std::max<std::int64_t>(1, flat.numel() / pool_size);
  const at::Tensor some = flat.slice(0, 0, flat.numel(), step);
  return some.slice(0, 0, std::min(some.numel(), pool_size)).cpu().contiguous();
}

bool writes_plainly(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous();
}

}  // namespace

FreshInputs::FreshInputs(std::vector<Given> given, std::uint64_t seed)
    : live_(std::move(given)), last_(live_.size(), -1), state_(seed) {
  const at::NoGradGuard no_grad;
  for (Given& each : live_) {
    each.tensor = each.tensor.detach();
    kept_.push_back({each.name, each.tensor.clone(), each.token_dim});
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

/// SplitMix64 (Steele, Lea and Flood 2014): a few operations, so that little goes on between calls.
std::uint64_t FreshInputs::random() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::int64_t FreshInputs::some_token(const Given& given) {
  const std::int64_t tokens = given.tensor.size(given.token_dim);
  const std::int64_t end = end_ < 0 ? tokens : std::min(end_, tokens);
  const std::int64_t begin = std::min(begin_, end - 1);
  return begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - begin));
}

void FreshInputs::renew() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const Given& live = live_[i];
    if (live.tensor.numel() == 0) continue;
    last_[i] = some_token(live);
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
    write(live, last_[i], row);
    write(kept_[i], last_[i], row);
  }
}

void FreshInputs::write(const Given& given, std::int64_t token, const at::Tensor& row) {
  if (!writes_plainly(given.tensor)) {
    given.tensor.narrow(given.token_dim, token, 1).copy_(row);
    return;
  }
  const at::IntArrayRef sizes = given.tensor.sizes();
  const auto place = static_cast<std::size_t>(given.token_dim);
  const std::int64_t before = product(sizes.slice(0, place));
  const std::int64_t tokens = sizes[place];
  const auto bytes =
      static_cast<std::size_t>(product(sizes.slice(place + 1)) * given.tensor.element_size());
  const auto* from = static_cast<const char*>(row.data_ptr());
  auto* to = static_cast<char*>(given.tensor.data_ptr());
  for (std::int64_t i = 0; i < before; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i * tokens + token) * bytes,
                from + static_cast<std::size_t>(i) * bytes, bytes);
  }
}

std::string FreshInputs::changed() const {
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (!same_bits(live_[i].tensor, kept_[i].tensor)) return live_[i].name;
  }
  return "";
}

}  // namespace attnbench::tasks
