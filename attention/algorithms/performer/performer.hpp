// Performer (FAVOR+), Choromanski et al. 2021: linear attention whose features estimate the softmax
// kernel. With xh = D^{-1/4} x and h_i(x) = omega_i.xh - |xh|^2 / 2,
//   y_t = sum_s (sum_i exp(h_i(q_t) + h_i(k_s))) v_s / the same without v_s.
// Exactly so, without an epsilon: in the pooled form y_t = sum_i softmax_i(h_i(q_t) + z_{t,i})
// M_{t,i} of attention/algorithms/prefix_pool/prefix_pool.hpp nothing overflows and no denominator vanishes. The
// published form guards its features by an epsilon and a maximum over all keys instead.
#pragma once

#include "attention/algorithms/tokens/operand.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// The module. Options as declared in attention/mechanisms/performer.cpp; buffers: `omega` [S, D],
/// or [H, S, D] where heads draw their own, none with projection none; and `training_forwards` [1]
/// where features are drawn anew from time to time.
class Performer : public Mechanism {
 public:
  Performer(const std::string& name, const Options& chosen, const Problem& asked);

  std::vector<Role> roles() const override;
  void draw_parameters(std::uint64_t seed) override;
  /// In float32 where the inputs have 16 bits: sums over a long past need the mantissa.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override;

  /// Counts a forward pass that is trained on; redraw_every of them share one drawing.
  void count_forward();
  /// The map of queries or keys. Queries of the exact form need no half square: it cancels.
  Features features(bool half_square) const;
  /// D^{-1/4}: on queries and on keys.
  double scale() const;
  bool relu() const { return options.text("kernel") == "relu"; }
  bool published() const { return options.text("form") == "published"; }

 private:
  at::Tensor drawn(const std::string& name) const;

  std::uint64_t seed_ = 0;
  at::Tensor omega_;
  at::Tensor training_forwards_;  ///< a buffer, so that a resumed run redraws in step
};

enum class PerformerWay { composite, scan, chunked, fused };

/// Implementation::mix of each.
Mixed mix_performer(PerformerWay way, Mechanism& mechanism, const Inputs& inputs, State* state);

}  // namespace attnbench
