// The prefix pool token by token. With m the running maximum and per-token factors
// decay_t = exp(m_{t-1} - m_t), e_t = exp(k_t - m_t),
//   normaliser_t = decay_t normaliser_{t-1} + e_t,   sum_t = decay_t sum_{t-1} + e_t v_t^T,
//   y_t = sum_l (p_{t,l} / normaliser_{t,l}) sum_{t,l}.          Dolga et al. 2024, eq. 20-21
// What needs no recurrence is computed for blocks of tokens, time first, [n, N, ...] with N = B H,
// so that one token is contiguous.
#include <algorithm>
#include <vector>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

constexpr std::int64_t kScanBlock = 64;

/// Factors of a block, computed from its scores; all [n, N, L].
struct Factors {
  Tensor maximum;
  Tensor decay;
  Tensor e;
  Tensor normaliser;
};

Factors factors_of(const Tensor& k, const Tensor& maximum, const Tensor& normaliser) {
  Factors f;
  f.maximum = at::maximum(std::get<0>(at::cummax(k, 0)), maximum);
  f.decay =
      shrink(at::cat({maximum.unsqueeze(0), f.maximum.narrow(0, 0, k.size(0) - 1)}), f.maximum);
  f.e = shrink(k, f.maximum);
  f.normaliser = at::empty_like(k);
  Tensor last = normaliser;
  for (std::int64_t t = 0; t < k.size(0); ++t) {
    Tensor next = f.normaliser.select(0, t);
    at::addcmul_out(next, f.e.select(0, t), last, f.decay.select(0, t));
    last = next;
  }
  return f;
}

/// sum <- decay sum + e v^T for one token: sum [N, L, D], decay and e [N, L], v [N, D].
void advance(Tensor& sum, const Tensor& decay, const Tensor& e, const Tensor& v) {
  sum.mul_(decay.unsqueeze(-1)).addcmul_(e.unsqueeze(-1), v.unsqueeze(-2));
}

/// `carry` is flat: [N, L], [N, L], [N, L, D], and advanced in place.
Tensor forward(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
               Carry& carry) {
  const auto type = carry.sum.scalar_type();
  const Tensor y = at::empty(values.sizes(), values.options());
  for (std::int64_t begin = 0; begin < values.size(2); begin += kScanBlock) {
    const std::int64_t count = std::min(kScanBlock, values.size(2) - begin);
    const Tensor v = rows_of(values, begin, count, type);
    const Factors f = factors_of(scores.rows(begin, count, type), carry.maximum, carry.normaliser);
    const Tensor gain = weights_of(query.rows(begin, count, type), kind, f.maximum, f.normaliser) *
                        reciprocal_or_zero(f.normaliser);
    const Tensor out = at::empty_like(v).unsqueeze(2);
    for (std::int64_t t = 0; t < count; ++t) {
      advance(carry.sum, f.decay.select(0, t), f.e.select(0, t), v.select(0, t));
      Tensor row = out.select(0, t);
      at::bmm_out(row, gain.select(0, t).unsqueeze(1), carry.sum);
    }
    carry.maximum.copy_(f.maximum.select(0, count - 1));
    carry.normaliser.copy_(f.normaliser.select(0, count - 1));
    put_rows(y, begin, out.squeeze(2));
  }
  return y;
}

// The gradient passes over the tokens twice: forward, for dp_t = M_t g_t, and backward, with
//   R_s = p_s / normaliser_s g_s^T + decay_{s+1} R_{s+1},  rho_s likewise with dp_s for g_s,
//   dv_s = e_s R_s,  dk_s = e_s (v_s . R_s - rho_s).
struct Backward {
  const Operand &query, &scores;
  const Tensor &values, &upstream;
  Query kind;
  at::ScalarType type = compute_type(values.scalar_type());
  Tensor d_query = at::empty_like(query.whole);
  Tensor d_scores = at::empty_like(scores.whole);
  Tensor d_values = at::empty_like(values);
  std::vector<Carry> starts = {};  ///< (maximum, normaliser) before each block
  /// dp [B, H, T, L]: uses the memory of d_query unless the query consists of features.
  Tensor d_weights = {};

  void forwards();
  void backwards();
};

