// Catch2, whichever version is installed. In tests that use tensors include
// attention/torch/torch.hpp (or anything that does) first: ATen's logging defines a CHECK of its
// own, which ends the process.
#pragma once

#ifdef CHECK
#undef CHECK
#endif

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
