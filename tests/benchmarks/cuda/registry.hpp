// The works as Google Benchmark's benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/benchmarks/cuda/work.hpp"

namespace attnbench::bench {

/// Numbers of a benchmark's name, in order: "/B:2/H:16/…".
using Numbers = std::vector<std::pair<const char*, std::int64_t>>;

/// "softmax_forward/bf16/B:2/H:16/T:8192/D:128/causal:1/window:0/attnbench": what is computed, and
/// last who computes it. Others that compute the same differ in the last part alone (peers.py).
std::string name_of(const std::string& what, const std::string& dtype, const Numbers& numbers);

/// One benchmark; `prepare` makes its arrays when its turn comes, and they are kept until another's
/// turn comes. What is thrown becomes the benchmark's error.
void add(const std::string& name, std::function<Work()> prepare);

/// Every family's benchmarks, in order of importance.
void add_softmax();
void add_recurrent();
void add_lavo();

/// How many of the benchmarks that ran ended with an error.
int failures();

}  // namespace attnbench::bench
