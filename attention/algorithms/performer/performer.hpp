// Performer (FAVOR+), Choromanski et al. 2021: linear attention whose features estimate the softmax
// kernel. With xh = D^{-1/4} x and h_i(x) = omega_i.xh - |xh|^2 / 2,
//   y_t = sum_s (sum_i exp(h_i(q_t) + h_i(k_s))) v_s / the same without v_s.
// The exact form has no epsilon: logarithms of features are mixed
// (attention/algorithms/feature_mix/feature_mix.hpp). The published form adds an epsilon to its
// features and subtracts a maximum over all keys instead.
#pragma once

#include "attention/algorithms/feature_mix/feature_mix.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// The module. Options as declared in attention/mechanisms/performer.cpp. Buffers: `omega` [S, D],
/// or [H, S, D] if each head draws its own, none with projection none; and `training_forwards` [1]
/// if features are redrawn.
class Performer : public Mechanism {
 public:
  Performer(const std::string& name, const Options& chosen, const Problem& asked);

  std::vector<Role> roles() const override;
  void draw_parameters(std::uint64_t seed) override;
  /// The empty state, in float32 for 16-bit inputs: sums over many tokens need the mantissa.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override;

  /// Counts a training forward pass; redraw_every of them share one draw of the features.
  void count_forward();
  /// The map of queries or keys. In the exact form the half square of queries cancels.
  Features features(bool half_square) const;
  /// The scale of queries and of keys, D^{-1/4}.
  double scale() const;
  bool relu() const { return options.text("kernel") == "relu"; }
  bool published() const { return options.text("form") == "published"; }

 private:
  at::Tensor drawn(const std::string& name) const;

  std::uint64_t seed_ = 0;
  at::Tensor omega_;
  at::Tensor training_forwards_;  ///< a buffer, so that a resumed run redraws at the same steps
};

/// The Implementation::mix of each way.
Mixed mix_performer(feature_mix::Way way, Mechanism& mechanism, const Inputs& inputs, State* state);

}  // namespace attnbench
