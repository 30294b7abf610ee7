// The machine card: what cells are measured on.
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

/// Replaces the busy processes in the card's `load` and `spoilers`. Other sentences of `spoilers`
/// stay.
void note_neighbours(Json& card, const Neighbours& now);

}  // namespace attnbench::measure
