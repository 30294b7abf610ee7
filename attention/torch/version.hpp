// Which LibTorch this is compiled with, for the compatibility places.
#pragma once

#include <torch/csrc/api/include/torch/version.h>

/// 113 for LibTorch 1.13, 211 for 2.11.
#define ATTNBENCH_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)
