#include <stdexcept>

#include "attention/forms/kernel_call.hpp"
#include "attention/forms/prefix_pool.hpp"
#include "attention/kernels/prefix_pool.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/prefix_pool.hpp"
#endif

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ATTNBENCH_KERNEL(prefix_pool_forward)
ATTNBENCH_KERNEL(prefix_pool_backward)

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

Tensor forward(const Call& call, Carry* carry) {
  const auto sizes = call.sizes();
  const Tensor out =
      at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.values.options());
  on_kernels(call.values, [&](auto element, auto& place) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    if (carry != nullptr) {
      arguments.carry = {kernel_numbers<R>(carry->maximum), kernel_numbers<R>(carry->normaliser),
                         kernel_numbers<R>(carry->sum)};
    }
    run_prefix_pool_forward<T>(place, out, sizes, arguments);
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
    on_kernels(call.values, [&](auto element, auto& place) {
      using T = decltype(element);
      run_prefix_pool_backward<T>(
          place, d_out, sizes, call.arguments<T>(),
          kernels::PrefixPoolGradients<T>{kernel_rows<const T>(d_out), kernel_rows<T>(d_query),
                                          kernel_rows<T>(d_scores), kernel_rows<T>(d_values)});
    });
    return {d_query, d_scores, d_values, Tensor()};
  }
};

kernels::PrefixPoolSizes sizes_of(const Problem& problem, std::int64_t latents) {
  kernels::PrefixPoolSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.length = problem.length;
  sizes.latents = latents;
  sizes.value_dim = problem.value_dim;
  return sizes;
}

}  // namespace

Support fused_supports(const Problem& problem, std::int64_t latents) {
  return supported_by_kernels(problem, [&]() -> std::string {
    const auto sizes = sizes_of(problem, latents);
#ifdef ATTNBENCH_CUDA_KERNELS
    const std::string forward = kernels::cuda::prefix_pool_refusal(sizes);
    if (!forward.empty() || !problem.gradient) return forward;
    return kernels::cuda::prefix_pool_backward_refusal(sizes);
#else
    static_cast<void>(sizes);
    return {};
#endif
  });
}

double fused_workspace_bytes(const Problem& problem, std::int64_t latents) {
  return predicted_prefix_pool_forward_bytes(problem, sizes_of(problem, latents));
}

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
