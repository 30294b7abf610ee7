// What two results rest on, and in what that differs.
#pragma once

#include <string>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::compare {

/// "host, CPU model, 2 threads; 5 rounds": what a result rests on.
std::string basis_of(const result::Result& result);

/// "threads: 2, then 4": facts that differ between two results, the most important
/// first.
std::vector<std::string> differences_of(const result::Result& base, const result::Result& changed);

/// Whether both were measured on one host and CPU model, with the same number of threads and the
/// same cards under each device that both name.
bool one_machine(const result::Result& base, const result::Result& changed);

}  // namespace attnbench::compare
