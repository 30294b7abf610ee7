// The only torch include outside of this folder, and the content of the precompiled header.
//
// Not torch/torch.h: it costs 15 s per file. ivalue.h comes first because clang cannot otherwise
// read LibTorch 1.13's ATen.h as C++20.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <ATen/core/ivalue.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/api/include/torch/nn/module.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#pragma GCC diagnostic pop

/// The LibTorch that this is compiled with: 113 for 1.13, 211 for 2.11.
#define ATTNBENCH_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)
