// Luna by its definition: Ma et al. 2021, "Luna: Linear Unified Nested Attention", section 3; the
// causal form by their published code.
//   bidirectional:  P_l = sum_s softmax_s(scale p_l . c_s) c_s,  heads side by side,
//                   y_t = sum_l softmax_l(scale q_t . (P W)_l) (P W)_l
//   causal:         w_s = omega(scale p . pack_key_s),  a = 1/n sum_s (scale q_t . k_s) w_s,
//                   y_t = 1/n sum_s (softmax(a) . w_s) v_s,  n the visible s <= t
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

using Numbers = std::vector<double>;

double dot(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

/// Softmax of logits, in place; a logit of -inf has no weight.
void normalise(Numbers& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (double& logit : logits) total += logit = std::isinf(top) ? 0 : std::exp(logit - top);
  for (double& logit : logits) logit = total > 0 ? logit / total : 0;
}

struct Definition {
  const Options& options;
  const Problem& problem;
  const ReferenceInputs& inputs;
  bool tied = options.boolean("tied");
  std::string activation = options.text("activation");
  std::int64_t slots = inputs.roles.at("latent_query").shape[2];
  bool composed = problem.pattern == Pattern::causal && activation == "latte_composed";
  double scale = composed ? 1 : 1 / std::sqrt(static_cast<double>(problem.head_dim));

  const Array& role(const char* name) const { return inputs.roles.at(name); }
  bool visible(std::int64_t b, std::int64_t s) const {
    return inputs.visible(b, s, problem.key_length);
  }
  double omega(double x) const {
    if (activation == "softplus_b2") {
      return std::max(x, 0.0) + std::log1p(std::exp2(-std::abs(x))) / std::log(2.0);
    }
    const double linear = x > 0 ? x + 1 : std::exp(x);
    return activation == "elu1" ? linear : std::log1p(std::exp(-linear)) + linear;
  }

  Numbers causal_row(const RowIndex& at) const;
  Numbers packed_slot(std::int64_t b, std::int64_t l) const;
  Numbers unpacked(const Numbers& packed, const std::string& name, std::int64_t h) const;
  Numbers read_row(const RowIndex& at, const std::vector<Numbers>& packed) const;
};

Numbers Definition::causal_row(const RowIndex& at) const {
  const Array &values = role(tied ? "key" : "value"), &keys = role("key");
  const Array &latents = role("latent_query"), &packs = role("pack_key");
  const double* query = role("query").row(at.b, at.h, at.t);
  Numbers wants(static_cast<std::size_t>(slots), 0.0);
  Numbers y(static_cast<std::size_t>(problem.value_dim), 0.0);
  std::vector<Numbers> weights(static_cast<std::size_t>(at.t + 1));
  double count = 0;
  for (std::int64_t s = 0; s <= at.t; ++s) {
    if (!visible(at.b, s)) continue;
    ++count;
    const double wanted = scale * dot(query, keys.row(at.b, at.h, s), problem.head_dim);
    for (std::int64_t l = 0; l < slots; ++l) {
      const double score =
          dot(latents.row(at.b, at.h, l), packs.row(at.b, at.h, s), problem.head_dim);
      weights[static_cast<std::size_t>(s)].push_back(omega(scale * score));
      wants[static_cast<std::size_t>(l)] += wanted * weights[static_cast<std::size_t>(s)].back();
    }
  }
  if (count == 0) return y;
  for (double& each : wants) each /= count;
  normalise(wants);
  for (std::int64_t s = 0; s <= at.t; ++s) {
    if (!visible(at.b, s)) continue;
    const double weight =
        dot(wants.data(), weights[static_cast<std::size_t>(s)].data(), slots) / count;
    for (std::size_t d = 0; d < y.size(); ++d) y[d] += weight * values.row(at.b, at.h, s)[d];
  }
  return y;
}

/// Slot `l` of the pack, all heads side by side.
Numbers Definition::packed_slot(std::int64_t b, std::int64_t l) const {
  const Array &keys = role("pack_key"), &values = role(tied ? "pack_key" : "pack_value");
  const Array& latents = role("latent_query");
  Numbers row;
  for (std::int64_t h = 0; h < problem.heads; ++h) {
    Numbers weights(static_cast<std::size_t>(problem.key_length),
                    -std::numeric_limits<double>::infinity());
    for (std::int64_t s = 0; s < problem.key_length; ++s) {
      if (!visible(b, s)) continue;
      weights[static_cast<std::size_t>(s)] =
          scale * dot(latents.row(b, h, l), keys.row(b, h, s), problem.head_dim);
    }
    normalise(weights);
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      double sum = 0;
      for (std::int64_t s = 0; s < problem.key_length; ++s) {
        if (visible(b, s)) sum += weights[static_cast<std::size_t>(s)] * values.row(b, h, s)[d];
      }
      row.push_back(sum);
    }
  }
  return row;
}

/// Head `h` of one slot of the pack times the parameter `name`.
Numbers Definition::unpacked(const Numbers& packed, const std::string& name, std::int64_t h) const {
  const Array& weight = inputs.parameters.at(name);
  const std::int64_t width = weight.shape[1] / problem.heads;
  Numbers out(static_cast<std::size_t>(width), 0.0);
  for (std::size_t c = 0; c < packed.size(); ++c) {
    const double* row = weight.values.data() + static_cast<std::int64_t>(c) * weight.shape[1];
    for (std::int64_t d = 0; d < width; ++d) {
      out[static_cast<std::size_t>(d)] += packed[c] * row[h * width + d];
    }
  }
  return out;
}

Numbers Definition::read_row(const RowIndex& at, const std::vector<Numbers>& packed) const {
  std::int64_t count = 0;
  for (std::int64_t s = 0; s < problem.key_length; ++s) count += visible(at.b, s) ? 1 : 0;
  Numbers weights(static_cast<std::size_t>(slots), -std::numeric_limits<double>::infinity());
  std::vector<Numbers> values;
  for (std::int64_t l = 0; l < slots; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const Numbers key = unpacked(packed[i], tied ? "weight_unpack" : "weight_unpack_key", at.h);
    values.push_back(tied ? key : unpacked(packed[i], "weight_unpack_value", at.h));
    if (l >= count && (options.boolean("dynamic_slots") || count == 0)) continue;
    weights[i] = scale * dot(role("query").row(at.b, at.h, at.t), key.data(), problem.head_dim);
  }
  normalise(weights);
  Numbers y(static_cast<std::size_t>(problem.value_dim), 0.0);
  for (std::size_t l = 0; l < values.size(); ++l) {
    for (std::size_t d = 0; d < y.size(); ++d) y[d] += weights[l] * values[l][d];
  }
  return y;
}

std::vector<double> luna_rows(const Options& options, const Problem& problem,
                              const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Definition luna{options, problem, inputs};
  std::map<std::int64_t, std::vector<Numbers>> packs;  // by batch row, made where one is asked for
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    Numbers y;
    if (problem.pattern == Pattern::causal) {
      y = luna.causal_row(at);
    } else {
      std::vector<Numbers>& packed = packs[at.b];
      for (std::int64_t l = static_cast<std::int64_t>(packed.size()); l < luna.slots; ++l) {
        packed.push_back(luna.packed_slot(at.b, l));
      }
      y = luna.read_row(at, packed);
    }
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference luna() { return luna_rows; }

}  // namespace attnbench::reference
