// The backward pass that the recurrent families share. With E and P [tokens, L] as the family made
// them of keys and queries, v the values and g the gradient of the results, o_t = P_t S_t and
// S_t = sum_{s<=t} E_s v_s^T give
//   X_t = dLoss/dP_t = sum_{s<=t} (g_t . v_s) E_s,
//   Z_s = dLoss/dE_s = sum_{t>=s} (v_s . g_t) P_t,
//   dLoss/dv_s       = sum_{t>=s} (E_s . P_t) g_t:
// each is the scan of state_scan.hpp over other operands, the first forwards, the other two
// backwards. 12 L D operations a token in all, and no products inside blocks. Where the memory is
// large, Z is read from that of dLoss/dv instead, with products inside blocks: see
// intra_block_scores.hpp.
//
// With fewer heads than threads the latents of a head are shared out in slices. They meet in a few
// numbers for each token, and in dLoss/dv, to which each slice gives a part; so there, and only
// there, the number of threads shows in the last bits.
#pragma once

#include <vector>

#include "attention/kernels/cpu/recurrent/gradient_plan.hpp"

namespace attnbench::kernels {

/// One slice: the sweeps, for a family's instance `f` that knows arguments, batch row, head and
/// latents.
template <class Family, int Bytes>
class GradientSweep {
  using R = typename Family::R;
  using T = typename Family::T;

 public:
  GradientSweep(const Family& family, const GradientScratch<Family>& scratch,
                const GradientKept<Family>& kept, const TokenSums<R>& sums, std::int64_t slice)
      : f_(family), s_(scratch), kept_(kept), sums_(sums), own_(sums.of(slice)) {}

  void forwards() const {
    const std::int64_t length = f_.sizes.length;
    std::fill_n(s_.by_value, s_.height * s_.latents, R{0});
    f_.begin(s_.block);
    for (std::int64_t i = 0; i < kept_.blocks; ++i) {
      const std::int64_t t0 = i * block_tokens;
      const std::int64_t end = std::min(length, t0 + block_tokens);
      f_.save(s_.block, kept_.carried + i * kept_.carried_stride);
      for (std::int64_t t = t0; t < end;) t += advance(kept_.x_of(i), t0, t, end);
    }
  }

  void backwards() const {
    const std::int64_t length = f_.sizes.length;
    if (!s_.by_products) std::fill_n(s_.by_value, s_.height * s_.latents, R{0});
    std::fill_n(s_.by_latent, s_.rows * s_.width, R{0});
    std::fill_n(s_.decay, s_.latents, R{0});
    f_.begin_gradient(s_.block);
    for (std::int64_t i = kept_.blocks - 1; i >= 0; --i) {
      const std::int64_t t0 = i * block_tokens;
      back_through(i, t0, std::min(length, t0 + block_tokens));
    }
  }

 private:
  Panels<const R> open(const Rows<const T>& from, const std::uint8_t* mask, std::int64_t t,
                       std::int64_t tokens, const Panels<R>& room) const {
    return open_values<T, Bytes>(from, mask, {f_.b, f_.h, t, tokens},
                                 {0, f_.sizes.value_dim, s_.width}, room);
  }
  /// Calls the inputs of the tokens from t on.
  void call(Prefetch& prefetch, std::int64_t t) const {
    prefetch.add(f_.keys(), f_.b, f_.h, t, f_.sizes.memory_rows());
    prefetch.add(f_.arguments.query, f_.b, f_.h, t, f_.sizes.memory_rows());
    prefetch.add(f_.arguments.values, f_.b, f_.h, t, f_.sizes.value_dim);
    prefetch.add(f_.gradients.d_out, f_.b, f_.h, t, f_.sizes.value_dim);
  }

  /// Calls a block of X, which lies in one piece.
  void call_x(Prefetch& prefetch, const R* x) const {
    const std::int64_t bytes = kept_.x_block / block_tokens * static_cast<std::int64_t>(sizeof(R));
    prefetch.add(x, bytes, bytes);
  }

  /// `body(begin, end)` for the groups of latents, in rising order.
  template <class Body>
  void for_groups(const Body& body) const {
    for (std::int64_t l = 0; l < s_.latents; l += group_columns<R>) {
      body(l, std::min(l + group_columns<R>, s_.latents));
    }
  }

