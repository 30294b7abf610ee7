// How the backward pass of the recurrent families is cut and what memory it works in; the pass
// itself is recurrence_gradient.hpp.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/recurrent/intra_block_scores.hpp"
#include "attention/kernels/cpu/recurrent/recurrence.hpp"

namespace attnbench::kernels {

/// What the forward sweep of a slice leaves for each token: the greatest logit that its weights are
/// measured against, their sum, and sum_l P_{t,l} X_{t,l}.
template <class R>
struct TokenSums {
  R *top, *total, *dot;  // [length], and room for a vector behind
  std::int64_t slices;
  std::int64_t stride;  // from one slice's to the next's

  TokenSums of(std::int64_t slice) const {
    const std::int64_t offset = slice * stride;
    return {top + offset, total + offset, dot + offset, slices, stride};
  }
};

/// How the work is cut: `slices` of each head, of `latents` each but the last.
struct GradientPlan {
  std::int64_t heads, slices, latents;

  template <class R, class Sizes>
  static GradientPlan of(const Sizes& sizes, int threads) {
    const std::int64_t heads = sizes.batch * sizes.heads;
    const std::int64_t unit = panel_columns<R>;
    const std::int64_t vectors = (sizes.memory_rows() + unit - 1) / unit;
    const std::int64_t wanted = heads >= threads ? 1 : (threads + heads - 1) / heads;
    const std::int64_t each = (vectors + std::min(wanted, vectors) - 1) / std::min(wanted, vectors);
    return {heads, (vectors + each - 1) / each, each * unit};
  }
  /// Slices kept at once: all, if a head has several; else one for each worker.
  std::int64_t kept(int threads) const {
    return slices > 1 ? heads * slices : std::min<std::int64_t>(heads, threads);
  }
};

/// Whether Z is made by the products of intra_block_scores.hpp: pairs cost the same however large
/// the memory is, and as much for each latent as half a block of columns. Of the whole, not of a
/// slice, for it shows in the last bits.
template <class Sizes>
bool by_products(const Sizes& sizes) {
  return sizes.value_dim >= 64 && sizes.memory_rows() * sizes.value_dim >= 16384;
}

/// What is kept of a slice between its sweeps.
template <class Family>
struct GradientKept {
  using R = typename Family::R;
  std::int64_t blocks;
  Panels<R> x;  // X of the first block; that of block i lies i * x_block further
  std::int64_t x_block;
  R* carried;  // what the family carries, at the start of each block
  std::int64_t carried_stride;
  R* dv;  // [length, width]: the slice's part, where there are several

  GradientKept(Workspace& space, const typename Family::Sizes& sizes, const GradientPlan& plan)
      : blocks((sizes.length + block_tokens - 1) / block_tokens) {
    const std::int64_t latents = padded(plan.latents, sizeof(R));
    x_block = panel_numbers<R>(tokens_in_block(sizes), latents);
    carried_stride = Family::carried_rows * latents;
    x = {space.take<R>(blocks * x_block), tokens_in_block(sizes) * panel_columns<R>};
    carried = space.take<R>(blocks * carried_stride);
    dv = plan.slices > 1 ? space.take<R>(sizes.length * sizes.value_dim) : nullptr;
  }
  Panels<R> x_of(std::int64_t block) const { return {x.data + block * x_block, x.stride}; }
};

/// What one worker holds.
template <class Family>
struct GradientScratch {
  using R = typename Family::R;
  typename Family::Block block;
  bool by_products;
  std::int64_t latents, width, rows, height;  // padded: as columns, and as rows of a memory
  Panels<R> upstream, values;                 // [tokens, width]
  Panels<R> z;                                // [tokens, latents] of a group
  Panels<R> dv;                               // [tokens, width]
  R* by_value;   // [height, latents of a group] for each: sum v E^T forwards, sum g P^T backwards
  R* by_latent;  // [rows, width]: sum P g^T backwards
  R* decay;      // [latents]: of the block after the one that is at work
  R *intra_block, *room;  // where Z is made by products
  R* deltas;              // [tokens], and room for a vector behind
  R* parts;               // [tokens, lanes]: room for sums over latents

  GradientScratch(Workspace& space, const typename Family::Sizes& whole, const GradientPlan& plan)
      : block(space, Family::slice_of(whole, std::min(plan.latents, whole.memory_rows())),
              tokens_in_block(whole)),
        by_products(kernels::by_products(whole)),
        latents(padded(std::min(plan.latents, whole.memory_rows()), sizeof(R))),
        width(padded(whole.value_dim, sizeof(R))),
        rows(latents),
        height(width),
        upstream(take_panels<R>(space, tokens_in_block(whole), width)),
        values(take_panels<R>(space, tokens_in_block(whole), width)),
        z(take_panels<R>(space, tokens_in_block(whole), group_columns<R>)),
        dv(take_panels<R>(space, tokens_in_block(whole), width)),
        by_value(space.take<R>(height * latents)),
        by_latent(space.take<R>(rows * width)),
        decay(space.take<R>(latents)),
        intra_block(
            space.take<R>(by_products ? intra_block_numbers<R>(tokens_in_block(whole)) : 0)),
        room(space.take<R>(
            by_products ? intra_block_room<R>(tokens_in_block(whole), width, group_columns<R>)
                        : 0)),
        deltas(space.take<R>(tokens_in_block(whole) + panel_columns<R>)),
        parts(space.take<R>(tokens_in_block(whole) * panel_columns<R>)) {}
};

/// The workspace of the backward pass, laid out; without memory it only counts.
template <class Family>
struct GradientWorkspace {
  using R = typename Family::R;
  using Sizes = typename Family::Sizes;
  GradientPlan plan;
  std::int64_t sums_stride;
  R* sums;  // three numbers for each token and kept slice
  std::byte *scratch, *kept;
  std::int64_t scratch_bytes, kept_bytes;

  GradientWorkspace(Workspace& space, const Sizes& sizes, int threads)
      : plan(GradientPlan::of<R>(sizes, threads)),
        sums_stride(sizes.length + panel_columns<R>),
        sums(space.take<R>(3 * sums_stride * plan.kept(threads))) {
    Workspace one, other;
    GradientScratch<Family>(one, sizes, plan);
    GradientKept<Family>(other, sizes, plan);
    scratch_bytes = static_cast<std::int64_t>(one.used());
    kept_bytes = static_cast<std::int64_t>(other.used());
    scratch = space.take<std::byte>(scratch_bytes * threads);
    kept = space.take<std::byte>(kept_bytes * plan.kept(threads));
  }
  GradientScratch<Family> scratch_of(const Sizes& sizes, int worker) const {
    Workspace own(scratch + worker * scratch_bytes, static_cast<std::size_t>(scratch_bytes));
    return GradientScratch<Family>(own, sizes, plan);
  }
  GradientKept<Family> kept_of(const Sizes& sizes, std::int64_t index) const {
    Workspace own(kept + index * kept_bytes, static_cast<std::size_t>(kept_bytes));
    return GradientKept<Family>(own, sizes, plan);
  }
  /// The sums over tokens of the slices from kept slice `first` on.
  TokenSums<R> sums_of(std::int64_t first) const {
    R* const from = sums + 3 * sums_stride * first;
    return {from, from + sums_stride, from + 2 * sums_stride, plan.slices, 3 * sums_stride};
  }
};

}  // namespace attnbench::kernels
