// The top of a result's page: the verdict, links to its data, and the list of contents.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reports/claims/evaluate.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports {

/// The tables that rank, each with what it is of, and what is not ranked in one line; empty where
/// nothing ranks.
std::string ranking_html(const verdict::Verdict& verdict);

/// The sentence to repeat, then what there is to say of each task, then what is not ok. Empty where
/// the verdict has nothing to say.
std::string verdict_html(const verdict::Verdict& verdict);

/// The claims, a row each: what is claimed, whether it was seen, the numbers. Empty without any.
std::string claims_html(const std::vector<claims::EvaluatedClaim>& claims);

/// Links to files beside the page: (words, path relative to the page).
std::string links_html(const std::vector<std::pair<std::string, std::string>>& links);

/// A heading that `contents_html` can lead to.
std::string heading_html(const std::string& text, const std::string& id);

/// A list of links to the headings of `section`, a page's HTML; empty where it has fewer than two.
std::string contents_html(const std::string& section);

}  // namespace attnbench::reports