  /// X of as many tokens from t on as fit, and their sums. Returns the tokens.
  std::int64_t advance(const Panels<R>& x_block, std::int64_t t0, std::int64_t t,
                       std::int64_t end) const {
    const auto& s = s_;
    const Opened<R> opened = f_.template open<Bytes>(s.block, t, end - t);
    const std::int64_t n = opened.tokens;
    const Panels<const R> values = open(f_.arguments.values, f_.mask(), t, n, s.values);
    const Panels<const R> upstream = open(f_.gradients.d_out, nullptr, t, n, s.upstream);
    Prefetch prefetch(block_tokens);
    if (t + n < f_.sizes.length) call(prefetch, t + n);
    if (t0 + block_tokens < f_.sizes.length) call_x(prefetch, x_block.data + kept_.x_block);
    for_groups([&](std::int64_t l, std::int64_t last) {
      f_.template weigh<Bytes, false>(s.block, opened, l, last);
      const Panels<R> x{x_block.at(t - t0, l), x_block.stride};
      scan<R, Bytes, Decay::columns, Order::forwards>({n, s.height, last - l, values, upstream,
                                                       s.block.scores, x, s.by_value + l * s.height,
                                                       last - l, s.block.decay + l, &prefetch});
      dot_rows<R, Bytes>(s.block.weights, x, n, last - l, l > 0, s.parts);
    });
    sum_parts<R, Bytes>(s.parts, n, own_.dot + t);
    f_.template keep_sums<Bytes>(s.block, own_, t, n);
    return n;
  }

  /// Opens tokens whose sums are known.
  Opened<R> open_again(std::int64_t t, std::int64_t tokens) const {
    const Opened<R> opened = f_.template open_again<Bytes>(s_.block, own_, t, tokens);
    f_.template merge<Bytes>(sums_, own_, t, opened.tokens, s_.block.factors, s_.deltas);
    return opened;
  }

  /// Backwards through block i, which may fall into parts: each is reached from its start.
  void back_through(std::int64_t i, std::int64_t t0, std::int64_t end) const {
    for (std::int64_t until = end; until > t0;) {
      f_.restore(s_.block, kept_.carried + i * kept_.carried_stride);
      std::int64_t t = t0;
      Opened<R> opened = open_again(t, end - t);
      while (t + opened.tokens < until) {
        for_groups([&](std::int64_t l, std::int64_t last) {
          f_.template weigh<Bytes, true>(s_.block, opened, l, last);
        });
        t += opened.tokens;
        opened = open_again(t, end - t);
      }
      back(kept_.x_of(i), t0, t, opened);
      until = t;
    }
  }

  void back(const Panels<R>& x_block, std::int64_t t0, std::int64_t t,
            const Opened<R>& opened) const {
    const auto& s = s_;
    const std::int64_t n = opened.tokens;
    const Panels<const R> values = open(f_.arguments.values, f_.mask(), t, n, s.values);
    const Panels<const R> upstream = open(f_.gradients.d_out, nullptr, t, n, s.upstream);
    const BlockPlace place{f_.b, f_.h, t, n};
    Panels<R> dv;
    if (kept_.dv == nullptr) {
      const Columns columns{0, f_.sizes.value_dim, s.width};
      dv = lying_panels<R>(f_.gradients.d_values, place, columns);
    }
    const bool lying = dv.data != nullptr;
    if (!lying) dv = s.dv;
    Prefetch prefetch(block_tokens);
    const std::int64_t before = t - block_tokens;
    if (before >= 0) {
      call(prefetch, before);
      call_x(prefetch, x_block.data - kept_.x_block);
      prefetch.add(f_.gradients.d_query, f_.b, f_.h, before, f_.sizes.memory_rows());
      prefetch.add(f_.key_gradient(), f_.b, f_.h, before, f_.sizes.memory_rows());
      prefetch.add(f_.gradients.d_values, f_.b, f_.h, before, f_.sizes.value_dim);
    }
    const Panels<R> x{x_block.at(t - t0, 0), x_block.stride};
    if (s.by_products)
      intra_block_scores<R, Bytes>(n, s.width, values, upstream, s.room, s.intra_block);
    for_groups([&](std::int64_t l, std::int64_t last) {
      f_.template weigh<Bytes, true>(s.block, opened, l, last);
      if (s.by_products) {
        read_intra_block_scores<R, Bytes>({n, last - l, s.width, values, s.intra_block,
                                           s.block.weights, s.by_latent + l * s.width, s.decay + l,
                                           s.room, s.z, &prefetch});
      } else {
        scan<R, Bytes, Decay::columns, Order::backwards>(
            {n, s.height, last - l, upstream, values, s.block.weights, s.z,
             s.by_value + l * s.height, last - l, s.decay + l, &prefetch});
      }
      scan<R, Bytes, Decay::rows, Order::backwards>(
          {n, last - l, s.width, s.block.weights, s.block.scores, upstream, dv,
           s.by_latent + l * s.width, s.width, s.decay + l, &prefetch, l > 0});
      std::copy(s.block.decay + l, s.block.decay + last, s.decay + l);
      f_.template finish<Bytes>(s.block, t, n, x, s.z, s.deltas, l, last);
    });
    if (!lying) store_values(place);
  }

