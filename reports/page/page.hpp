// The page: one HTML file with everything in it, that opens offline, on a phone as on a desk.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/claims/evaluate.hpp"
#include "reports/figures/figure.hpp"
#include "reports/figures/verdicts.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports {

/// The head of a page: the answer under the suite's title, which stands alone without one; notes
/// where the run did not end well or its BLAS was slow.
std::string header_html(const result::Result& result, const std::string& headline);

/// What is to be known of all of its numbers: what is known to have spoiled them, source and notes
/// of the suite, how many cells of which status, the machine, when.
std::string notes_html(const result::Result& result);

/// One result on the page, or what several have in common.
struct Section {
  bool joint = false;
  result::Result result;
  std::optional<Verdicts> verdicts;  ///< of `attnbench ab`, if it made the result
  std::string source;                ///< its path, as the user named it
  std::vector<Figure> figures;
  std::size_t verdict_figures = 0;  ///< how many of them, the first, show the verdicts of `ab`
  std::vector<std::string>
      svg;  ///< a picture per figure, for readers without scripts; "" without one
  verdict::Verdict verdict;
  std::vector<claims::EvaluatedClaim> claims;              ///< of the paper that its suite follows
  std::vector<std::pair<std::string, std::string>> links;  ///< words, path beside the page
};

/// The page of some results. `bundle` is the JavaScript that draws the figures; without it the
/// pictures stand alone, and without those the page says in `message` how to get them.
std::string page(const std::vector<Section>& sections, const std::string& bundle,
                 const std::string& message);

}  // namespace attnbench::reports
