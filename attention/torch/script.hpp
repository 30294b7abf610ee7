// The TorchScript part of LibTorch, for the one file that loads modules written in Python.
#pragma once

#include "attention/torch/torch.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#pragma GCC diagnostic pop
