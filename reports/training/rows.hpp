// Rows of the figures of trainings: one for each training, and what is drawn beside them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace attnbench::reports {

using Json = nlohmann::json;

/// A metric of the record; 0 where it is none.
double metric(const Json& cell, const char* name);

/// Columns that tooltips of trainings begin with; `what` names the number.
std::vector<std::pair<std::string, std::string>> told_of(const char* what);

/// Whether one of the rows is of that kind.
bool any_of_kind(const Json& rows, const std::string& kind);

/// "0.987".
std::string share_words(double share);

/// A row of one training: its provenance, series, seed and learning rate.
Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x, double y);
/// A row of what was foretold and not trained; rows of one `id` are joined. `said` is what tooltips
/// say of it.
Json predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                   const std::string& said);
/// A row that lines join: those of one `line`, which is the series' unless said.
Json mean_row(const std::string& series, const Json& x, double y, const std::string& line = "");
/// A row of row_of, and the line's through it.
void add_joined(Json& rows, Json dot, const std::string& line);

}  // namespace attnbench::reports
