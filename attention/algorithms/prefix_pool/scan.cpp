// The prefix pool token by token. With m the running maximum and per-token factors
// fade_t = exp(m_{t-1} - m_t), e_t = exp(k_t - m_t),
//   normaliser_t = fade_t normaliser_{t-1} + e_t,   sum_t = fade_t sum_{t-1} + e_t v_t^T,
//   y_t = sum_l (p_{t,l} / normaliser_{t,l}) sum_{t,l}.          Dolga et al. 2024, eq. 20-21
// Blocks of tokens share what needs no recurrence; they are laid out time first, [n, N, ...] with
// N = B H, so that one token is contiguous.
#include <algorithm>
#include <vector>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

constexpr std::int64_t kBlock = 64;

/// What the scores of a block come to, token by token; all [n, N, L].
struct Factors {
  Tensor maximum;
  Tensor fade;
  Tensor e;
  Tensor normaliser;
};

Factors factors_of(const Tensor& k, const Tensor& maximum, const Tensor& normaliser) {
  Factors f;
  f.maximum = at::maximum(std::get<0>(at::cummax(k, 0)), maximum);
  f.fade =
      shrink(at::cat({maximum.unsqueeze(0), f.maximum.narrow(0, 0, k.size(0) - 1)}), f.maximum);
  f.e = shrink(k, f.maximum);
  f.normaliser = at::empty_like(k);
  Tensor last = normaliser;
  for (std::int64_t t = 0; t < k.size(0); ++t) {
    Tensor next = f.normaliser.select(0, t);
    at::addcmul_out(next, f.e.select(0, t), last, f.fade.select(0, t));
    last = next;
  }
  return f;
}

/// sum <- fade sum + e v^T for one token: sum [N, L, D], fade and e [N, L], v [N, D].
void advance(Tensor& sum, const Tensor& fade, const Tensor& e, const Tensor& v) {
  sum.mul_(fade.unsqueeze(-1)).addcmul_(e.unsqueeze(-1), v.unsqueeze(-2));
}

/// `carry` is flat: [N, L], [N, L], [N, L, D], and advanced in place.
Tensor forward(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
               Carry& carry) {
  const auto type = carry.sum.scalar_type();
  const Tensor y = at::empty(values.sizes(), values.options());
  for (std::int64_t begin = 0; begin < values.size(2); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, values.size(2) - begin);
    const Tensor v = rows_of(values, begin, count, type);
    const Factors f = factors_of(scores.rows(begin, count, type), carry.maximum, carry.normaliser);
    const Tensor gain = weights_of(query.rows(begin, count, type), kind, f.maximum, f.normaliser) *
                        reciprocal_or_zero(f.normaliser);
    const Tensor out = at::empty_like(v).unsqueeze(2);
    for (std::int64_t t = 0; t < count; ++t) {
      advance(carry.sum, f.fade.select(0, t), f.e.select(0, t), v.select(0, t));
      Tensor row = out.select(0, t);
      at::bmm_out(row, gain.select(0, t).unsqueeze(1), carry.sum);
    }
    carry.maximum.copy_(f.maximum.select(0, count - 1));
    carry.normaliser.copy_(f.normaliser.select(0, count - 1));
    put_rows(y, begin, out.squeeze(2));
  }
  return y;
}

// The gradient runs twice over the tokens: forwards, for dp_t = M_t g_t, and backwards, with
//   R_s = p_s / normaliser_s g_s^T + fade_{s+1} R_{s+1},  rho_s likewise with dp_s for g_s,
//   dv_s = e_s R_s,  dk_s = e_s (v_s . R_s - rho_s).
struct Backward {
  Operand query, scores;
  Tensor values, upstream;
  Query kind;
  at::ScalarType type;
  Tensor query_slope, scores_slope, values_slope;
  std::vector<Carry> starts = {};  ///< (maximum, normaliser) before each block
  /// dp [B, H, T, L]: where the query is not made of features, in the place of its gradient.
  Tensor weight_slope = {};

  void forwards();
  void backwards();
};

