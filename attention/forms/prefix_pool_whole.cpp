#include "attention/entry_parts.hpp"
#include "attention/forms/kernel_call.hpp"
#include "attention/forms/prefix_pool.hpp"
#include "attention/kernels/whole_pool.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ATTNBENCH_CPU_KERNEL(whole_pool_forward)
ATTNBENCH_CPU_KERNEL(whole_pool_backward)

/// One call: dense rows of one dtype.
struct Call {
  Tensor query, scores, values;
  Query kind;

  kernels::WholePoolSizes sizes() const {
    kernels::WholePoolSizes sizes;
    sizes.batch = values.size(0);
    sizes.heads = values.size(1);
    sizes.length = query.size(2);
    sizes.key_length = values.size(2);
    sizes.latents = scores.size(3);
    sizes.value_dim = values.size(3);
    sizes.query = kernel_query(kind);
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

struct Whole : torch::autograd::Function<Whole> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& scores,
                        const Tensor& values, std::int64_t kind) {
    context->save_for_backward({query, scores, values});
    context->saved_data["kind"] = kind;
    const Call call{query, scores, values, static_cast<Query>(kind)};
    const auto sizes = call.sizes();
    const Tensor out =
        at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, values.options());
    on_cpu_only(values, [&](auto element, OnCpu& place) {
      using T = decltype(element);
      auto arguments = call.arguments<T>();
      arguments.out = kernel_rows<T>(out);
      run_whole_pool_forward<T>(place, out, sizes, arguments);
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const Call call{saved[0], saved[1], saved[2],
                    static_cast<Query>(context->saved_data["kind"].toInt())};
    const Tensor d_out = with_dense_rows(upstream[0]);
    variable_list gradients;
    for (const Tensor& x : saved) gradients.push_back(at::empty(x.sizes(), x.options()));
    on_cpu_only(call.values, [&](auto element, OnCpu& place) {
      using T = decltype(element);
      run_whole_pool_backward<T>(place, d_out, call.sizes(), call.arguments<T>(),
                                 kernels::PrefixPoolGradients<T>{
                                     kernel_rows<const T>(d_out), kernel_rows<T>(gradients[0]),
                                     kernel_rows<T>(gradients[1]), kernel_rows<T>(gradients[2])});
    });
    gradients.push_back({});
    return gradients;
  }
};

}  // namespace

Tensor whole_fused(const Tensor& query, Query kind, const Tensor& scores, const Tensor& values) {
  const auto type = at::promote_types(at::promote_types(query.scalar_type(), scores.scalar_type()),
                                      values.scalar_type());
  return Whole::apply(with_dense_rows(query.to(type)), with_dense_rows(scores.to(type)),
                      with_dense_rows(values.to(type)), static_cast<std::int64_t>(kind))
      .to(values.scalar_type());
}

double whole_fused_workspace_bytes(const Problem& problem, std::int64_t latents, Query kind) {
  kernels::WholePoolSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.length = problem.length;
  sizes.key_length = problem.key_length;
  sizes.latents = latents;
  sizes.value_dim = problem.value_dim;
  sizes.query = kernel_query(kind);
  return predicted_cpu_whole_pool_forward_bytes(problem, sizes);
}

}  // namespace attnbench::prefix_pool
