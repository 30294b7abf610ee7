// Sliding-window attention by its definition: Beltagy et al. 2020, section 3.1.
#include "attention/reference/band.hpp"

namespace attnbench::reference {

Reference window() {
  return [](const Options& options, const Problem&, const ReferenceInputs& inputs,
            const std::vector<RowIndex>& rows) {
    const Window window = options.window("window");
    return band_rows(inputs, rows, options.number("scale"), window.left, window.right, 0);
  };
}

}  // namespace attnbench::reference
