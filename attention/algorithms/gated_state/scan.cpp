// The gated state token by token: as a recurrent network or a step of decoding, in tensor
// operations and in one kernel.
#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/gated_state.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/recurrent/causal_product.hpp"
#endif

namespace attnbench::gated_state {
namespace {

using at::Tensor;

/// x [B, H, T, w] as T tensors [N, w] in `type`.
std::vector<Tensor> token_rows(const Tensor& x, at::ScalarType type) {
  return rows_of(x, 0, x.size(2), type).unbind(0);
}

/// `memory` [N, D, Dv] before the first token becomes that after the last one.
Tensor scan_from(const Call& call, Tensor& memory) {
  const auto type = memory.scalar_type();
  const auto query = token_rows(call.scaled_query(), type), key = token_rows(call.key, type);
  const auto value = token_rows(call.value, type);
  std::vector<Tensor> decay, beta, removal, removed, outputs;
  if (call.log_decay.defined()) decay = token_rows(call.log_decay.to(type).exp(), type);
  if (call.removal.defined()) {
    removal = token_rows(call.removal, type);
    removed = token_rows(call.beta * call.removal, type);
  } else if (call.beta.defined()) {
    beta = token_rows(call.beta, type);
  }
  for (std::size_t t = 0; t < query.size(); ++t) {
    if (!removal.empty()) {  // read before the decay
      const Tensor held = at::bmm(removal[t].unsqueeze(1), memory);
      memory = at::addcmul(memory * decay[t].unsqueeze(-1), removed[t].unsqueeze(-1), held, -1);
    } else if (!decay.empty()) {
      memory = memory * decay[t].unsqueeze(-1);
    }
    Tensor written = value[t].unsqueeze(1);
    if (!beta.empty()) {
      written = written - beta[t].unsqueeze(1) * at::bmm(key[t].unsqueeze(1), memory);
    }
    memory = at::addcmul(memory, key[t].unsqueeze(-1), written);
    outputs.push_back(call.reads_columns ? at::bmm(memory, query[t].unsqueeze(2)).squeeze(2)
                                         : at::bmm(query[t].unsqueeze(1), memory).squeeze(1));
  }
  const Tensor& like = call.value;
  return at::stack(outputs, 1)
      .unflatten(0, at::IntArrayRef{like.size(0), like.size(1)})
      .to(like.scalar_type());
}

// ---- in one kernel

/// Float32 or float64 tensors with dense rows; those from log_decay on may be undefined.
struct KernelInputs {
  Tensor query, key, value, log_decay, beta, removal, erased;
  double scale = 1;  ///< of results; not 1 only where the kernel takes it

