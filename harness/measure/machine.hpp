// The machine card and the ceilings: what a measurement is measured on, and what that machine can
// do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::measure {

using Json = nlohmann::json;

struct Neighbours;

/// {host, os, kernel, cpu_model, cores, threads, caches, memory_bytes, governor, clock_hz,
///  load: {average_1_minute, …, busy_cpus_beside_us, processes: [{pid, name, cpus}]},
///  virtualised, isa: [avx2, avx512f, …], environment: {OPENBLAS_CORETYPE, …}, spoilers:
///  [sentence…]}
/// The torch part (version, threads, allocator, blas: see harness/run/plan/blas_core.hpp) is the
/// worker's.
Json machine_card();

/// Puts who is busy now in the place of who was, in the card's `load` and in its spoilers. Other
/// sentences there stay.
void note_neighbours(Json& card, const Neighbours& now);

/// What is known to spoil a measurement and holds now: a load beside us, an OPENBLAS_CORETYPE, a
/// governor that saves power; one sentence each, with what to do.
std::vector<std::string> spoilers(const Json& card);

/// Measures the CPU's ceilings with `threads` threads in about a second:
/// {fma_float32_flops_per_second, …_one_thread_flops_per_second, exp_float32_per_second,
/// bandwidth_l1_bytes_per_second, …_l2, …_l3,
///  …_dram}. GEMM rates per dtype are added by the worker.
Json cpu_ceilings(int threads);

/// Seconds of a fixed piece of work (FMAs and exponentials from registers), the least of a few
/// repetitions: how fast the machine runs at this moment. About 10 ms.
double calibration_seconds(int threads);

}  // namespace attnbench::measure
