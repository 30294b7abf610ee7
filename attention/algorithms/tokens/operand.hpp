// What a form computes with: a tensor of tokens as it is, or random features of it that are made a
// part at a time, so that no [T, S] array of them ever lies in memory.
#pragma once

#include <cstdint>
#include <utility>

#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench {

/// A map of tokens x [B, H, t, D] to scale x . omega_i, less |scale x|^2 / 2 where `half_square`:
/// the logarithm of a positive random feature (Choromanski et al. 2021, lemma 1). Nothing is
/// differentiated with respect to it.
struct Features {
  at::Tensor omega;  ///< [S, D], or [H, S, D] where each head has its own; undefined = x as it is
  double scale = 1;
  bool half_square = false;
  at::Tensor hidden;  ///< [B, 1, T, 1], true where the result is -inf; undefined = nowhere

  /// The tokens from `begin` on, x [B, H, t, D], to [B, H, t, S]; plain tensor operations.
  at::Tensor of(const at::Tensor& x, std::int64_t begin = 0) const;
  /// dLoss/dx from dLoss/dresult, which is 0 at hidden tokens.
  at::Tensor gradient(const at::Tensor& x, const at::Tensor& slope) const;
  /// Through an autograd context and back.
  c10::IValue packed() const;
  static Features unpacked(const c10::IValue& value);
};

/// One input of a form, [B, H, T, D], and how its tokens come to the numbers it computes with.
struct Operand {
  Operand(at::Tensor tokens, Features map = {})  // NOLINT(google-explicit-constructor)
      : whole(std::move(tokens)), features(std::move(map)) {}

  at::Tensor whole;
  Features features;

  /// S, or D without features.
  std::int64_t width() const {
    return features.omega.defined() ? features.omega.size(-2) : whole.size(3);
  }
  /// All of it, [B, H, T, S] in `type`, with gradients by autograd.
  at::Tensor all(at::ScalarType type) const { return features.of(whole.to(type)); }
  /// As part_of and rows_of; gradients of the same go to their place in `slope`, like `whole`.
  at::Tensor part(const Piece& piece, at::ScalarType type) const;
  at::Tensor rows(std::int64_t begin, std::int64_t count, at::ScalarType type) const;
  void put_part_gradient(const at::Tensor& slope, const Piece& piece, const at::Tensor& part) const;
  void put_rows_gradient(const at::Tensor& slope, std::int64_t begin, const at::Tensor& rows) const;
};

}  // namespace attnbench
