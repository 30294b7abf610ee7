// Calling the torch-free CPU kernels with tensors: element types, rows, workspaces.
#pragma once

#include "attention/kernels/rows.hpp"
#include "attention/torch.hpp"

namespace attnbench {

/// What kernels call the element type of a tensor.
template <class T>
struct Element {
  using type = T;
};
template <>
struct Element<at::BFloat16> {
  using type = kernels::BFloat16;
};

/// Runs `body` with a value of the kernels' element type of `x`: float32, float64 or bfloat16.
template <class Body>
void dispatch_element(const at::Tensor& x, const Body& body) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "kernel",
                                 [&] { body(typename Element<scalar_t>::type{}); });
}

/// `x`, or a copy whose numbers of one row lie side by side.
inline at::Tensor with_dense_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

/// A [B, H, T, w] tensor with dense rows as the kernels see it.
template <class T>
kernels::Rows<T> kernel_rows(const at::Tensor& x) {
  return {static_cast<T*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

/// Memory that a kernel is lent, from LibTorch's allocator, so that it is counted.
inline at::Tensor kernel_workspace(std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
}

}  // namespace attnbench
