// What a verdict is computed from, taken from a result: the one place that knows the result's form.
#pragma once

#include "core/result/document.hpp"
#include "reports/tables/layout.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

VerdictInput input_of(const result::Result& result);

/// From which length on each label of a panel is faster than exact attention.
std::vector<CrossingStatement> crossings_of(const Panel& panel);

Verdict verdict_of(const result::Result& result);

}  // namespace attnbench::reports::verdict
