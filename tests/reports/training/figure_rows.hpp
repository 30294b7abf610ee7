// What figures of trainings draw.
#pragma once

#include <string>
#include <vector>

#include "reports/draw.hpp"
#include "tests/support/result_builder.hpp"

namespace attnbench::test {

/// The rows of a figure of one kind.
inline std::vector<Json> rows_of(const reports::Figure& figure, const std::string& kind) {
  std::vector<Json> rows;
  for (const Json& row : figure.spec["data"]["values"]) {
    if (row["kind"] == kind) rows.push_back(row);
  }
  return rows;
}

/// Figures of that name of the result's first panel.
inline std::vector<reports::Figure> drawn(
    const std::string& name, const result::Result& result,
    const std::vector<reports::PublishedRow>& published = {}) {
  return reports::draw(name, first_panel(result), training_palette, published);
}

/// The published numbers of a file of this text.
inline std::vector<reports::PublishedRow> published_in(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", text);
  return reports::read_published(folder / "x.csv");
}

}  // namespace attnbench::test
