// Softmax attention by its definition: Vaswani et al. 2017, equation 1.
#include "attention/reference/band.hpp"

namespace attnbench::reference {

Reference softmax() {
  return [](const Options& options, const Problem& problem, const ReferenceInputs& inputs,
            const std::vector<RowIndex>& rows) {
    const std::int64_t queries = inputs.roles.at("query").shape[2];
    const std::int64_t keys = inputs.roles.at("key").shape[2];
    const bool causal = problem.pattern == Pattern::causal;
    return band_rows(inputs, rows, options.number("scale"), queries + keys,
                     causal ? 0 : queries + keys, causal ? keys - queries : 0);
  };
}

}  // namespace attnbench::reference
