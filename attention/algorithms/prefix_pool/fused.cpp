#include <stdexcept>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/recurrence/fused_call.hpp"
#include "attention/kernels/prefix_pool.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"
#endif

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

ATTNBENCH_KERNEL(prefix_pool_forward)
ATTNBENCH_KERNEL(prefix_pool_backward)

/// See recurrence/fused_call.hpp.
struct Pool {
  using Form = Query;
  using Carry = prefix_pool::Carry;
  using Sizes = kernels::PrefixPoolSizes;
  template <class T>
  using Gradients = kernels::PrefixPoolGradients<T>;

  static c10::IValue pack(Form form) { return static_cast<std::int64_t>(form); }
  static Form unpack(const c10::IValue& value) { return static_cast<Form>(value.toInt()); }

  static Sizes sizes(std::int64_t rows, Form form) {
    Sizes sizes;
    sizes.latents = rows;
    sizes.query = kernel_query(form);
    return sizes;
  }
  template <class T>
  static auto arguments(const kernels::Rows<const T>& query, const kernels::Rows<const T>& key,
                        const kernels::Rows<const T>& values) {
    kernels::PrefixPoolArguments<T> arguments;
    arguments.query = query;
    arguments.scores = key;
    arguments.values = values;
    return arguments;
  }

  static Carry empty(const Tensor& values, std::int64_t rows, Form) {
    return empty_carry(values.size(0), values.size(1), rows, values.size(3), values.options());
  }
  template <class T>
  static void set_carry(kernels::PrefixPoolArguments<T>& arguments, const Carry& carry, Form) {
    using R = kernels::Compute<T>;
    arguments.carry = {kernel_numbers<R>(carry.maximum), kernel_numbers<R>(carry.normaliser),
                       kernel_numbers<R>(carry.sum)};
  }

  template <class T, class... Rest>
  static void forward(Rest&&... rest) {
    run_prefix_pool_forward<T>(std::forward<Rest>(rest)...);
  }
  template <class T, class... Rest>
  static void backward(Rest&&... rest) {
    run_prefix_pool_backward<T>(std::forward<Rest>(rest)...);
  }

  static bool mapped(Form) { return false; }
  static Tensor map(const Tensor& x, Form) { return x; }
  static Tensor map_gradient(const Tensor&, const Tensor& d_rows, Form) { return d_rows; }

  static std::string cuda_refusal([[maybe_unused]] const Sizes& sizes,
                                  [[maybe_unused]] bool gradient) {
#ifdef ATTNBENCH_CUDA_KERNELS
    const std::string forward = kernels::cuda::prefix_pool_refusal(sizes);
    if (!forward.empty() || !gradient) return forward;
    return kernels::cuda::prefix_pool_backward_refusal(sizes);
#else
    return {};
#endif
  }
};

}  // namespace

kernels::PoolQuery kernel_query(Query kind) {
  switch (kind) {
    case Query::weights:
      return kernels::PoolQuery::weights;
    case Query::logits:
      return kernels::PoolQuery::logits;
    case Query::logits_plus_z:
      return kernels::PoolQuery::logits_plus_z;
  }
  throw std::logic_error("query kind out of range");
}

Support fused_supports(const Problem& problem, std::int64_t latents) {
  return fused_call::supports<Pool>(problem, latents);
}

double fused_workspace_bytes(const Problem& problem, std::int64_t latents, Query kind) {
  return predicted_prefix_pool_forward_bytes(problem,
                                             fused_call::sizes_of<Pool>(problem, latents, kind));
}

Tensor fused(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
             Carry* carry) {
  return for_query_heads(query, scores, values, carry,
                         [&](const Operand& each, const Tensor& of_each, Carry* past) {
                           return fused_call::fused<Pool>({{query, each, of_each}, kind}, past);
                         });
}

}  // namespace attnbench::prefix_pool