  kernels::GatedStateSizes sizes() const {
    return {value.size(0),  value.size(1), value.size(2),
            key.size(3),    value.size(3), log_decay.defined() ? log_decay.size(3) : 0,
            beta.defined(), scale,         removal.defined()};
  }
  template <class R>
  kernels::GatedStateArguments<R> arguments() const {
    kernels::GatedStateArguments<R> arguments;
    arguments.query = kernel_rows<const R>(query);
    arguments.key = kernel_rows<const R>(key);
    arguments.values = kernel_rows<const R>(value);
    if (log_decay.defined()) arguments.log_decay = kernel_rows<const R>(log_decay);
    if (beta.defined()) arguments.beta = kernel_rows<const R>(beta);
    if (removal.defined()) {
      arguments.removal = kernel_rows<const R>(removal);
      arguments.erased = kernel_rows<const R>(erased);
    }
    return arguments;
  }
  /// Runs `body(element, place)` as `on_kernels` does, for the types of this kernel.
  template <class Body>
  void on_place(const Body& body) const {
#ifdef ATTNBENCH_CUDA_KERNELS
    if (value.is_cuda()) {
      OnCuda place(value);
      return body(float{}, place);
    }
#endif
    OnCpu place;
    AT_DISPATCH_FLOATING_TYPES(value.scalar_type(), "gated_state",
                               [&] { body(scalar_t{}, place); });
  }
};

ATTNBENCH_CPU_KERNEL(gated_state_forward)
ATTNBENCH_CPU_KERNEL(gated_state_backward)
#ifdef ATTNBENCH_CUDA_KERNELS
// On a CUDA device there is the causal product alone, in float32: see fused_supports.
kernels::CausalProductSizes required_product(const kernels::GatedStateSizes& sizes) {
  if (!sizes.is_product()) throw std::logic_error("this gated state has no CUDA kernel");
  return sizes.product();
}
ATTNBENCH_CUDA_KERNEL(causal_product_forward)
ATTNBENCH_CUDA_KERNEL(causal_product_backward)

template <class R>
void run_gated_state_forward(OnCuda& place, const Tensor& like,
                             const kernels::GatedStateSizes& sizes,
                             const kernels::GatedStateArguments<R>& arguments) {
  run_causal_product_forward<R>(place, like, required_product(sizes), arguments.product());
}
template <class R>
void run_gated_state_backward(OnCuda& place, const Tensor& like,
                              const kernels::GatedStateSizes& sizes,
                              const kernels::GatedStateArguments<R>& arguments,
                              const kernels::GatedStateGradients<R>& to) {
  run_causal_product_backward<R>(
      place, like, required_product(sizes), arguments.product(),
      kernels::CausalProductGradients<R>{to.d_out, to.d_query, to.d_key, to.d_values});
}
#endif

Tensor run_forward(const KernelInputs& x, const Tensor& state) {
  const Tensor out = at::empty(x.value.sizes(), x.value.options().requires_grad(false));
  x.on_place([&](auto element, auto& place) {
    using R = decltype(element);
    auto arguments = x.arguments<R>();
    arguments.out = kernel_rows<R>(out);
    if (state.defined()) arguments.memory = kernel_numbers<R>(state);
    run_gated_state_forward<R>(place, out, x.sizes(), arguments);
  });
  return out;
}

/// Sums from each token to the last one, in double: they are of numbers that cancel.
Tensor sums_to_end(const Tensor& x) {
  return x.flip({2}).cumsum(2, at::kDouble).flip({2}).to(x.scalar_type());
}

class KernelNode : public torch::autograd::Function<KernelNode> {
 public:
  using Context = torch::autograd::AutogradContext;

  /// What is not there is `none`: an undefined tensor has no device, for which LibTorch 1.13 asks.
  static Tensor forward(Context* context, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor& log_decay, const Tensor& beta,
                        const Tensor& removal, const Tensor& erased, double scale) {
    context->saved_data["scale"] = scale;
    context->save_for_backward({query, key, value, log_decay, beta, removal, erased});
    context->saved_data["gated"] = log_decay.requires_grad();
    return run_forward(
        {query, key, value, given(log_decay), given(beta), given(removal), given(erased), scale},
        {});
  }
  static Tensor none(const Tensor& like) {
    return at::empty({0}, like.options().requires_grad(false));
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 const torch::autograd::variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const KernelInputs x{
        saved[0],        saved[1],        saved[2],        given(saved[3]),
        given(saved[4]), given(saved[5]), given(saved[6]), context->saved_data["scale"].toDouble()};
    const Tensor d_out = with_dense_rows(upstream[0]);
    const auto like = [](const Tensor& tensor) {
      return at::empty(tensor.sizes(), tensor.options().requires_grad(false));
    };
    const Tensor d_query = like(x.query), d_key = like(x.key), d_value = like(x.value);
    Tensor d_beta, d_read, d_removal, d_erased;
    if (x.beta.defined()) {
      d_beta = like(x.beta);
      d_read = like(x.key);
    }
    if (x.removal.defined()) {
      d_removal = like(x.removal);
      d_erased = like(x.erased);
    }
    const auto sizes = x.sizes();
    x.on_place([&](auto element, auto& place) {
      using R = decltype(element);
      kernels::GatedStateGradients<R> gradients{kernel_rows<const R>(d_out),
                                                kernel_rows<R>(d_query), kernel_rows<R>(d_key),
                                                kernel_rows<R>(d_value)};
      if (x.beta.defined()) {
        gradients.d_beta = kernel_rows<R>(d_beta);
        gradients.d_read = kernel_rows<R>(d_read);
      }
      if (x.removal.defined()) {
        gradients.d_removal = kernel_rows<R>(d_removal);
        gradients.d_erased = kernel_rows<R>(d_erased);
      }
      run_gated_state_backward<R>(place, d_out, sizes, x.arguments<R>(), gradients);
    });
    Tensor d_decay;
    if (context->saved_data["gated"].toBool()) {
      const at::NoGradGuard no_grad;
      // The gradient that flows through the state past each token.
      Tensor flow = d_read.defined() ? x.query * d_query + x.key * (2 * d_read - d_key)
                                     : x.query * d_query - x.key * d_key;
      if (d_removal.defined()) {
        flow -= x.erased * d_erased;
        const auto before_last = flow.size(2) - 1;
        flow.narrow(2, 0, before_last).add_((x.removal * d_removal).narrow(2, 1, before_last));
      }
      d_decay = sums_to_end(sizes.gates == 1 ? flow.sum(-1, true) : flow);
    }
    return {d_query, d_key, d_value, d_decay, d_beta, d_removal, d_erased, {}};
  }

