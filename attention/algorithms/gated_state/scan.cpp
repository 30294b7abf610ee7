// The gated state token by token: as a recurrent network or a step of decoding, in tensor
// operations and in one kernel.
#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/gated_state.hpp"

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
  const auto query = token_rows(call.query, type), key = token_rows(call.key, type);
  const auto value = token_rows(call.value, type);
  std::vector<Tensor> decay, beta, outputs;
  if (call.log_decay.defined()) decay = token_rows(call.log_decay.to(type).exp(), type);
  if (call.beta.defined()) beta = token_rows(call.beta, type);
  for (std::size_t t = 0; t < query.size(); ++t) {
    if (!decay.empty()) memory = memory * decay[t].unsqueeze(-1);
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

/// Of float32 or float64 tensors with dense rows; log_decay and beta may be undefined.
struct KernelInputs {
  Tensor query, key, value, log_decay, beta;

  kernels::GatedStateSizes sizes() const {
    return {value.size(0), value.size(1), value.size(2),
            key.size(3),   value.size(3), log_decay.defined() ? log_decay.size(3) : 0,
            beta.defined()};
  }
  template <class R>
  kernels::GatedStateArguments<R> arguments() const {
    kernels::GatedStateArguments<R> arguments;
    arguments.query = kernel_rows<const R>(query);
    arguments.key = kernel_rows<const R>(key);
    arguments.values = kernel_rows<const R>(value);
    if (log_decay.defined()) arguments.log_decay = kernel_rows<const R>(log_decay);
    if (beta.defined()) arguments.beta = kernel_rows<const R>(beta);
    return arguments;
  }
};

Tensor run_forward(const KernelInputs& x, const Tensor& state) {
  const Tensor out = at::empty(x.value.sizes(), x.value.options().requires_grad(false));
  const auto sizes = x.sizes();
  AtenTeam team;
  AT_DISPATCH_FLOATING_TYPES(x.value.scalar_type(), "gated_state", [&] {
    const std::size_t bytes = kernels::gated_state_forward_bytes<scalar_t>(sizes, team.size());
    const Tensor space = kernel_workspace(bytes, out);
    auto arguments = x.arguments<scalar_t>();
    arguments.out = kernel_rows<scalar_t>(out);
    if (state.defined()) arguments.memory = kernel_numbers<scalar_t>(state);
    kernels::gated_state_forward<scalar_t>(sizes, arguments, team, space.data_ptr(), bytes);
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

  /// Without a decay or a beta it is `none`: an undefined tensor has no device, for which LibTorch
  /// 1.13 asks.
  static Tensor forward(Context* context, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor& log_decay, const Tensor& beta) {
    context->save_for_backward({query, key, value, log_decay, beta});
    context->saved_data["gated"] = log_decay.requires_grad();
    return run_forward({query, key, value, given(log_decay), given(beta)}, {});
  }
  static Tensor none(const Tensor& like) {
    return at::empty({0}, like.options().requires_grad(false));
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 const torch::autograd::variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const KernelInputs x{saved[0], saved[1], saved[2], given(saved[3]), given(saved[4])};
    const Tensor d_out = with_dense_rows(upstream[0]);
    const auto like = [](const Tensor& tensor) {
      return at::empty(tensor.sizes(), tensor.options().requires_grad(false));
    };
    const Tensor d_query = like(x.query), d_key = like(x.key), d_value = like(x.value);
    Tensor d_beta, d_read;
    if (x.beta.defined()) {
      d_beta = like(x.beta);
      d_read = like(x.key);
    }
    const auto sizes = x.sizes();
    AtenTeam team;
    AT_DISPATCH_FLOATING_TYPES(x.value.scalar_type(), "gated_state", [&] {
      const std::size_t bytes = kernels::gated_state_backward_bytes<scalar_t>(sizes, team.size());
      const Tensor space = kernel_workspace(bytes, d_out);
      kernels::GatedStateGradients<scalar_t> gradients{
          kernel_rows<const scalar_t>(d_out), kernel_rows<scalar_t>(d_query),
          kernel_rows<scalar_t>(d_key), kernel_rows<scalar_t>(d_value)};
      if (x.beta.defined()) {
        gradients.d_beta = kernel_rows<scalar_t>(d_beta);
        gradients.d_read = kernel_rows<scalar_t>(d_read);
      }
      kernels::gated_state_backward<scalar_t>(sizes, x.arguments<scalar_t>(), gradients, team,
                                              space.data_ptr(), bytes);
    });
    Tensor d_decay;
    if (context->saved_data["gated"].toBool()) {
      const at::NoGradGuard no_grad;
      // Of the state that passes each token.
      const Tensor flow = d_read.defined() ? x.query * d_query + x.key * (2 * d_read - d_key)
                                           : x.query * d_query - x.key * d_key;
      d_decay = sums_to_end(sizes.gates == 1 ? flow.sum(-1, true) : flow);
    }
    return {d_query, d_key, d_value, d_decay, d_beta};
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

Tensor fused(const Call& call, Tensor state) {
  if (call.reads_columns) throw std::logic_error("the kernel reads no columns of a gated state");
  const auto type = compute_type(call.value.scalar_type());
  const auto dense = [&](const Tensor& x) { return x.defined() ? with_dense_rows(x.to(type)) : x; };
  const KernelInputs x{dense(call.query), dense(call.key), dense(call.value), dense(call.log_decay),
                       dense(call.beta)};
  const auto back = [&](const Tensor& output) { return output.to(call.value.scalar_type()); };
  if (state.defined()) {
    const at::NoGradGuard no_grad;
    return back(run_forward(x, state));
  }
  const auto or_none = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor : KernelNode::none(x.value);
  };
  return back(KernelNode::apply(x.query, x.key, x.value, or_none(x.log_decay), or_none(x.beta)));
}

}  // namespace attnbench::gated_state
