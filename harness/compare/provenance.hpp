// Whether two results can be held against each other: machine, threads and what made the numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::compare {

using Json = nlohmann::json;

/// "threads: 2, then 4": what is not the same in two result.json values, most telling first.
std::vector<std::string> differences_of(const Json& base, const Json& changed);

/// Whether both say that they were measured on one host, CPU model and number of threads, and
/// mean the same by the devices that both name.
bool one_machine(const Json& base, const Json& changed);

}  // namespace attnbench::compare
