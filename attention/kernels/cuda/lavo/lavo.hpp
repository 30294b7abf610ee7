// LAVO's running memory on CUDA; see attention/kernels/lavo.hpp for what it is. The
// pointers of the arguments, mask, carry and the bases' gradient included, are the device's.
//
// Forward, 16-bit numbers are multiplied on the tensor cores and added up in fp32, but for more
// than 128 bases or columns and for windows below 64 tokens; in bfloat16, up to 64 bases and
// columns, so is what queries give to the gradients. Everything else is computed in fp32 on the
// CUDA cores, exact but for rounding. NOTES.md says what that costs.
#pragma once

#include <cstddef>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/lavo.hpp"

namespace attnbench::kernels::cuda {

/// Why these sizes cannot be done (more than 256 bases, or numbers of a head); empty where they
/// can. Needs no device.
std::string lavo_refusal(const LavoSizes& sizes);

/// Bytes of the workspace on the current device, which is aligned to 64 bytes at least. Throws
/// std::logic_error for sizes that are refused.
template <class T>
std::size_t lavo_forward_bytes(const LavoSizes& sizes);
/// Queued on the stream; the same bits each time. Throws std::logic_error for sizes that are
/// refused or too small a workspace, or where the card's blocks have too little shared memory, and
/// Error where CUDA fails.
template <class T>
void lavo_forward(const LavoSizes& sizes, const LavoArguments<T>& arguments, Stream stream,
                  void* workspace, std::size_t workspace_bytes);

/// Neither `out` nor the carry is looked at. The workspace grows with batch * heads * length *
/// bases. Throws as the forward pass does.
template <class T>
std::size_t lavo_backward_bytes(const LavoSizes& sizes);
template <class T>
void lavo_backward(const LavoSizes& sizes, const LavoArguments<T>& arguments,
                   const LavoGradients<T>& gradients, Stream stream, void* workspace,
                   std::size_t workspace_bytes);

}  // namespace attnbench::kernels::cuda
