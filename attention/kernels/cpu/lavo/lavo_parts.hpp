// What the forward pass of the running memory works on: a head's tokens in parts, the sums of the
// parts, what was remembered before each, and how a block is read and written.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "attention/kernels/cpu/lavo/lavo_block.hpp"

namespace attnbench::kernels {

/// Parts that a head's tokens are cut into at the most, fewer where there are many heads, whatever
/// the threads: the same bits for any number of them, and a workspace that does not grow with the
/// tokens.
constexpr std::int64_t most_parts = 16;

/// Parts of whole windows, or of whole blocks.
struct MemoryParts {
  std::int64_t tokens, phase, length, count;

  MemoryParts(const LavoSizes& sizes, std::int64_t all)
      : tokens(0), phase(0), length(all), count(0) {
    const bool windows = sizes.order == MemoryOrder::windows;
    const std::int64_t unit = windows ? sizes.window : memory_tokens;
    if (windows) phase = sizes.phase;
    const std::int64_t units = (length + phase + unit - 1) / unit;
    const std::int64_t most =
        std::clamp<std::int64_t>(32 / (sizes.batch * sizes.heads), 1, most_parts);
    tokens = (units + most - 1) / most * unit;
    if (windows && tokens < memory_tokens) tokens = (memory_tokens + unit - 1) / unit * unit;
    count = tokens == 0 ? 0 : (length + phase + tokens - 1) / tokens;
  }
  std::int64_t begin(std::int64_t k) const { return std::max<std::int64_t>(0, k * tokens - phase); }
  std::int64_t end(std::int64_t k) const { return std::min(length, (k + 1) * tokens - phase); }
};

/// What all workers share: bases, sums of the parts, and the carry as it was.
template <class R>
struct MemoryShared {
  MemoryParts reading, remembering;
  PackedBases<R> bases;
  R* sums;               // [batch * heads, parts, width]
  std::int64_t* counts;  // [batch, parts]
  R *mean, *sum;         // of the carry
  std::int64_t *count, *sum_count;

  MemoryShared(Workspace& space, const LavoSizes& sizes)
      : reading(sizes, sizes.length),
        remembering(sizes, sizes.memory_length),
        bases(space, sizes),
        sums(space.take<R>(sizes.batch * sizes.heads * remembering.count * bases.width)),
        counts(space.take<std::int64_t>(sizes.batch * remembering.count)),
        mean(space.take<R>(sizes.batch * sizes.heads * sizes.bases)),
        sum(space.take<R>(sizes.batch * sizes.heads * sizes.head_dim)),
        count(space.take<std::int64_t>(sizes.batch)),
        sum_count(space.take<std::int64_t>(sizes.batch)) {}

  void take(const LavoSizes& sizes, const MemoryCarry<R>& carry) const {
    const auto copy = [](const auto* from, std::int64_t n, auto* to) {
      if (from == nullptr) {
        std::fill_n(to, n, 0);
      } else {
        std::copy_n(from, n, to);
      }
    };
    copy(carry.mean, sizes.batch * sizes.heads * sizes.bases, mean);
    copy(carry.sum, sizes.batch * sizes.heads * sizes.head_dim, sum);
    copy(carry.count, sizes.batch, count);
    copy(carry.sum_count, sizes.batch, sum_count);
  }
};

/// What one worker holds.
template <class R>
struct MemoryScratch {
  R *query, *tokens, *out;  // [memory_tokens, width]
  R *logits, *means;        // [memory_tokens, rows]
  R* mean;                  // [rows]
  R* sum;                   // [width]
  R* basis_rows;            // [rows, width], for a step
  R *tops, *factors, *own;  // [memory_tokens]: what a query's weights are measured against, 1 /
                            // their sum, and a token's own share over that
  R* lanes;                 // [memory_tokens, of the widest vector]

  MemoryScratch(Workspace& space, const PackedBases<R>& bases, bool step)
      : query(space.take<R>(memory_tokens * bases.width)),
        tokens(space.take<R>(memory_tokens * bases.width)),
        out(space.take<R>(memory_tokens * bases.width)),
        logits(space.take<R>(memory_tokens * bases.rows)),
        means(space.take<R>(memory_tokens * bases.rows)),
        mean(space.take<R>(bases.rows)),
        sum(space.take<R>(bases.width)),
        basis_rows(space.take<R>(step ? bases.rows * bases.width : 0)),
        tops(space.take<R>(memory_tokens)),
        factors(space.take<R>(memory_tokens)),
        own(space.take<R>(memory_tokens)),
        lanes(space.take<R>(memory_tokens * padded(1, sizeof(R)))) {}
};

template <class T>
struct MemoryCall {
  const LavoSizes& sizes;
  const LavoArguments<T>& in;
  MemoryShared<Compute<T>> shared;

