// What a verdict is computed from, taken from a result: the one place that knows the result's form.
#pragma once

#include "core/result/document.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

VerdictInput input_of(const result::Result& result);

Verdict verdict_of(const result::Result& result);

}  // namespace attnbench::reports::verdict
