#include "harness/program/suite/axes.hpp"

#include <algorithm>
#include <limits>

namespace attnbench::suite {

void Axes::forget(const std::string& key) {
  for (Axis& axis : axes_) {
    const auto found = std::find(axis.keys.begin(), axis.keys.end(), key);
    if (found == axis.keys.end()) continue;
    const auto column = found - axis.keys.begin();
    axis.keys.erase(found);
    for (auto& point : axis.points) point.erase(point.begin() + column);
  }
  std::erase_if(axes_, [](const Axis& axis) { return axis.keys.empty(); });
}

void Axes::set(const std::string& key, const std::vector<Term>& values) {
  Axis axis{{key}, {}};
  for (const Term& value : values) axis.points.push_back({value});
  for (Axis& known : axes_) {
    if (known.keys == axis.keys) {
      known = std::move(axis);
      return;
    }
  }
  forget(key);
  axes_.push_back(std::move(axis));
}

void Axes::zip(Axis axis) {
  for (const std::string& key : axis.keys) forget(key);
  axes_.push_back(std::move(axis));
}

bool Axes::has(const std::string& key) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
    return std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end();
  });
}

std::size_t Axes::count() const {
  std::size_t product = 1;
  for (const Axis& axis : axes_) {
    if (__builtin_mul_overflow(product, axis.points.size(), &product)) {
      return std::numeric_limits<std::size_t>::max();
    }
  }
  return product;
}

std::map<std::string, const Term*> Axes::point(std::size_t index) const {
  std::map<std::string, const Term*> values;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    const std::vector<Term>& terms = axis->points[index % axis->points.size()];
    index /= axis->points.size();
    for (std::size_t k = 0; k < axis->keys.size(); ++k) values[axis->keys[k]] = &terms[k];
  }
  return values;
}

std::vector<std::string> Axes::varying() const {
  std::vector<std::string> keys;
  for (const Axis& axis : axes_) {
    if (axis.points.size() > 1) keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
  }
  return keys;
}

}  // namespace attnbench::suite
