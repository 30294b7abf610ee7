// LibTorch's half for Python, with pybind11: for the bridge alone (attention/python/bridge/), since
// nothing else has libpython.
#pragma once

// Python's header, which this one includes, wants to be the first.
#include <torch/csrc/autograd/python_variable.h>
// Not before it.
#include <ATen/Parallel.h>

#include "attention/torch/torch.hpp"
