#include "tasks/training/order.hpp"

#include <algorithm>
#include <numeric>

#include "tasks/training/draws.hpp"

namespace attnbench::tasks::learning {

std::int64_t Order::steps_per_epoch() const {
  std::int64_t steps = 0;
  for (const std::int64_t size : sizes) steps += (size + batch - 1) / batch;
  return steps;
}

std::vector<Handful> Order::epoch(std::int64_t number) const {
  std::vector<Handful> batches;
  Draws draws(key_of({seed, 0x6f72646572 /* "order" */}), static_cast<std::uint64_t>(number));
  for (std::size_t segment = 0; segment < sizes.size(); ++segment) {
    std::vector<std::int64_t> examples(static_cast<std::size_t>(sizes[segment]));
    std::iota(examples.begin(), examples.end(), fresh ? number * sizes[segment] : 0);
    if (shuffled) draws.shuffle(examples);
    for (auto first = examples.begin(); first != examples.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(batch, examples.end() - first);
      batches.push_back({segment, {first, last}});
      first = last;
    }
  }
  if (shuffled) draws.shuffle(batches);
  return batches;
}

}  // namespace attnbench::tasks::learning
