// A suite for each of two sides that are compared.
#pragma once

#include <string>

#include "core/catalogue.hpp"
#include "harness/program/suite/document.hpp"

namespace attnbench::suite {

/// The suite's tasks with one mechanism ("latte/fused"), instead of those that it names.
Document with_mechanism(Document document, const std::string& use);

/// Takes out of `document` what only the other side's build knows, so that its cells are NEW or
/// GONE. What neither knows stays, and is refused when the suite is expanded.
void drop_unknown(Document& document, const Catalogue& own, const Catalogue& other);

}  // namespace attnbench::suite
