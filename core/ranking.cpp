#include "core/ranking.hpp"

#include <algorithm>
#include <numeric>

namespace attnbench::measure {

std::vector<std::size_t> least_of(const std::vector<Estimate>& estimates) {
  std::vector<std::size_t> order(estimates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return estimates[a].median < estimates[b].median;
  });
  if (order.empty()) return order;
  const double reach = estimates[order.front()].high;
  std::erase_if(order, [&](std::size_t i) { return estimates[i].low > reach; });
  return order;
}

}  // namespace attnbench::measure
