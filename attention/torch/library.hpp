// LibTorch's registration of operators, for attention/operators alone.
#pragma once

#include <type_traits>
#include <utility>

#include "attention/torch/torch.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#pragma GCC diagnostic pop

namespace attnbench {

/// LibTorch's optional tensor, which operators take: std's from 2.x on.
using OptionalTensor = std::decay_t<decltype(std::declval<c10::IValue>().toOptional<at::Tensor>())>;

}  // namespace attnbench
