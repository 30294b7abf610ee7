// Cells: one point of a suite's axes, every size worked out, with its id.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/suite/axes.hpp"
#include "harness/suite/suite_entries.hpp"
#include "harness/suite/problems.hpp"

namespace attnbench::suite {

/// The cell of `said` (see core/protocol.hpp), or nothing where sizes do not fit together,
/// which is filed. `place` is that of the entry, for what has no place of its own.
std::optional<Json> make_cell(const Group& group, const Entry& entry,
                              const std::map<std::string, const Term*>& said,
                              const std::string& device, const std::string& place,
                              Problems& problems);

/// What makes a cell that cell: task, mechanism, implementation, device, and all settings and
/// options that differ from their default; as canonical JSON. A later default-valued option changes
/// nothing.
Json identity(const Json& cell, const Group& group, const Entry& entry);

/// 12 hexadecimal digits of the identity's hash.
std::string cell_id(const Json& identity);

}  // namespace attnbench::suite
