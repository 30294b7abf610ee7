#include "attention/algorithms/lavo/lavo.hpp"

#include <algorithm>

#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::lavo {
namespace {

using at::Tensor;

/// x [B, H, n, D] along the bases: [B, H, n, r].
Tensor along(const Tensor& x, const Memory& memory) {
  return at::matmul(x, memory.bases.transpose(-2, -1));
}

/// Counts [B or 1, n] as a divisor [B or 1, 1, n, 1] of type `like`, 1 at least.
Tensor divisor(const Tensor& counts, const Tensor& like) {
  return counts.clamp_min(1).to(like.scalar_type()).unsqueeze(1).unsqueeze(-1);
}

/// Coordinates of the means after each of n additions of sums [B, H, n, r] over counts [B or 1, n]
/// tokens, as the previous mean plus the average deviation from it; and the counts after each.
std::pair<Tensor, Tensor> means_after(const Tensor& sums, const Tensor& counts,
                                      const Carry& carry) {
  const Tensor before = carry.u.unsqueeze(2);
  const Tensor weights = counts.to(sums.scalar_type()).unsqueeze(1).unsqueeze(-1);
  const Tensor totals = carry.count.unsqueeze(1) + counts.cumsum(1);
  return {before + (sums - weights * before).cumsum(2) / divisor(totals, sums), totals};
}

/// x [B, H, n, w] as [B, H, blocks, size, w], padded with 0.
Tensor blocked(const Tensor& x, std::int64_t size) {
  const std::int64_t blocks = (x.size(2) + size - 1) / size;
  return at::constant_pad_nd(x, {0, 0, 0, blocks * size - x.size(2)})
      .unflatten(2, at::IntArrayRef{blocks, size});
}

/// [B or 1, blocks] real tokens in each block of `size` of n.
Tensor counts_of(const Tensor& mask, std::int64_t n, std::int64_t size, const Tensor& like) {
  const Tensor real = mask.defined()
                          ? mask
                          : at::ones({1, n}, like.options().dtype(at::kBool).requires_grad(false));
  const std::int64_t blocks = (n + size - 1) / size;
  return at::constant_pad_nd(real, {0, blocks * size - n})
      .unflatten(1, at::IntArrayRef{blocks, size})
      .sum(-1);
}

/// a u with a = softmax(c u), for logits c and coordinates u that broadcast.
Tensor slots_read(const Tensor& logits, const Tensor& u) { return at::softmax(logits * u, -1) * u; }

/// The values before each of n steps: `first`, then all but the last of `after`, along `dim`.
Tensor shifted(const Tensor& first, const Tensor& after, std::int64_t dim) {
  const std::int64_t n = after.size(dim);
  if (n == 1) return first.unsqueeze(dim);
  return at::cat({first.unsqueeze(dim), after.narrow(dim, 0, n - 1)}, dim);
}

}  // namespace

Carry empty_carry(std::int64_t batch, const Tensor& bases, bool dissected) {
  const auto numbers = bases.options().requires_grad(false);
  const auto integers = numbers.dtype(at::kLong);
  Carry carry;
  carry.u = at::zeros({batch, bases.size(0), bases.size(1)}, numbers);
  carry.count = at::zeros({batch}, integers);
  if (dissected) {
    carry.sum = at::zeros({batch, bases.size(0), bases.size(2)}, numbers);
    carry.sum_count = at::zeros({batch}, integers);
  }
  return carry;
}

Tensor compressed(const Tensor& x, const Tensor& mask, const Memory& memory) {
  const std::int64_t length = x.size(2);
  const Tensor count = counts_of(mask, length, length, x);  // [B or 1, 1]
  const Tensor mean = without_padding(x, mask).sum(2, true) / divisor(count, x);
  return along(mean, memory).squeeze(2);
}

Tensor read(const Tensor& query, const Tensor& u, const Memory& memory) {
  return at::matmul(slots_read(along(query, memory) * memory.scale, u.unsqueeze(2)), memory.bases);
}

Tensor running(const Tensor& query, const Tensor& x, const Tensor& mask, const Memory& memory,
               Carry& carry) {
  const std::int64_t n = x.size(2);
  const Tensor counts = counts_of(mask, n, 1, x);
  const auto [u, totals] = means_after(along(without_padding(x, mask), memory), counts, carry);
  carry.u = u.select(2, n - 1);
  carry.count = totals.select(1, n - 1);
  return at::matmul(slots_read(along(query, memory) * memory.scale, u), memory.bases);
}

Tensor dissected(const Tensor& query, const Tensor& local, const Tensor& mask, const Memory& memory,
                 const Windows& windows, Carry& carry) {
  const std::int64_t n = query.size(2);
  const std::int64_t size = windows.phase == 0 ? std::min(windows.window, n) : n;
  Tensor sums = blocked(without_padding(local, mask), size).sum(3);  // [B, H, blocks, D]
  Tensor counts = counts_of(mask, n, size, local).expand({query.size(0), -1});
  const std::int64_t last = sums.size(2) - 1;
  // The first block continues the window in the carry.
  const auto with_first = [last](const Tensor& first, const Tensor& each, std::int64_t dim) {
    const Tensor begun = first.unsqueeze(dim) + each.narrow(dim, 0, 1);
    return last == 0 ? begun : at::cat({begun, each.narrow(dim, 1, last)}, dim);
  };
  sums = with_first(carry.sum, sums, 2);
  counts = with_first(carry.sum_count, counts, 1);

  const auto [after, totals_after] = means_after(along(sums, memory), counts, carry);
  const Tensor u = shifted(carry.u, after, 2);
  const Tensor totals = shifted(carry.count, totals_after, 1);
  const Tensor logits = blocked(along(query, memory) * memory.scale, size);
  const Tensor weights = slots_read(logits, u.unsqueeze(3)).flatten(2, 3).narrow(2, 0, n);
  Tensor output = (local + at::matmul(weights, memory.bases)) / 2;
  if (windows.local_alone) {
    const Tensor alone = (totals == 0).repeat_interleave(size, 1).narrow(1, 0, n);
    output = at::where(alone.unsqueeze(1).unsqueeze(-1), local, output);
  }

  const bool complete = windows.phase + n - last * size == windows.window;
  carry.u = complete ? after.select(2, last) : u.select(2, last);
  carry.count = complete ? totals_after.select(1, last) : totals.select(1, last);
  carry.sum = complete ? at::zeros_like(carry.sum) : sums.select(2, last);
  carry.sum_count = complete ? at::zeros_like(carry.sum_count) : counts.select(1, last);
  return output;
}

}  // namespace attnbench::lavo
