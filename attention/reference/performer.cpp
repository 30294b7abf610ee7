// Performer by its definition, pair by pair: Choromanski et al. 2021, equations 1, 5 and 7. With
// xh = D^{-1/4} x and p_i(x) = omega_i.xh, the weight of key s in query t is sum_i of
//   exp(p_i(q) - |qh|^2/2) exp(p_i(k) - |kh|^2/2)                             kernel softmax, exact
//   (exp(p_i(q) - |qh|^2/2 - max_j p_j(q)) + eps)
//     (exp(p_i(k) - |kh|^2/2 - max_{r,j} p_j(k_r)) + eps)                     the published form
//   (max(p_i(q), 0) + 0.001) (max(p_i(k), 0) + 0.001)                         kernel relu
// and rows are divided by their sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// One token's p_i and |xh|^2 / 2.
struct Projected {
  std::vector<double> p;
  double half_square = 0;
};

struct Definition {
  const ReferenceInputs& inputs;
  bool relu, published;
  double epsilon;

  Projected project(const double* x, std::int64_t width, std::int64_t head) const {
    const double scale = std::pow(static_cast<double>(width), -0.25);
    Projected out;
    for (std::int64_t d = 0; d < width; ++d) out.half_square += 0.5 * scale * x[d] * scale * x[d];
    const auto omega = inputs.parameters.find("omega");
    if (omega == inputs.parameters.end()) {
      for (std::int64_t d = 0; d < width; ++d) out.p.push_back(scale * x[d]);
      return out;
    }
    const auto& shape = omega->second.shape;
    const std::int64_t count = shape[shape.size() - 2];
    const double* row = omega->second.values.data();
    if (shape.size() == 3) row += head * count * width;
    for (std::int64_t i = 0; i < count; ++i, row += width) {
      double sum = 0;
      for (std::int64_t d = 0; d < width; ++d) sum += row[d] * scale * x[d];
      out.p.push_back(sum);
    }
    return out;
  }

  double most(const Projected& x) const { return *std::max_element(x.p.begin(), x.p.end()); }

  /// Feature i, or its logarithm where the kernel is softmax and the form exact.
  double feature(const Projected& x, std::size_t i, double stabiliser) const {
    if (relu) return std::max(x.p[i], 0.0) + 1e-3;
    if (published) return std::exp(x.p[i] - x.half_square - stabiliser) + epsilon;
    return x.p[i] - x.half_square;
  }
};

/// What query `q` of one head gives over the keys, of which undefined ones are padded: y, added up
/// at the scale of the largest weight.
void add_up(const Definition& of, const Projected& q, const std::vector<const Projected*>& keys,
            const RowIndex& at, double key_most, double* y) {
  const Array& v = of.inputs.roles.at("value");
  const double query_most = of.most(q);
  const bool logarithms = !of.relu && !of.published;
  double top = -std::numeric_limits<double>::infinity();
  for (const Projected* k : keys) {
    for (std::size_t i = 0; k != nullptr && logarithms && i < q.p.size(); ++i) {
      top = std::max(top, of.feature(q, i, 0) + of.feature(*k, i, 0));
    }
  }
  double total = 0;
  for (std::size_t s = 0; s < keys.size(); ++s) {
    if (keys[s] == nullptr) continue;
    double weight = 0;
    for (std::size_t i = 0; i < q.p.size(); ++i) {
      const double a = of.feature(q, i, query_most);
      const double b = of.feature(*keys[s], i, key_most);
      weight += logarithms ? std::exp(a + b - top) : a * b;
    }
    total += weight;
    const double* value = v.row(at.b, at.h, static_cast<std::int64_t>(s));
    for (std::int64_t d = 0; d < v.shape[3]; ++d) y[d] += weight * value[d];
  }
  for (std::int64_t d = 0; d < v.shape[3]; ++d) y[d] = total > 0 ? y[d] / total : 0;
}

std::vector<double> performer_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const Definition of{inputs, options.text("kernel") == "relu", options.text("form") == "published",
                      options.number("epsilon")};
  const Array& q = inputs.roles.at("query");
  const Array& k = inputs.roles.at("key");
  const auto width = static_cast<std::size_t>(inputs.roles.at("value").shape[3]);
  std::vector<double> output(rows.size() * width, 0.0);
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return std::pair(rows[i].b, rows[i].h) < std::pair(rows[j].b, rows[j].h);
  });
  // The keys of a head are projected once for all of its rows.
  std::vector<Projected> projected;
  std::vector<const Projected*> keys;
  double key_most = 0;
  const RowIndex* before = nullptr;
  for (const std::size_t i : order) {
    const RowIndex& at = rows[i];
    if (before == nullptr || before->b != at.b || before->h != at.h) {
      projected.assign(static_cast<std::size_t>(k.shape[2]), {});
      keys.assign(projected.size(), nullptr);
      key_most = -std::numeric_limits<double>::infinity();
      for (std::size_t s = 0; s < keys.size(); ++s) {
        const auto token = static_cast<std::int64_t>(s);
        if (!inputs.visible(at.b, token, k.shape[2])) continue;
        projected[s] = of.project(k.row(at.b, at.h, token), k.shape[3], at.h);
        keys[s] = &projected[s];
        key_most = std::max(key_most, of.most(projected[s]));
      }
    }
    before = &at;
    auto seen = keys;
    if (problem.pattern == Pattern::causal) seen.resize(static_cast<std::size_t>(at.t) + 1);
    add_up(of, of.project(q.row(at.b, at.h, at.t), q.shape[3], at.h), seen, at, key_most,
           output.data() + i * width);
  }
  return output;
}

}  // namespace

Reference performer() { return performer_rows; }

}  // namespace attnbench::reference
