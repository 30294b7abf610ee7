// The causal product token by token: S_t = S_{t-1} + b_t c_t^T, O_t = a_t S_t. Backward, with
// R_t = R_{t+1} + a_t g_t^T: da_t = S_t g_t, db_t = R_t c_t, dc_t = b_t R_t. What needs no
// recurrence is computed for blocks of tokens, time first: [n, N, .].
#include <algorithm>
#include <vector>

#include "attention/algorithms/causal_product/causal_product.hpp"

namespace attnbench::causal_product {
namespace {

using at::Tensor;

constexpr std::int64_t kScanBlock = 64;

/// A block's a, b and c.
struct Rows {
  Tensor a, b, c;
};

struct Inputs {
  Operand x, y;
  Tensor c;
  Form form;
  at::ScalarType type;

  std::int64_t length() const { return c.size(2); }
  Rows rows(std::int64_t begin) const {
    const std::int64_t count = std::min(kScanBlock, length() - begin);
    return {feature_of(x.rows(begin, count, type), form.feature),
            feature_of(y.rows(begin, count, type), form.feature),
            columns_of(rows_of(c, begin, count, type), form)};
  }
  Tensor empty_state() const {
    return at::zeros({c.size(0) * c.size(1), x.width(), c.size(3) + (form.normalised ? 1 : 0)},
                     c.options().dtype(type));
  }
};

Inputs inputs_of(const Operand& x, const Operand& y, const Tensor& c, const Form& form) {
  return {x, y, c, form, compute_type(c.scalar_type())};
}

/// state [N, F, W] += left right^T for one token's left [N, F], right [N, W].
void add_pair(const Tensor& state, const Tensor& left, const Tensor& right) {
  state.addcmul_(left.unsqueeze(-1), right.unsqueeze(-2));
}

/// Row t of `out` [n, N, 1, W] = left_t [N, F] times state.
void read_left(const Tensor& out, std::int64_t t, const Tensor& left, const Tensor& state) {
  Tensor row = out.select(0, t);
  at::bmm_out(row, left.select(0, t).unsqueeze(1), state);
}

/// Row t of `out` [n, N, F, 1] = state times right_t [N, W].
void read_right(const Tensor& out, std::int64_t t, const Tensor& state, const Tensor& right) {
  Tensor row = out.select(0, t);
  at::bmm_out(row, state, right.select(0, t).unsqueeze(-1));
}

/// The products of a block, [n, N, W]; `state` is advanced in place.
Tensor sums_of(const Rows& rows, const Tensor& state) {
  const Tensor sums = at::empty_like(rows.c).unsqueeze(2);
  for (std::int64_t t = 0; t < rows.c.size(0); ++t) {
    add_pair(state, rows.b.select(0, t), rows.c.select(0, t));
    read_left(sums, t, rows.a, state);
  }
  return sums.squeeze(2);
}

Tensor forward(const Inputs& inputs, const Tensor& state) {
  const Tensor out = at::empty(inputs.c.sizes(), inputs.c.options());
  for (std::int64_t begin = 0; begin < inputs.length(); begin += kScanBlock) {
    put_rows(out, begin, result_of(sums_of(inputs.rows(begin), state), inputs.form));
  }
  return out;
}

/// dx, and the gradients of the products, block by block [n, N, W].
std::vector<Tensor> forwards(const Inputs& inputs, const Tensor& upstream, const Tensor& dx) {
  std::vector<Tensor> d_sums;
  Tensor state = inputs.empty_state();
  for (std::int64_t begin = 0; begin < inputs.length(); begin += kScanBlock) {
    const Rows rows = inputs.rows(begin);
    const Tensor start = state.clone();
    const Tensor sums = sums_of(rows, state);
    const Tensor g = rows_of(upstream, begin, rows.c.size(0), inputs.type);
    d_sums.push_back(sums_gradient(sums, g, inputs.form));
    const Tensor da = at::empty_like(rows.a).unsqueeze(-1);
    for (std::int64_t t = 0; t < rows.c.size(0); ++t) {
      add_pair(start, rows.b.select(0, t), rows.c.select(0, t));
      read_right(da, t, start, d_sums.back());
    }
    inputs.x.put_rows_gradient(dx, begin,
                               feature_gradient(rows.a, da.squeeze(-1), inputs.form.feature));
  }
  return d_sums;
}

void backwards(const Inputs& inputs, const std::vector<Tensor>& d_sums, const Tensor& dy,
               const Tensor& dc) {
  const Tensor later = inputs.empty_state();
  for (std::size_t i = d_sums.size(); i-- > 0;) {
    const auto begin = static_cast<std::int64_t>(i) * kScanBlock;
    const Rows rows = inputs.rows(begin);
    const Tensor db = at::empty_like(rows.b).unsqueeze(-1);
    const Tensor columns = at::empty_like(rows.c).unsqueeze(2);
    for (std::int64_t t = rows.c.size(0) - 1; t >= 0; --t) {
      add_pair(later, rows.a.select(0, t), d_sums[i].select(0, t));
      read_right(db, t, later, rows.c);
      read_left(columns, t, rows.b, later);
    }
    inputs.y.put_rows_gradient(dy, begin,
                               feature_gradient(rows.b, db.squeeze(-1), inputs.form.feature));
    put_rows(dc, begin, columns.squeeze(2).narrow(-1, 0, inputs.c.size(3)));
  }
}

struct Scan {
  using Form = causal_product::Form;
  static c10::IValue pack(const Form& form) { return form.packed(); }
  static Form unpack(const c10::IValue& value) { return Form::unpacked(value); }

  static Tensor forward(const Operands& all, const Form& form) {
    const Inputs inputs = inputs_of(all.query, all.key, all.values, form);
    return causal_product::forward(inputs, inputs.empty_state());
  }
  static torch::autograd::variable_list backward(const Operands& all, const Form& form,
                                                 const Tensor& upstream) {
    const Inputs inputs = inputs_of(all.query, all.key, all.values, form);
    const Tensor dx = at::empty_like(inputs.x.whole);
    const Tensor dy = at::empty_like(inputs.y.whole);
    const Tensor dc = at::empty_like(inputs.c);
    backwards(inputs, forwards(inputs, upstream, dx), dy, dc);
    return {dx, dy, dc};
  }
};

}  // namespace

Tensor scan(const Operand& x, const Operand& y, const Tensor& c, const Form& form, Tensor state) {
  if (!state.defined()) return Recorded<Scan>::run({x, y, c}, form);
  const at::NoGradGuard no_grad;
  const Tensor past = state.flatten(0, 1).contiguous();
  const Tensor out = forward(inputs_of(x, y, c, form), past);
  state.copy_(past.view(state.sizes()));
  return out;
}

}  // namespace attnbench::causal_product
