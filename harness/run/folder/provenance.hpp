// Provenance: which sources, compiler and flags a result comes from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::run {

using Json = nlohmann::json;

/// {commit, dirty, compiler, flags, binary}. The commit is that of the checkout the program lies
/// in; absent where it lies in none. `binary` is the fingerprint of worker, library and plugins.
Json provenance(const std::string& binary);

}  // namespace attnbench::run
