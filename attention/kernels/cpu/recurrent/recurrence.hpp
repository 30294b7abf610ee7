// The forward pass that the recurrent families share: heads and columns of values as items, tokens
// in blocks, a memory that is carried through `scan`. A family says how a block's inputs become the
// e, p and decay of `scan`, and what else it carries.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/block_rows.hpp"
#include "attention/kernels/cpu/recurrent/state_scan.hpp"
#include "attention/kernels/team.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens of one block: longer ones fall out of the first cache, shorter ones move the memory more.
constexpr std::int64_t block_tokens = 48;

template <class Sizes>
std::int64_t tokens_in_block(const Sizes& sizes) {
  return std::min(sizes.length, block_tokens);
}

/// What one item computes: a head, and columns of its values (`columns` without padding).
struct RecurrentItem {
  std::int64_t b, h, column, columns;
};

/// Columns of one item. With fewer heads than threads the columns of a head are shared out; each
/// item then prepares the blocks for itself.
template <class R, class Sizes>
std::int64_t item_columns(const Sizes& sizes, int threads) {
  const std::int64_t all = padded(sizes.value_dim, sizeof(R));
  const std::int64_t unit = padded(1, sizeof(R));
  std::int64_t slices = 1;
  while (sizes.batch * sizes.heads * slices < threads && slices * 2 * unit <= all) slices *= 2;
  return (all / unit + slices - 1) / slices * unit;
}

/// Latents that are weighed and scanned at a time: what passes between lies in the first cache.
template <class R>
constexpr std::int64_t group_columns = 256 / static_cast<std::int64_t>(sizeof(R));

/// A block's keys and queries.
template <class R>
struct Opened {
  Operand<R> keys, queries;
  std::int64_t tokens;
};

/// What one worker holds: the family's block, the values and results of a block, the memory.
template <class Family>
struct RecurrentScratch {
  using R = typename Family::R;
  typename Family::Block block;
  std::int64_t columns;
  std::int64_t rows;      // of the memory, padded
  Panels<R> values, out;  // [tokens, columns]
  R* state;               // [rows, columns]

  RecurrentScratch(Workspace& space, const typename Family::Sizes& sizes, int threads)
      : block(space, sizes, tokens_in_block(sizes)),
        columns(item_columns<R>(sizes, threads)),
        rows((sizes.memory_rows() + latent_unit - 1) / latent_unit * latent_unit),
        values(take_panels<R>(space, tokens_in_block(sizes), columns)),
        out(take_panels<R>(space, tokens_in_block(sizes), columns)),
        state(space.take<R>(rows * columns)) {}
};

/// The memory as an item works on it, rows apart by the stride.
template <class R>
struct Memory {
  R* data;
  std::int64_t stride;
};

/// An empty memory in the scratch; or, where `carried` [rows, value_dim] is not null, its columns
/// of the item: in place if no padding is needed, else copied.
template <class R>
Memory<R> open_memory(R* carried, std::int64_t carried_stride, std::int64_t rows,
                      const RecurrentItem& item, R* scratch, std::int64_t padded_rows,
                      std::int64_t columns) {
  if (carried != nullptr && rows == padded_rows && item.columns == columns) {
    return {carried + item.column, carried_stride};
  }
  std::fill_n(scratch, padded_rows * columns, R{0});
  for (std::int64_t l = 0; carried != nullptr && l < rows; ++l) {
    std::copy_n(carried + l * carried_stride + item.column, item.columns, scratch + l * columns);
  }
  return {scratch, columns};
}

/// Brings a copied memory back.
template <class R>
void close_memory(const Memory<R>& memory, R* carried, std::int64_t carried_stride,
                  std::int64_t rows, const RecurrentItem& item) {
  if (carried == nullptr || memory.data == carried + item.column) return;
  for (std::int64_t l = 0; l < rows; ++l) {
    std::copy_n(memory.data + l * memory.stride, item.columns,
                carried + l * carried_stride + item.column);
  }
}

/// What to fetch of token t0 and those after it, if there are any: inputs, and where results go.
template <class Family>
Prefetch inputs_ahead(const typename Family::Sizes& sizes,
                      const typename Family::Arguments& arguments, const RecurrentItem& item,
                      std::int64_t t0) {
  Prefetch prefetch(block_tokens);
  if (t0 >= sizes.length) return prefetch;
  prefetch.add(Family::keys(arguments), item.b, item.h, t0, sizes.memory_rows());
  prefetch.add(arguments.query, item.b, item.h, t0, sizes.memory_rows());
  prefetch.add(arguments.values, item.b, item.h, t0, item.columns);
  prefetch.add(arguments.out, item.b, item.h, t0, item.columns);
  return prefetch;
}

/// Some columns of rows.
struct Columns {
  std::int64_t first, count;
  std::int64_t padded;  ///< what the scan takes for `count`
};

/// These columns of the rows at `place` where they lie, if they can be scanned there: as they are
/// computed with, unpadded, in whole cache lines, and no further apart than lets a block of them
/// into the first cache. Else no data.
template <class R, class T>
Panels<std::conditional_t<std::is_const_v<T>, const R, R>> lying_panels(const Rows<T>& rows,
                                                                        const BlockPlace& place,
                                                                        const Columns& columns) {
  constexpr std::int64_t line = panel_columns<R>;
  if constexpr (std::is_same_v<std::remove_const_t<T>, R>) {
    T* const first = rows.at(place.b, place.h, place.t0) + columns.first;
    if (columns.count == columns.padded && reinterpret_cast<std::uintptr_t>(first) % 64 == 0 &&
        rows.row_stride % line == 0 && rows.row_stride <= 4 * line) {
      return {first, line, rows.row_stride};
    }
  }
  return {};
}