 private:
  static Tensor given(const Tensor& x) { return x.dim() == 4 ? x : Tensor(); }
};

}  // namespace

Tensor scan(const Call& call, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const Tensor& value = call.value;
  const auto type = compute_type(value.scalar_type());
  Tensor memory = state.defined()
                      ? state.flatten(0, 1).to(type)
                      : at::zeros({value.size(0) * value.size(1), call.key.size(3), value.size(3)},
                                  value.options().dtype(type));
  const Tensor output = scan_from(call, memory);
  if (state.defined()) state.copy_(memory.view(state.sizes()));
  return output;
}

Support fused_supports(const Problem& problem, [[maybe_unused]] std::int64_t rows, double gates,
                       bool erases) {
  if (is_cuda(problem.device) && (erases || gates > 1)) {
    return Support::no("the kernel with gates of channels or an erasure is for the CPU");
  }
  return supported_by_kernels(problem, [&]() -> std::string {
#ifdef ATTNBENCH_CUDA_KERNELS
    const kernels::GatedStateSizes sizes{
        problem.batch, problem.heads, problem.length, rows, problem.value_dim, 1, false};
    if (problem.gradient) return kernels::cuda::causal_product_backward_refusal(sizes.product());
    return kernels::cuda::causal_product_refusal(sizes.product());
#else
    return {};
#endif
  });
}

Tensor fused(const Call& call, Tensor state) {
  if (call.reads_columns) {
    throw std::logic_error("the kernel does not read columns of a gated state");
  }
  const auto type = compute_type(call.value.scalar_type());
  const auto dense = [&](const Tensor& x) { return x.defined() ? with_dense_rows(x.to(type)) : x; };
  const bool kernel_scales = call.value.is_cpu() && call.log_decay.defined() &&
                             call.log_decay.size(3) == 1 && !call.beta.defined();
  const bool removes = call.removal.defined();
  const KernelInputs x{dense(kernel_scales ? call.query : call.scaled_query()),
                       dense(call.key),
                       dense(call.value),
                       dense(call.log_decay),
                       dense(removes ? Tensor() : call.beta),
                       dense(call.removal),
                       dense(removes ? call.beta * call.removal : Tensor()),
                       kernel_scales ? call.scale : 1};
  const auto back = [&](const Tensor& output) { return output.to(call.value.scalar_type()); };
  if (state.defined()) {
    const at::NoGradGuard no_grad;
    return back(run_forward(x, state));
  }
  const auto or_none = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor : KernelNode::none(x.value);
  };
  return back(KernelNode::apply(x.query, x.key, x.value, or_none(x.log_decay), or_none(x.beta),
                                or_none(x.removal), or_none(x.erased), x.scale));
}

}  // namespace attnbench::gated_state
