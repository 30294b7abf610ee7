// Sizes of softmax problems for the tests of CUDA kernels, and their names in messages.
#pragma once

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda::test {

constexpr auto far = SoftmaxSizes::far;

inline SoftmaxSizes sizes_of(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                             std::int64_t length, std::int64_t key_length, std::int64_t width,
                             std::int64_t left = far, std::int64_t right = far,
                             std::int64_t offset = 0) {
  SoftmaxSizes z;
  z.batch = batch;
  z.heads = heads;
  z.kv_heads = kv_heads;
  z.length = length;
  z.key_length = key_length;
  z.head_dim = z.value_dim = width;
  z.left = left;
  z.right = right;
  z.offset = offset;
  z.scale = 1 / std::sqrt(static_cast<double>(width));
  return z;
}

inline std::string name_of(const SoftmaxSizes& z) {
  std::ostringstream name;
  name << "batch " << z.batch << " heads " << z.heads << "/" << z.kv_heads << " length " << z.length
       << " keys " << z.key_length << " width " << z.head_dim << " left " << z.left << " right "
       << z.right << " offset " << z.offset;
  return name.str();
}

}  // namespace attnbench::kernels::cuda::test
