// What Performer costs: its pool or its causal product, and the features of queries and keys.
#pragma once

#include "attention/mechanism.hpp"

namespace attnbench {

Cost performer_composite_cost(const Options& options, const Problem& problem);
Cost performer_scan_cost(const Options& options, const Problem& problem);
Cost performer_chunked_cost(const Options& options, const Problem& problem);
Cost performer_fused_cost(const Options& options, const Problem& problem);

}  // namespace attnbench
