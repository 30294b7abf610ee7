// What a figure needs to stand alone, on a slide or in a mail: where and when it was measured, and
// a description for readers who do not see it.
#pragma once

#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// Gives figures of one title the names of their groups, or numbers, too: what a picture is of must
/// be told from its title alone. Before add_provenance.
void tell_titles_apart(std::vector<Figure>& figures);

/// The machine in words: "NVIDIA H100, Intel Xeon, 2 threads"; empty where it names nothing.
std::string machine_text(const result::Result& result);

/// Adds the suite's title above the picture's own, a line to its subtitle with machine, threads and
/// date, and the specification's
/// `description`, which readers of SVG and page hear: title, conditions, machine and caption.
void add_provenance(Figure& figure, const result::Result& result);

/// The answer as the title of a figure that has its provenance; what it had as a title goes below.
void lead_with(Figure& figure, const std::string& answer);

/// The description that add_provenance adds.
std::string alternative_text(const Figure& figure, const result::Result& result);

}  // namespace attnbench::reports
