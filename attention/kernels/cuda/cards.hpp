// What else is asked of cards by who measures on them; apart from device.hpp, which every kernel
// sees.
#pragma once

#include <string>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::kernels::cuda {

/// Of device number `index`, without making it the current one; asked once a device. Throws Error
/// where there is none.
const Card& card(int index);

/// The newest CUDA that the driver knows, such as "13.0"; empty where there is no driver.
std::string driver_cuda();

}  // namespace attnbench::kernels::cuda
