#include "attention/algorithms/lavo/lavo.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/lavo.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/lavo/lavo.hpp"
#endif

namespace attnbench::lavo {
namespace {

using at::Tensor;
using kernels::MemoryOrder;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ATTNBENCH_KERNEL(lavo_forward)
ATTNBENCH_KERNEL(lavo_backward)

/// One call of the kernel: dense rows of one dtype.
struct KernelCall {
  Tensor query, tokens, bases, mask;
  kernels::LavoSizes sizes;

  template <class T>
  kernels::LavoArguments<T> arguments() const {
    kernels::LavoArguments<T> arguments;
    arguments.query = kernel_rows<const T>(query);
    arguments.tokens = kernel_rows<const T>(tokens);
    arguments.bases = kernel_rows<const T>(bases.unsqueeze(0));
    if (mask.defined()) {
      arguments.key_mask = static_cast<const std::uint8_t*>(mask.data_ptr());
      arguments.mask_stride = mask.stride(0);
    }
    return arguments;
  }
};

void forward(const KernelCall& call, Carry* carry, const Tensor& out) {
  on_kernels(call.query, [&](auto element, auto& place) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    if (carry != nullptr) {
      arguments.carry.mean = kernel_numbers<R>(carry->u);
      arguments.carry.count = kernel_numbers<std::int64_t>(carry->count);
      if (carry->sum.defined()) {
        arguments.carry.sum = kernel_numbers<R>(carry->sum);
        arguments.carry.sum_count = kernel_numbers<std::int64_t>(carry->sum_count);
      }
    }
    run_lavo_forward<T>(place, out, call.sizes, arguments);
  });
}

struct Recorded : torch::autograd::Function<Recorded> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& tokens,
                        const Tensor& bases, const KernelCall& call) {
    const auto& n = call.sizes;
    context->save_for_backward({query, tokens, bases});
    context->saved_data["sizes"] = std::vector<std::int64_t>{
        static_cast<std::int64_t>(n.order), n.window, n.phase, n.averaged ? 1 : 0, n.alone ? 1 : 0};
    context->saved_data["scale"] = n.scale;
    context->saved_data["mask"] = call.mask;
    const Tensor out = at::empty(query.sizes(), query.options());
    lavo::forward(call, nullptr, out);
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& upstream);
};

KernelCall kernel_call(const Tensor& query, const Tensor& tokens, const Tensor& bases,
                       const Tensor& mask, MemoryOrder order) {
  KernelCall call{with_dense_rows(query),
                  with_dense_rows(tokens),
                  bases.contiguous(),
                  mask.defined() ? mask.contiguous() : mask,
                  {}};
  auto& sizes = call.sizes;
  sizes.batch = query.size(0);
  sizes.heads = query.size(1);
  sizes.length = query.size(2);
  sizes.memory_length = tokens.size(2);
  sizes.bases = bases.size(1);
  sizes.head_dim = bases.size(2);
  sizes.order = order;
  return call;
}

variable_list Recorded::backward(AutogradContext* context, const variable_list& upstream) {
  const auto saved = context->get_saved_variables();
  auto& data = context->saved_data;
  const auto said = data.at("sizes").toIntVector();
  KernelCall call = kernel_call(saved[0], saved[1], saved[2], data.at("mask").toTensor(),
                                static_cast<MemoryOrder>(said[0]));
  call.sizes.window = said[1];
  call.sizes.phase = said[2];
  call.sizes.averaged = said[3] != 0;
  call.sizes.alone = said[4] != 0;
  call.sizes.scale = data.at("scale").toDouble();
  const Tensor d_out = with_dense_rows(upstream[0]);
  const Tensor d_query = at::empty(saved[0].sizes(), saved[0].options());
  const Tensor d_tokens = at::empty(saved[1].sizes(), saved[1].options());
  const Tensor d_bases =
      at::empty(saved[2].sizes(), saved[2].options().dtype(compute_type(saved[2].scalar_type())));
  on_kernels(call.query, [&](auto element, auto& place) {
    using T = decltype(element);
    const kernels::LavoGradients<T> gradients{kernel_rows<const T>(d_out), kernel_rows<T>(d_query),
                                              kernel_rows<T>(d_tokens),
                                              kernel_numbers<kernels::Compute<T>>(d_bases)};
    run_lavo_backward<T>(place, d_out, call.sizes, call.arguments<T>(), gradients);
  });
  return {d_query, d_tokens, d_bases.to(saved[2].scalar_type()), Tensor()};
}

/// The mask of the queries' tokens, without that of past keys.
Tensor own_mask(const Call& call, bool causal) {
  const Tensor& mask = call.local.key_mask;
  if (!mask.defined() || !causal) return mask;
  return mask.narrow(1, call.local.offset, call.local.length());
}