  void store_values(const BlockPlace& place) const {
    const std::int64_t width = f_.sizes.value_dim;
    if (kept_.dv == nullptr) {
      store_panels<T, Bytes>(s_.dv, nullptr, f_.gradients.d_values, place, 0, width);
    } else {
      store_panels<R, Bytes>(s_.dv, nullptr, Rows<R>{kept_.dv, 0, 0, width}, place, 0, width);
    }
  }

  const Family& f_;
  const GradientScratch<Family>& s_;
  const GradientKept<Family>& kept_;
  const TokenSums<R>& sums_;
  const TokenSums<R> own_;
};

/// Which sweep.
enum class Sweep { forwards, backwards, both };

template <class Family, int Bytes>
void gradient_slice(const Family& family, const GradientScratch<Family>& scratch,
                    const GradientKept<Family>& kept, const TokenSums<typename Family::R>& sums,
                    std::int64_t slice, Sweep which) {
  const GradientSweep<Family, Bytes> sweep(family, scratch, kept, sums, slice);
  if (which != Sweep::backwards) sweep.forwards();
  if (which != Sweep::forwards) sweep.backwards();
}

template <class Family>
using GradientFunction = void (*)(const Family&, const GradientScratch<Family>&,
                                  const GradientKept<Family>&, const TokenSums<typename Family::R>&,
                                  std::int64_t, Sweep);

/// The sum of the slices' parts of one head's dLoss/dv.
template <class Family>
void add_parts(const Family& family, const GradientKept<Family>* kept, std::int64_t slices) {
  const std::int64_t width = family.sizes.value_dim;
  for (std::int64_t t = 0; t < family.sizes.length; ++t) {
    auto* const to = family.gradients.d_values.at(family.b, family.h, t);
    for (std::int64_t d = 0; d < width; ++d) {
      typename Family::R sum = 0;
      for (std::int64_t i = 0; i < slices; ++i) sum += kept[i].dv[t * width + d];
      narrow(sum, to[d]);
    }
  }
}

template <class Family>
std::size_t recurrent_backward_bytes(const typename Family::Sizes& sizes, int threads) {
  Workspace count;
  GradientWorkspace<Family>(count, sizes, threads);
  return count.used();
}

/// All heads. A family is made of the whole's sizes, arguments and gradients, batch row, head, and
/// the first and the number of the latents of a slice.
template <class Family, class Arguments, class Gradients>
void recurrent_backward(const typename Family::Sizes& sizes, const Arguments& arguments,
                        const Gradients& gradients, ThreadTeam& team, void* workspace,
                        std::size_t workspace_bytes) {
  if (sizes.length == 0 || sizes.memory_rows() == 0) return;
  Workspace space(workspace, workspace_bytes);
  const GradientWorkspace<Family> work(space, sizes, team.size());
  const GradientPlan& plan = work.plan;
  const GradientFunction<Family> run = pick<GradientFunction<Family>>(
      gradient_slice<Family, baseline_bytes>, gradient_slice<Family, avx2_bytes>,
      gradient_slice<Family, avx512_bytes>);
  const auto slice_at = [&](std::int64_t head, std::int64_t slice) {
    const std::int64_t first = slice * plan.latents;
    return Family(sizes, arguments, gradients, head / sizes.heads, head % sizes.heads, first,
                  std::min(plan.latents, sizes.memory_rows() - first));
  };
  if (plan.slices == 1) {
    share(team, plan.heads, [&](int worker, std::int64_t head) {
      const std::int64_t index = plan.heads <= team.size() ? head : worker;
      run(slice_at(head, 0), work.scratch_of(sizes, worker), work.kept_of(sizes, index),
          work.sums_of(index), 0, Sweep::both);
    });
    return;
  }
  for (const Sweep sweep : {Sweep::forwards, Sweep::backwards}) {
    share(team, plan.heads * plan.slices, [&](int worker, std::int64_t index) {
      const std::int64_t head = index / plan.slices;
      run(slice_at(head, index % plan.slices), work.scratch_of(sizes, worker),
          work.kept_of(sizes, index), work.sums_of(head * plan.slices), index % plan.slices, sweep);
    });
  }
  share(team, plan.heads, [&](int, std::int64_t head) {
    std::vector<GradientKept<Family>> parts;
    for (std::int64_t i = 0; i < plan.slices; ++i) {
      parts.push_back(work.kept_of(sizes, head * plan.slices + i));
    }
    add_parts(slice_at(head, 0), parts.data(), plan.slices);
  });
}

}  // namespace attnbench::kernels
