// What lavo.cu chooses among; each dtype is compiled in a file of its own.
#pragma once

#include <cstddef>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/cuda/lavo/plan.hpp"

namespace attnbench::kernels::cuda {

/// In fp32 on the CUDA cores. Forward no size is 0.
template <class T>
void memory_forward(const LavoSizes& sizes, const LavoArguments<T>& given, const MemoryPlan& plan,
                    Stream stream, void* workspace, std::size_t bytes);
template <class T>
void memory_backward(const LavoSizes& sizes, const LavoArguments<T>& given,
                     const LavoGradients<T>& gradients, const MemoryPlan& plan, Stream stream,
                     void* workspace, std::size_t bytes);

}  // namespace attnbench::kernels::cuda
