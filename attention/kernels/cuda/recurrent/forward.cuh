// What the families' entry points call: the forward pass that they share, compiled for each family
// and type of numbers in a file of its own.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/cuda/recurrent/arguments.cuh"

namespace attnbench::kernels::cuda {

struct ProductFamily;
struct DecayingProductFamily;
struct PoolFamily;

template <class Family, class T>
std::size_t recurrent_forward_bytes(const RecurrentShape& shape);
/// `a` holds all but the sizes and what the plan says; `a.after` is the carry, read and advanced
/// where it is given.
template <class Family, class T>
void recurrent_forward(RecurrentArguments<T> a, const RecurrentShape& shape, Stream stream,
                       void* workspace, std::size_t bytes);

/// The states of the plan's segments alone, a slot each of every head, to `a.borders`; no results.
/// `a` as above, T of 16 bits, no more than 128 latents where results are not made by chunks.
template <class Family, class T>
void recurrent_states(RecurrentArguments<T> a, const RecurrentShape& shape,
                      const RecurrentPlan& plan, Stream stream);

/// The states at the borders between segments, to a.borders: of segments alone where `a` says that
/// they are folded, else of all tokens before, with totals and maxima in `through`. Returns which.
template <class Family, class T>
RecurrentState recurrent_borders(const RecurrentArguments<T>& a, const RecurrentPlan& plan,
                                 std::int64_t heads, Stream stream, const RecurrentState& through);

/// Why a size cannot be done; empty where it can.
inline std::string recurrent_refusal(const RecurrentShape& shape, const char* latents) {
  if (shape.heads < 0 || shape.length < 0 || shape.latents < 0 || shape.value_dim < 0) {
    return "a size is negative";
  }
  if (shape.latents > most_scan_latents) {
    return std::string("at most ") + std::to_string(most_scan_latents) + " " + latents +
           " a head on CUDA, not " + std::to_string(shape.latents);
  }
  if (shape.length > std::int64_t{1} << 30 || shape.heads >= std::int64_t{1} << 24 ||
      shape.value_dim > 4096) {
    return "more tokens (2^30), heads (2^24) or columns of values (4096) than a grid has room for";
  }
  return {};
}

}  // namespace attnbench::kernels::cuda
