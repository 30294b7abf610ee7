// A card that only pretends, under the programs as a user runs them: what the harness does where a
// device is there (tests/program/card.cpp). Its memory is the host's, its work is done by the host,
// and its clock is its own.
//
// It stands in for what lies below the harness's device: attention/kernels/cuda/device.hpp and
// cards.hpp, the loops of harness/measure/cuda_loops.hpp, and the parts of attention/torch/cuda.hpp
// that call a device. Programs of their own are linked with it, bin/pretend/; in those that are
// shipped there is nothing of it.
//
// The environment says what it does: PRETEND_CARD is its name, PRETEND_CLOCK by what factor its
// clock runs faster than time, and PRETEND_NO_GRAPHS has it refuse to record.
#pragma once

namespace attnbench::pretend {

/// How many there are.
constexpr int cards = 2;

/// Of the card's clock; it runs on while the host works.
double now();
/// The card has worked for this long.
void take(double seconds);

constexpr double fma_flops_per_second = 60e12;
constexpr double exponentials_per_second = 4e12;
constexpr double copied_bytes_per_second = 3e12;
constexpr double clock_hz = 1.5e9;
constexpr double greatest_clock_hz = 2e9;

}  // namespace attnbench::pretend