/// Values, scanned where they lie if they can be, else from panels `to`.
template <class T, int Bytes>
Panels<const Compute<T>> open_values(const Rows<const T>& rows, const std::uint8_t* mask,
                                     const BlockPlace& place, const Columns& columns,
                                     const Panels<Compute<T>>& to) {
  if (mask == nullptr) {
    const auto lying = lying_panels<Compute<T>>(rows, place, columns);
    if (lying.data != nullptr) return lying;
  }
  load_panels<T, Bytes>(rows, mask, place, columns.first, columns.count, to);
  return to;
}

template <class Family, int Bytes>
void recurrent_item(const typename Family::Sizes& sizes,
                    const typename Family::Arguments& arguments, const RecurrentItem& item,
                    const RecurrentScratch<Family>& s) {
  using R = typename Family::R;
  using T = typename Family::T;
  const Memory<R> memory = Family::begin(sizes, arguments, item, s);
  const std::uint8_t* mask =
      arguments.key_mask == nullptr ? nullptr : arguments.key_mask + item.b * arguments.mask_stride;
  for (std::int64_t t0 = 0; t0 < sizes.length;) {
    BlockPlace place{item.b, item.h, t0, std::min(block_tokens, sizes.length - t0)};
    const Opened<R> opened = Family::template open<Bytes>(sizes, arguments, s.block, mask, place);
    place.tokens = opened.tokens;
    const Columns columns{item.column, item.columns, s.columns};
    const Panels<const R> values =
        open_values<T, Bytes>(arguments.values, mask, place, columns, s.values);
    Panels<R> out = lying_panels<R>(arguments.out, place, columns);
    if (out.data == nullptr) out = s.out;
    Prefetch prefetch = inputs_ahead<Family>(sizes, arguments, item, t0 + place.tokens);
    for (std::int64_t l = 0; l < s.rows; l += group_columns<R>) {
      const std::int64_t end = std::min(l + group_columns<R>, s.block.stride);
      Family::template weigh<Bytes>(sizes, s.block, opened, l, end);
      const bool last = l + group_columns<R> >= s.rows;
      if (last) Family::template close<Bytes>(sizes, s.block, place.tokens);
      const ScanBlock<R> block{place.tokens,
                               std::min(group_columns<R>, s.rows - l),
                               s.columns,
                               s.block.scores,
                               s.block.weights,
                               values,
                               out,
                               memory.data + l * memory.stride,
                               memory.stride,
                               s.block.decay + l,
                               &prefetch,
                               l > 0,
                               last ? s.block.factors : nullptr};
      if (place.tokens == 1) {
        scan_token<R, Bytes>(block);
      } else {
        scan<R, Bytes, Decay::rows, Order::forwards>(block);
      }
    }
    if (out.data == s.out.data) {
      store_panels<T, Bytes>(out, nullptr, arguments.out, place, item.column, item.columns);
    }
    t0 += place.tokens;
  }
  Family::end(sizes, arguments, item, s, memory);
}

template <class Family>
using RecurrentFunction = void (*)(const typename Family::Sizes&, const typename Family::Arguments&,
                                   const RecurrentItem&, const RecurrentScratch<Family>&);

/// Items that a head's columns are cut into.
template <class R, class Sizes>
std::int64_t item_slices(const Sizes& sizes, int threads) {
  const std::int64_t columns = item_columns<R>(sizes, threads);
  return (sizes.value_dim + columns - 1) / columns;
}

template <class Family>
std::size_t recurrent_scratch_bytes(const typename Family::Sizes& sizes, int threads) {
  Workspace count;
  RecurrentScratch<Family>(count, sizes, threads);
  return count.used();
}

/// Runs all items, each with scratch of its worker's out of `space`.
template <class Family>
void recurrent_forward(const typename Family::Sizes& sizes,
                       const typename Family::Arguments& arguments, ThreadTeam& team,
                       Workspace& space) {
  using R = typename Family::R;
  const auto each = static_cast<std::int64_t>(recurrent_scratch_bytes<Family>(sizes, team.size()));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const RecurrentFunction<Family> run = pick<RecurrentFunction<Family>>(
      recurrent_item<Family, baseline_bytes>, recurrent_item<Family, avx2_bytes>,
      recurrent_item<Family, avx512_bytes>);
  const std::int64_t columns = item_columns<R>(sizes, team.size());
  const std::int64_t slices = item_slices<R>(sizes, team.size());
  const std::int64_t items = sizes.batch * sizes.heads * slices;
  // A single token is soon done: its heads are handed out some at a time, in the order in which
  // their memories lie.
  const std::int64_t run_length =
      sizes.length > 1 ? 1 : std::max<std::int64_t>(1, items / (4 * team.size()));
  share(team, (items + run_length - 1) / run_length, [&](int worker, std::int64_t share_index) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const RecurrentScratch<Family> s(own, sizes, team.size());
    const std::int64_t end = std::min(items, (share_index + 1) * run_length);
    for (std::int64_t index = share_index * run_length; index < end; ++index) {
      const std::int64_t head = index / slices;
      const std::int64_t column = index % slices * columns;
      run(sizes, arguments,
          {head / sizes.heads, head % sizes.heads, column,
           std::min(columns, sizes.value_dim - column)},
          s);
    }
  });
}

}  // namespace attnbench::kernels