  const std::uint8_t* mask(std::int64_t b, std::int64_t t) const {
    return in.key_mask == nullptr ? nullptr : in.key_mask + b * in.mask_stride + t;
  }
};

/// The tokens at `place`, 0 where they are hidden, in whole units: in place or in s.tokens.
template <class T, int Bytes>
ATTNBENCH_INLINE Operand<Compute<T>> open_tokens(const MemoryCall<T>& call,
                                                 const MemoryScratch<Compute<T>>& s,
                                                 const BlockPlace& place) {
  return open_units<T, Bytes>(call.in.tokens, call.mask(place.b, 0), place, call.sizes.head_dim,
                              s.tokens, call.shared.bases.width);
}

/// The sum of one part's tokens.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_part(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                               std::int64_t b, std::int64_t h, std::int64_t k) {
  using R = Compute<T>;
  const MemoryParts& parts = call.shared.remembering;
  const std::int64_t width = call.shared.bases.width;
  R* const sum = call.shared.sums + ((b * call.sizes.heads + h) * parts.count + k) * width;
  std::fill_n(sum, width, R{0});
  std::int64_t count = 0;
  for (std::int64_t t = parts.begin(k); t < parts.end(k); t += memory_tokens) {
    const std::int64_t tokens = std::min(memory_tokens, parts.end(k) - t);
    const Operand<R> x = open_tokens<T, Bytes>(call, s, {b, h, t, tokens});
    add_rows<R, Bytes>(x.data, x.stride, tokens, width, sum);
    count += real_tokens(call.mask(b, t), tokens);
  }
  if (h == 0) call.shared.counts[b * parts.count + k] = count;
}

/// What was remembered before part k, in s.mean; and, in s.sum, of the window begun. Returns the
/// tokens of both.
template <class T, int Bytes>
ATTNBENCH_INLINE std::pair<std::int64_t, std::int64_t> begin_part(
    const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
    std::int64_t k) {
  using R = Compute<T>;
  const auto& [sizes, in, shared] = call;
  const auto& bases = shared.bases;
  const std::int64_t head = b * sizes.heads + h;
  std::fill_n(s.mean, bases.rows, R{0});
  std::fill_n(s.sum, bases.width, R{0});
  std::copy_n(shared.mean + head * sizes.bases, sizes.bases, s.mean);
  std::copy_n(shared.sum + head * sizes.head_dim, sizes.head_dim, s.sum);
  std::int64_t begun = shared.sum_count[b];
  RunningMean<R> mean{s.mean, shared.count[b]};
  const bool all = sizes.order == MemoryOrder::all;
  const std::int64_t before = all ? shared.remembering.count : k;
  if (before == 0) return {mean.count, begun};
  for (std::int64_t i = 0; i < before; ++i) {
    add_rows<R, Bytes>(shared.sums + (head * shared.remembering.count + i) * bases.width,
                       bases.width, 1, bases.width, s.sum);
    begun += shared.counts[b * shared.remembering.count + i];
  }
  bases.template project<Bytes>(h, s.sum, s.means);
  mean.template take<Bytes>(s.means, begun, bases.rows);
  std::fill_n(s.sum, bases.width, R{0});
  return {mean.count, 0};
}

/// What the past comes down to after the last part.
template <class T>
void end_sequence(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s, std::int64_t b,
                  std::int64_t h, std::int64_t count, std::int64_t begun) {
  const auto& sizes = call.sizes;
  const auto& carry = call.in.carry;
  const std::int64_t head = b * sizes.heads + h;
  if (carry.mean == nullptr) return;
  std::copy_n(s.mean, sizes.bases, carry.mean + head * sizes.bases);
  if (h == 0) carry.count[b] = count;
  if (carry.sum == nullptr) return;
  std::copy_n(s.sum, sizes.head_dim, carry.sum + head * sizes.head_dim);
  if (h == 0) carry.sum_count[b] = begun;
}

/// What `tokens` queries from t on have read, in s.out, becomes results.
template <class T>
ATTNBENCH_INLINE void store_block(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                  std::int64_t b, std::int64_t h, std::int64_t t,
                                  std::int64_t tokens, bool empty) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  for (std::int64_t i = 0; i < tokens; ++i) {
    T* const to = call.in.out.at(b, h, t + i);
    const R* const read = s.out + i * call.shared.bases.width;
    if (!sizes.averaged) {
      for (std::int64_t d = 0; d < sizes.head_dim; ++d) narrow(read[d], to[d]);
      continue;
    }
    const T* const own = call.in.tokens.at(b, h, t + i);
    const R share = empty && sizes.alone ? R{1} : R{1} / 2;
    for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
      narrow(share * widen(own[d]) + read[d] / 2, to[d]);
    }
  }
}

}  // namespace attnbench::kernels
