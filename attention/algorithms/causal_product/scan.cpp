// The causal product token by token: S_t = S_{t-1} + b_t c_t^T, O_t = a_t S_t. Backwards, with
// R_t = R_{t+1} + a_t g_t^T: da_t = S_t g_t, db_t = R_t c_t, dc_t = b_t R_t. Blocks of tokens share
// what needs no recurrence, time first: [n, N, .].
#include <algorithm>
#include <vector>

#include "attention/algorithms/causal_product/causal_product.hpp"

namespace attnbench::causal_product {
namespace {

using at::Tensor;

constexpr std::int64_t kBlock = 64;

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
    const std::int64_t count = std::min(kBlock, length() - begin);
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
  for (std::int64_t begin = 0; begin < inputs.length(); begin += kBlock) {
    put_rows(out, begin, result_of(sums_of(inputs.rows(begin), state), inputs.form));
  }
  return out;
}

class ScanFunction : public torch::autograd::Function<ScanFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& y,
                        const Tensor& c, const Features& of_x, const Features& of_y,
                        const Form& form) {
    context->save_for_backward({x, y, c});
    context->saved_data["of x"] = of_x.packed();
    context->saved_data["of y"] = of_y.packed();
    context->saved_data["feature"] = static_cast<std::int64_t>(form.feature);
    context->saved_data["normalised"] = form.normalised;
    context->saved_data["epsilon"] = form.epsilon;
    const Inputs inputs = inputs_of({x, of_x}, {y, of_y}, c, form);
    return causal_product::forward(inputs, inputs.empty_state());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list upstream) {
    const auto saved = context->get_saved_variables();
    const Form form{static_cast<Feature>(context->saved_data["feature"].toInt()),
                    context->saved_data["normalised"].toBool(),
                    context->saved_data["epsilon"].toDouble()};
    const Inputs inputs =
        inputs_of({saved[0], Features::unpacked(context->saved_data["of x"])},
                  {saved[1], Features::unpacked(context->saved_data["of y"])}, saved[2], form);
    const Tensor dx = at::empty_like(inputs.x.whole);
    const Tensor dy = at::empty_like(inputs.y.whole);
    const Tensor dc = at::empty_like(inputs.c);
    const std::vector<Tensor> slopes = forwards(inputs, upstream[0], dx);
    backwards(inputs, slopes, dy, dc);
    return {dx, dy, dc, Tensor(), Tensor(), Tensor()};
  }

 private:
  /// dx, and the gradients of the products, block by block [n, N, W].
  static std::vector<Tensor> forwards(const Inputs& inputs, const Tensor& upstream,
                                      const Tensor& dx) {
    std::vector<Tensor> slopes;
    Tensor state = inputs.empty_state();
    for (std::int64_t begin = 0; begin < inputs.length(); begin += kBlock) {
      const Rows rows = inputs.rows(begin);
      const Tensor start = state.clone();
      const Tensor sums = sums_of(rows, state);
      const Tensor g = rows_of(upstream, begin, rows.c.size(0), inputs.type);
      slopes.push_back(sums_gradient(sums, g, inputs.form));
      const Tensor da = at::empty_like(rows.a).unsqueeze(-1);
      for (std::int64_t t = 0; t < rows.c.size(0); ++t) {
        add_pair(start, rows.b.select(0, t), rows.c.select(0, t));
        read_right(da, t, start, slopes.back());
      }
      inputs.x.put_rows_gradient(dx, begin,
                                 feature_gradient(rows.a, da.squeeze(-1), inputs.form.feature));
    }
    return slopes;
  }

  static void backwards(const Inputs& inputs, const std::vector<Tensor>& slopes, const Tensor& dy,
                        const Tensor& dc) {
    const Tensor later = inputs.empty_state();
    for (std::size_t i = slopes.size(); i-- > 0;) {
      const auto begin = static_cast<std::int64_t>(i) * kBlock;
      const Rows rows = inputs.rows(begin);
      const Tensor db = at::empty_like(rows.b).unsqueeze(-1);
      const Tensor columns = at::empty_like(rows.c).unsqueeze(2);
      for (std::int64_t t = rows.c.size(0) - 1; t >= 0; --t) {
        add_pair(later, rows.a.select(0, t), slopes[i].select(0, t));
        read_right(db, t, later, rows.c);
        read_left(columns, t, rows.b, later);
      }
      inputs.y.put_rows_gradient(dy, begin,
                                 feature_gradient(rows.b, db.squeeze(-1), inputs.form.feature));
      put_rows(dc, begin, columns.squeeze(2).narrow(-1, 0, inputs.c.size(3)));
    }
  }
};

}  // namespace

Tensor scan(const Operand& x, const Operand& y, const Tensor& c, const Form& form, Tensor state) {
  if (!state.defined()) {
    return ScanFunction::apply(x.whole, y.whole, c, x.features, y.features, form);
  }
  const at::NoGradGuard no_grad;
  const Tensor past = state.flatten(0, 1).contiguous();
  const Tensor out = forward(inputs_of(x, y, c, form), past);
  state.copy_(past.view(state.sizes()));
  return out;
}

}  // namespace attnbench::causal_product
