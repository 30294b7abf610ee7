// Filters: --only and --skip.
#pragma once

#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"
#include "harness/suite/suite.hpp"

namespace attnbench::suite {

/// Cells that some `only` expression finds, if there is one, and no `skip` expression. They search
/// describe(cell), then mechanism/implementation, device and every "name=value" of the cell.
/// Throws UsageFailure where an expression is none or nothing is left.
std::vector<Json> filtered(std::vector<Json> cells, const Choices& choices);

}  // namespace attnbench::suite
