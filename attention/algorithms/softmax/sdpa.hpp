// LibTorch's own scaled dot product attention as implementations of softmax and window: the peers
// that ours are measured beside.
#pragma once

#include <vector>

#include "attention/algorithms/softmax/implementations.hpp"

namespace attnbench {

/// torch_sdpa, where LibTorch chooses, and, where it can use CUDA, one for each of its backends
/// there: torch_sdpa_flash, _cudnn, _efficient and _math. Each refuses what its backend cannot do.
/// None where LibTorch is older than 2.1.
std::vector<Implementation> sdpa_softmax(const BandedMechanism& mechanism);

}  // namespace attnbench
