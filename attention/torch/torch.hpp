// The only torch include of the tree, and what the precompiled header holds.
//
// Never torch/torch.h: it costs 15 s a file. ivalue.h comes first because clang cannot read
// LibTorch 1.13's ATen.h as C++20 otherwise.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <ATen/core/ivalue.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/api/include/torch/nn/module.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>
#pragma GCC diagnostic pop