/// `local` is undefined in the plain form.
Tensor remembered(const Call& call, const Tensor& local, MemoryOrder order, Carry* carry,
                  std::int64_t position) {
  const bool causal = order != MemoryOrder::all;
  const auto type = call.local.q.scalar_type();
  const Tensor tokens = (local.defined() ? local : call.context).to(type);
  KernelCall kernel =
      kernel_call(call.local.q, tokens, call.bases.to(type), own_mask(call, causal), order);
  kernel.sizes.scale = call.scale;
  kernel.sizes.averaged = local.defined();
  if (order == MemoryOrder::windows) {
    kernel.sizes.window = call.window;
    kernel.sizes.phase = position % call.window;
    kernel.sizes.alone = call.local_alone;
  }
  if (carry == nullptr && gradient_wanted({call.local.q, tokens, call.bases})) {
    return Recorded::apply(kernel.query, kernel.tokens, kernel.bases, kernel);
  }
  const at::NoGradGuard no_grad;
  // The local output may be overwritten by the output, unless it is the value itself (a single
  // key).
  const bool ours = local.defined() && call.local.key_length() > 1 && kernel.tokens.is_contiguous();
  const Tensor out = ours ? kernel.tokens : at::empty(call.local.q.sizes(), tokens.options());
  forward(kernel, carry, out);
  return out;
}

kernels::LavoSizes kernel_sizes(const CostSizes& sizes) {
  const Problem& problem = sizes.problem;
  kernels::LavoSizes n;
  n.batch = problem.batch;
  n.heads = problem.heads;
  n.length = problem.length;
  n.memory_length = problem.key_length;
  n.bases = sizes.bases;
  n.head_dim = problem.head_dim;
  n.order = MemoryOrder::all;
  if (problem.pattern == Pattern::causal) {
    n.order = sizes.plain ? MemoryOrder::each_token : MemoryOrder::windows;
    n.window = sizes.window.left + 1;
  }
  return n;
}

kernels::SoftmaxSizes local_sizes(const CostSizes& sizes) {
  const Problem& problem = sizes.problem;
  kernels::SoftmaxSizes local;
  local.batch = problem.batch;
  local.heads = local.kv_heads = problem.heads;
  local.length = local.key_length = problem.length;
  local.head_dim = local.value_dim = problem.head_dim;
  local.left = sizes.window.left;
  local.right = sizes.window.right;
  if (sizes.biased) local.bias_reach = std::max(local.left, local.right);
  return local;
}

}  // namespace

Tensor fused(const Call& call) {
  const Tensor local = call.plain() ? Tensor() : relative_band_tiled(call.local, call.bias);
  return remembered(call, local, MemoryOrder::all, nullptr, 0);
}

Tensor fused_causal(const Call& call, Carry* carry, std::int64_t position) {
  if (call.plain()) return remembered(call, {}, MemoryOrder::each_token, carry, position);
  return remembered(call, relative_band_tiled(call.local, call.bias), MemoryOrder::windows, carry,
                    position);
}

Tensor fused_token(const Call& call, const Tensor& local, Carry& carry, std::int64_t position) {
  return remembered(call, local, MemoryOrder::windows, &carry, position);
}

Support fused_supports(const CostSizes& sizes) {
  const Support memory = supported_by_kernels(sizes.problem, [&]() -> std::string {
#ifdef ATTNBENCH_CUDA_KERNELS
    return kernels::cuda::lavo_refusal(kernel_sizes(sizes));
#else
    return {};
#endif
  });
  if (!memory || sizes.plain) return memory;
  return tiled_supports(sizes.problem, local_sizes(sizes));
}

Cost fused_cost(const CostSizes& sizes) {
  const Problem& problem = sizes.problem;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double heads = real(problem.batch * problem.heads);
  const double width = real(problem.head_dim), queries = real(problem.length);
  Cost cost = common_cost(sizes);
  const double memory = memory_flops(sizes);
  double pairs = 0;
  cost.workspace_bytes = predicted_lavo_forward_bytes(problem, kernel_sizes(sizes));
  if (!sizes.plain) {
    pairs = heads * blocked_pairs(problem, sizes.window, 64, 64, true);
    cost.workspace_bytes =
        std::max(cost.workspace_bytes, tiled_workspace_bytes(problem, local_sizes(sizes)));
    cost.saved_bytes =
        heads * queries *
        (width * real(bytes_of(problem.dtype)) + (problem.dtype == Dtype::float64 ? 8 : 4));
  }
  cost.executed_flops = memory + 4 * width * pairs;
  cost.exponentials = pairs + heads * queries * real(sizes.bases);
  cost.backward_flops = (2.5 * memory + 10 * width * pairs) / std::max(1.0, cost.executed_flops);
  return cost;
}

}  // namespace attnbench::lavo
