#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/entry_parts.hpp"
#include "attention/kernels/whole_pool.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ATTNBENCH_CPU_KERNEL(whole_pool_forward)
ATTNBENCH_CPU_KERNEL(whole_pool_backward)

/// One call: dense rows of one dtype. With features, query and scores are the tokens before the
/// map, and a mask [B, S] hides tokens.
struct Call {
  Tensor query, scores, values;
  Query kind;
  Features features;
  Tensor mask;

  kernels::WholePoolSizes sizes() const {
    kernels::WholePoolSizes sizes;
    sizes.batch = values.size(0);
    sizes.heads = values.size(1);
    sizes.length = query.size(2);
    sizes.key_length = values.size(2);
    sizes.latents = scores.size(3);
    sizes.value_dim = values.size(3);
    sizes.query = kernel_query(kind);
    if (features.omega.defined()) {
      sizes.latents = features.omega.size(-2);
      sizes.scale = features.scale;
      sizes.directions = {scores.size(3), features.half_square};
    }
    return sizes;
  }
  template <class T>
  kernels::WholePoolArguments<T> arguments() const {
    kernels::WholePoolArguments<T> arguments;
    arguments.query = kernel_rows<const T>(query);
    arguments.scores = kernel_rows<const T>(scores);
    arguments.values = kernel_rows<const T>(values);
    if (features.omega.defined()) {
      const Tensor& omega = features.omega;
      arguments.directions = {omega.data_ptr<kernels::Compute<T>>(), 0,
                              omega.dim() == 3 ? omega.stride(0) : 0, omega.stride(-2)};
    }
    if (mask.defined()) {
      arguments.key_mask = static_cast<const std::uint8_t*>(mask.data_ptr());
      arguments.mask_stride = mask.stride(0);
    }
    return arguments;
  }
};

Tensor forward(const Call& call) {
  const auto sizes = call.sizes();
  Tensor out =
      at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.values.options());
  on_cpu_only(call.values, [&](auto element, OnCpu& place) {
    using T = decltype(element);
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    run_whole_pool_forward<T>(place, out, sizes, arguments);
  });
  return out;
}

struct Whole : torch::autograd::Function<Whole> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& scores,
                        const Tensor& values, std::int64_t kind) {
    context->save_for_backward({query, scores, values});
    context->saved_data["kind"] = kind;
    return prefix_pool::forward({query, scores, values, static_cast<Query>(kind), {}, {}});
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const Call call{saved[0], saved[1],
                    saved[2], static_cast<Query>(context->saved_data["kind"].toInt()),
                    {},       {}};
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

/// A call whose kernel computes the features of both.
Call with_features(const Operand& query, Query kind, const Operand& scores, const Tensor& values) {
  const at::NoGradGuard no_grad;
  const auto type = values.scalar_type();
  Call call{with_dense_rows(query.whole.to(type)),
            with_dense_rows(scores.whole.to(type)),
            with_dense_rows(values),
            kind,
            scores.features,
            {}};
  call.features.omega = scores.features.omega.to(compute_type(type)).contiguous();
  if (scores.features.hidden.defined()) {
    call.mask = scores.features.hidden.logical_not().flatten(1).contiguous();
  }
  return call;
}

kernels::WholePoolSizes sizes_of(const Problem& problem, std::int64_t latents, Query kind) {
  kernels::WholePoolSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.length = problem.length;
  sizes.key_length = problem.key_length;
  sizes.latents = latents;
  sizes.value_dim = problem.value_dim;
  sizes.query = kernel_query(kind);
  return sizes;
}

}  // namespace

Tensor whole_fused(const Operand& query, Query kind, const Operand& scores, const Tensor& values) {
  const std::int64_t heads = query.whole.size(1);
  if (heads != values.size(1)) {
    // Rows of the kernel, which pools each key head once.
    const Operand rows{folded_heads(query.whole, values.size(1)), query.features};
    return unfolded_heads(whole_fused(rows, kind, scores, values), heads);
  }
  const bool made = scores.features.omega.defined();
  if (made && !gradient_wanted({query.whole, scores.whole, values})) {
    const at::NoGradGuard no_grad;
    return forward(with_features(query, kind, scores, values));
  }
  const auto rows = [](const Operand& x) {
    return x.features.omega.defined() ? x.all(compute_type(x.whole.scalar_type())) : x.whole;
  };
  const Tensor q = rows(query), k = rows(scores);
  const auto type =
      at::promote_types(at::promote_types(q.scalar_type(), k.scalar_type()), values.scalar_type());
  return Whole::apply(with_dense_rows(q.to(type)), with_dense_rows(k.to(type)),
                      with_dense_rows(values.to(type)), static_cast<std::int64_t>(kind))
      .to(values.scalar_type());
}

Support whole_fused_supports(const Problem& problem) {
  if (is_cuda(problem.device)) {
    return Support::no("a pool without an order has no CUDA kernel; composite runs there");
  }
  return on_cpu_kernels(problem);
}

double whole_fused_workspace_bytes(const Problem& problem, std::int64_t latents, Query kind,
                                   bool features) {
  kernels::WholePoolSizes sizes = sizes_of(problem, latents, kind);
  if (features) sizes.directions.dim = problem.head_dim;
  return predicted_cpu_whole_pool_forward_bytes(problem, sizes);
}

}  // namespace attnbench::prefix_pool
