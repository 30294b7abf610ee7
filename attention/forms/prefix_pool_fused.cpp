#include <stdexcept>

#include "attention/forms/kernel_call.hpp"
#include "attention/forms/prefix_pool.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/team.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::PoolQuery kind_of(Query kind) {
  switch (kind) {
    case Query::weights:
      return kernels::PoolQuery::weights;
    case Query::logits:
      return kernels::PoolQuery::logits;
    case Query::logits_plus_z:
      return kernels::PoolQuery::logits_and_normaliser;
  }
  throw std::logic_error("query kind out of range");
}

/// One call: dense rows of one dtype.
struct Call {
  Tensor query, scores, values;
  Query kind;

  kernels::PrefixPoolSizes sizes() const {
    kernels::PrefixPoolSizes sizes;
    sizes.batch = values.size(0);
    sizes.heads = values.size(1);
    sizes.length = values.size(2);
    sizes.latents = scores.size(3);
    sizes.value_dim = values.size(3);
    sizes.query = kind_of(kind);
    return sizes;
  }
  template <class T>
  kernels::PrefixPoolArguments<T> arguments() const {
    kernels::PrefixPoolArguments<T> arguments;
    arguments.query = kernel_rows<const T>(query);
    arguments.scores = kernel_rows<const T>(scores);
    arguments.values = kernel_rows<const T>(values);
    return arguments;
  }
};

template <class R>
R* numbers(const Tensor& carried) {
  if (!carried.is_contiguous()) throw std::logic_error("a carry must be dense");
  return carried.data_ptr<R>();
}

Tensor forward(const Call& call, Carry* carry) {
  const auto sizes = call.sizes();
  const Tensor out =
      at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.values.options());
  dispatch_element(call.values, [&](auto element) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    AtenTeam team;
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    if (carry != nullptr) {
      arguments.carry = {numbers<R>(carry->maximum), numbers<R>(carry->normaliser),
                         numbers<R>(carry->sum)};
    }
    const auto bytes = kernels::prefix_pool_forward_bytes<T>(sizes, team.size());
    const Tensor workspace = kernel_workspace(bytes);
    kernels::prefix_pool_forward(sizes, arguments, team, workspace.data_ptr(), bytes);
  });
  return out;
}

struct Fused : torch::autograd::Function<Fused> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& scores,
                        const Tensor& values, std::int64_t kind) {
    context->save_for_backward({query, scores, values});
    context->saved_data["kind"] = kind;
    return prefix_pool::forward({query, scores, values, static_cast<Query>(kind)}, nullptr);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Call call{saved[0], saved[1], saved[2],
                    static_cast<Query>(context->saved_data["kind"].toInt())};
    const auto sizes = call.sizes();
    const Tensor d_out = with_dense_rows(gradients[0]);
    const Tensor d_query = at::empty(call.query.sizes(), call.query.options());
    const Tensor d_scores = at::empty(call.scores.sizes(), call.scores.options());
    const Tensor d_values = at::empty(call.values.sizes(), call.values.options());
    dispatch_element(call.values, [&](auto element) {
      using T = decltype(element);
      AtenTeam team;
      const auto bytes = kernels::prefix_pool_backward_bytes<T>(sizes, team.size());
      const Tensor workspace = kernel_workspace(bytes);
      kernels::prefix_pool_backward(sizes, call.arguments<T>(),
                                    {kernel_rows<const T>(d_out), kernel_rows<T>(d_query),
                                     kernel_rows<T>(d_scores), kernel_rows<T>(d_values)},
                                    team, workspace.data_ptr(), bytes);
    });
    return {d_query, d_scores, d_values, Tensor()};
  }
};

}  // namespace

Tensor fused(const Tensor& query, Query kind, const Tensor& scores, const Tensor& values,
             Carry* carry) {
  const auto type = at::promote_types(at::promote_types(query.scalar_type(), scores.scalar_type()),
                                      values.scalar_type());
  const Call call{with_dense_rows(query.to(type)), with_dense_rows(scores.to(type)),
                  with_dense_rows(values.to(type)), kind};
  Tensor out;
  if (carry == nullptr) {
    out = Fused::apply(call.query, call.scores, call.values, static_cast<std::int64_t>(kind));
  } else {
    const at::NoGradGuard no_grad;
    out = forward(call, carry);
  }
  return out.to(values.scalar_type());
}

}  // namespace attnbench::prefix_pool