void Backward::forwards() {
  Carry carry = flat_empty_carry(scores, values);
  d_weights = query.features.omega.defined()
                  ? at::empty({values.size(0), values.size(1), values.size(2), query.width()},
                              d_query.options().dtype(type))
                  : d_query;
  for (std::int64_t begin = 0; begin < values.size(2); begin += kScanBlock) {
    const std::int64_t count = std::min(kScanBlock, values.size(2) - begin);
    starts.push_back({carry.maximum, carry.normaliser, {}});
    const Tensor v = rows_of(values, begin, count, type);
    const Tensor g = rows_of(upstream, begin, count, type);
    const Factors f = factors_of(scores.rows(begin, count, type), carry.maximum, carry.normaliser);
    const Tensor dp = at::empty_like(f.e).unsqueeze(-1);
    for (std::int64_t t = 0; t < count; ++t) {
      advance(carry.sum, f.decay.select(0, t), f.e.select(0, t), v.select(0, t));
      Tensor row = dp.select(0, t);
      at::bmm_out(row, carry.sum, g.select(0, t).unsqueeze(-1));
    }
    put_rows(d_weights, begin, dp.squeeze(-1) * reciprocal_or_zero(f.normaliser));
    carry.maximum = f.maximum.select(0, count - 1).clone();
    carry.normaliser = f.normaliser.select(0, count - 1).clone();
  }
}

void Backward::backwards() {
  const Carry zero = flat_empty_carry(scores, values);
  Tensor sum = zero.sum;
  Tensor total = zero.normaliser;
  Tensor decay = at::zeros_like(total);
  for (std::int64_t i = static_cast<std::int64_t>(starts.size()) - 1; i >= 0; --i) {
    const std::int64_t begin = i * kScanBlock;
    const std::int64_t count = std::min(kScanBlock, values.size(2) - begin);
    const Carry& start = starts[static_cast<std::size_t>(i)];
    const Factors f = factors_of(scores.rows(begin, count, type), start.maximum, start.normaliser);
    const Tensor p = weights_of(query.rows(begin, count, type), kind, f.maximum, f.normaliser);
    const Tensor dp = rows_of(d_weights, begin, count, type);
    const Tensor gain = p * reciprocal_or_zero(f.normaliser);
    const Tensor flow = gain * subtracted(p, dp, kind);
    const Tensor v = rows_of(values, begin, count, type);
    const Tensor g = rows_of(upstream, begin, count, type);
    const Tensor to_value = at::empty_like(v).unsqueeze(2);
    const Tensor to_score = at::empty_like(f.e).unsqueeze(-1);
    const Tensor totals = at::empty_like(f.e);
    for (std::int64_t t = count - 1; t >= 0; --t) {
      advance(sum, decay, gain.select(0, t), g.select(0, t));
      total = at::addcmul(flow.select(0, t), total, decay);
      totals.select(0, t).copy_(total);
      Tensor value_row = to_value.select(0, t);
      at::bmm_out(value_row, f.e.select(0, t).unsqueeze(1), sum);
      Tensor score_row = to_score.select(0, t);
      at::bmm_out(score_row, sum, v.select(0, t).unsqueeze(-1));
      decay = f.decay.select(0, t);
    }
    put_rows(d_values, begin, to_value.squeeze(2));
    scores.put_rows_gradient(d_scores, begin, (to_score.squeeze(-1) - totals) * f.e);
    query.put_rows_gradient(d_query, begin, query_gradient(p, dp, kind));
  }
}

struct Scan {
  using Form = Query;
  static c10::IValue pack(Form kind) { return static_cast<std::int64_t>(kind); }
  static Form unpack(const c10::IValue& value) { return static_cast<Form>(value.toInt()); }

  static Tensor forward(const Operands& all, Form kind) {
    Carry carry = flat_empty_carry(all.key, all.values);
    return prefix_pool::forward(all.query, kind, all.key, all.values, carry);
  }
  static torch::autograd::variable_list backward(const Operands& all, Form kind,
                                                 const Tensor& upstream) {
    Backward pass{all.query, all.key, all.values, upstream, kind};
    pass.forwards();
    pass.backwards();
    return {pass.d_query, pass.d_scores, pass.d_values};
  }
};

}  // namespace

Tensor scan(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
            Carry* carry) {
  return for_query_heads(query, scores, values, carry,
                         [&](const Operand& each, const Tensor& of_each, Carry* past) -> Tensor {
                           if (!past) return Recorded<Scan>::run({query, each, of_each}, kind);
                           const at::NoGradGuard no_grad;
                           Carry flat = past->flat();
                           return forward(query, kind, each, of_each, flat);
                         });
}

}  // namespace attnbench::prefix_pool