void Backward::forwards() {
  Carry carry = flat_empty_carry(scores, values);
  weight_slope = query.features.omega.defined()
                     ? at::empty({values.size(0), values.size(1), values.size(2), query.width()},
                                 query_slope.options().dtype(type))
                     : query_slope;
  for (std::int64_t begin = 0; begin < values.size(2); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, values.size(2) - begin);
    starts.push_back({carry.maximum, carry.normaliser, {}});
    const Tensor v = rows_of(values, begin, count, type);
    const Tensor g = rows_of(upstream, begin, count, type);
    const Factors f = factors_of(scores.rows(begin, count, type), carry.maximum, carry.normaliser);
    const Tensor slope = at::empty_like(f.e).unsqueeze(-1);
    for (std::int64_t t = 0; t < count; ++t) {
      advance(carry.sum, f.fade.select(0, t), f.e.select(0, t), v.select(0, t));
      Tensor row = slope.select(0, t);
      at::bmm_out(row, carry.sum, g.select(0, t).unsqueeze(-1));
    }
    put_rows(weight_slope, begin, slope.squeeze(-1) * reciprocal_or_zero(f.normaliser));
    carry.maximum = f.maximum.select(0, count - 1).clone();
    carry.normaliser = f.normaliser.select(0, count - 1).clone();
  }
}

void Backward::backwards() {
  const Carry zero = flat_empty_carry(scores, values);
  Tensor sum = zero.sum;
  Tensor total = zero.normaliser;
  Tensor fade = at::zeros_like(total);
  for (std::int64_t i = static_cast<std::int64_t>(starts.size()) - 1; i >= 0; --i) {
    const std::int64_t begin = i * kBlock;
    const std::int64_t count = std::min(kBlock, values.size(2) - begin);
    const Carry& start = starts[static_cast<std::size_t>(i)];
    const Factors f = factors_of(scores.rows(begin, count, type), start.maximum, start.normaliser);
    const Tensor p = weights_of(query.rows(begin, count, type), kind, f.maximum, f.normaliser);
    const Tensor slope = rows_of(weight_slope, begin, count, type);
    const Tensor gain = p * reciprocal_or_zero(f.normaliser);
    const Tensor flow = gain * subtracted(p, slope, kind);
    const Tensor v = rows_of(values, begin, count, type);
    const Tensor g = rows_of(upstream, begin, count, type);
    const Tensor to_value = at::empty_like(v).unsqueeze(2);
    const Tensor to_score = at::empty_like(f.e).unsqueeze(-1);
    const Tensor totals = at::empty_like(f.e);
    for (std::int64_t t = count - 1; t >= 0; --t) {
      advance(sum, fade, gain.select(0, t), g.select(0, t));
      total = at::addcmul(flow.select(0, t), total, fade);
      totals.select(0, t).copy_(total);
      Tensor value_row = to_value.select(0, t);
      at::bmm_out(value_row, f.e.select(0, t).unsqueeze(1), sum);
      Tensor score_row = to_score.select(0, t);
      at::bmm_out(score_row, sum, v.select(0, t).unsqueeze(-1));
      fade = f.fade.select(0, t);
    }
    put_rows(values_slope, begin, to_value.squeeze(2));
    scores.put_rows_gradient(scores_slope, begin, (to_score.squeeze(-1) - totals) * f.e);
    query.put_rows_gradient(query_slope, begin, query_gradient(p, slope, kind));
  }
}

class ScanFunction : public torch::autograd::Function<ScanFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& query,
                        const Tensor& scores, const Tensor& values, const Features& queried,
                        const Features& scored, std::int64_t kind) {
    context->save_for_backward({query, scores, values});
    context->saved_data["queried"] = queried.packed();
    context->saved_data["scored"] = scored.packed();
    context->saved_data["kind"] = kind;
    const Operand from{scores, scored};
    Carry carry = flat_empty_carry(from, values);
    return prefix_pool::forward({query, queried}, static_cast<Query>(kind), from, values, carry);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list upstream) {
    const auto saved = context->get_saved_variables();
    Backward pass{{saved[0], Features::unpacked(context->saved_data["queried"])},
                  {saved[1], Features::unpacked(context->saved_data["scored"])},
                  saved[2],
                  upstream[0],
                  static_cast<Query>(context->saved_data["kind"].toInt()),
                  compute_type(saved[2].scalar_type()),
                  at::empty_like(saved[0]),
                  at::empty_like(saved[1]),
                  at::empty_like(saved[2])};
    pass.forwards();
    pass.backwards();
    return {pass.query_slope, pass.scores_slope, pass.values_slope, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor scan(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
            Carry* carry) {
  if (!carry) {
    return ScanFunction::apply(query.whole, scores.whole, values, query.features, scores.features,
                               static_cast<std::int64_t>(kind));
  }
  const at::NoGradGuard no_grad;
  Carry flat = carry->flat();
  return forward(query, kind, scores, values, flat);
}

}  // namespace attnbench::prefix_pool
