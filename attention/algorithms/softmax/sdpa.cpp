// LibTorch's scaled_dot_product_attention in all supported versions: public with a scale since 2.1,
// with grouped heads since 2.5.
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"

namespace attnbench {

#if ATTNBENCH_TORCH_VERSION < 201

std::vector<Implementation> sdpa_softmax(const BandedMechanism&) { return {}; }

#else

namespace {

enum class Backend { chosen, flash, cudnn, efficient, math };

constexpr std::pair<Backend, const char*> forced_backends[] = {{Backend::flash, "flash"},
                                                               {Backend::cudnn, "cudnn"},
                                                               {Backend::efficient, "efficient"},
                                                               {Backend::math, "math"}};

std::string name_of(Backend backend) {
  for (const auto& [known, word] : forced_backends) {
    if (known == backend) return std::string("torch_sdpa_") + word;
  }
  return "torch_sdpa";
}

/// Restricts LibTorch to one backend while it exists.
class Forced {
 public:
  explicit Forced(Backend backend) {
    if (backend != Backend::chosen)
      allow(backend == Backend::flash, backend == Backend::cudnn, backend == Backend::efficient,
            backend == Backend::math);
  }
  ~Forced() { allow(flash_, cudnn_, efficient_, math_); }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;

 private:
  static void allow(bool flash, bool cudnn, bool efficient, bool math) {
    at::Context& context = at::globalContext();
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(efficient);
    context.setSDPUseMath(math);
#if ATTNBENCH_TORCH_VERSION >= 205
    context.setSDPUseCuDNN(cudnn);
#else
    static_cast<void>(cudnn);
#endif
  }

  bool flash_ = at::globalContext().userEnabledFlashSDP();
  bool efficient_ = at::globalContext().userEnabledMemEfficientSDP();
  bool math_ = at::globalContext().userEnabledMathSDP();
#if ATTNBENCH_TORCH_VERSION >= 205
  bool cudnn_ = at::globalContext().userEnabledCuDNNSDP();
#else
  bool cudnn_ = false;
#endif
};

// ---- the call

/// Whether LibTorch's causal flag is equivalent: query t sees keys up to t, counted from the first.
bool is_plainly_causal(const SoftmaxCall& call) {
  return call.right == 0 && call.offset == 0 && call.length() == call.key_length() &&
         call.left >= call.length() - 1 && !call.key_mask.defined();
}

/// True where a query may see a key, broadcastable to [B, H, T, S].
at::Tensor visible(const SoftmaxCall& call) {
  const auto integers = call.q.options().dtype(at::kLong).requires_grad(false);
  const auto distance = at::arange(call.key_length(), integers).unsqueeze(0) -
                        at::arange(call.length(), integers).unsqueeze(1) - call.offset;
  const auto band = (distance >= -call.left).logical_and(distance <= call.right);
  if (!call.key_mask.defined()) return band.unsqueeze(0).unsqueeze(0);
  return band.logical_and(call.key_mask.unsqueeze(1).unsqueeze(1));
}

at::Tensor attend(const SoftmaxCall& call, const std::optional<at::Tensor>& mask, bool causal) {
#if ATTNBENCH_TORCH_VERSION >= 205
  return at::scaled_dot_product_attention(call.q, call.k, call.v, mask, 0.0, causal, call.scale,
                                          call.q.size(1) != call.k.size(1));
#else
  const std::int64_t group = call.q.size(1) / call.k.size(1);
  const auto repeated = [group](const at::Tensor& x) {
    return group == 1 ? x : x.repeat_interleave(group, 1);
  };
  return at::scaled_dot_product_attention(call.q, repeated(call.k), repeated(call.v), mask, 0.0,
                                          causal, call.scale);
#endif
}

at::Tensor softmax_sdpa(const SoftmaxCall& given, Backend backend) {
  SoftmaxCall call = given.without_padding();
  call.q = with_dense_rows(call.q);
  call.k = with_dense_rows(call.k);
  call.v = with_dense_rows(call.v);
  const Forced forced(backend);
  if (is_plainly_causal(call)) return attend(call, {}, true);
  if (!call.key_mask.defined() && call.sees_all()) return attend(call, {}, false);
  if (backend == Backend::flash || backend == Backend::cudnn) {
    throw UnsupportedError(name_of(backend) + ": LibTorch gives this backend no mask");
  }
  const at::Tensor seen = visible(call);
  if (!call.may_see_none()) return attend(call, seen, false);
  // An empty softmax is NaN: such queries see all keys, and their output is set to 0 afterwards.
  const at::Tensor blind = seen.logical_not().all(-1, true);
  return attend(call, seen.logical_or(blind), false).masked_fill(blind, 0.0);
}

/// The conditions below are incomplete: LibTorch itself may refuse the one backend it may use.
at::Tensor softmax_by(const SoftmaxCall& call, Backend backend) {
  try {
    return softmax_sdpa(call, backend);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
    if (!says("No available kernel") && !says("No viable backend")) throw;
    throw UnsupportedError(name_of(backend) + ": LibTorch cannot do this here: " +
                           message.substr(0, message.find('\n')));
  }
}

// ---- what each backend supports: the conditions of LibTorch 2.11's sdp_utils.cpp

bool needs_mask(const Window& band, const Problem& problem) {
  const std::int64_t last = problem.key_length - 1;
  if (band.left < last) return true;
  if (band.right >= last) return false;
  return band.right != 0 || problem.length != problem.key_length;
}

Support on_sixteen_bits(const char* backend, const Problem& problem) {
  if (bytes_of(problem.dtype) == 2) return {};
  return Support::no(std::string(backend) + " takes float16 and bfloat16 only");
}

Support flash_supports(const Window& band, const Problem& problem) {
  if (const auto sixteen = on_sixteen_bits("flash", problem); !sixteen) return sixteen;
  if (needs_mask(band, problem)) return Support::no("flash takes no mask, which a band is");
  if (problem.head_dim != problem.value_dim) return Support::no("flash wants value_dim = head_dim");
  if (problem.head_dim > 256) return Support::no("flash wants a head_dim of at most 256");
  return {};
}

Support cudnn_supports(const Window& band, const Problem& problem) {
  if (const auto sixteen = on_sixteen_bits("cudnn", problem); !sixteen) return sixteen;
  if (needs_mask(band, problem)) return Support::no("cudnn is given no mask, which a band is");
  if (problem.head_dim % 8 != 0 || problem.value_dim % 8 != 0) {
    return Support::no("cudnn wants head_dim and value_dim to be multiples of 8");
  }
  if (problem.head_dim > 128 || problem.value_dim > 128) {
    return Support::no("cudnn wants head_dim and value_dim of at most 128");
  }
  if (problem.key_length == 1) return Support::no("cudnn wants more than one key");
  return {};
}

Support efficient_supports(const Problem& problem) {
  if (problem.dtype == Dtype::float64) return Support::no("efficient takes no float64");
  const std::int64_t step = 16 / bytes_of(problem.dtype);
  if (problem.head_dim % step != 0 || problem.value_dim % step != 0) {
    return Support::no("efficient wants head_dim and value_dim to be multiples of " +
                       std::to_string(step));
  }
  if (problem.kv_heads != problem.heads) return Support::no("efficient shares no key heads");
  return {};
}

Support supports(Backend backend, const Window& band, const Problem& problem) {
  if (backend == Backend::chosen) return {};
  if (problem.device == "cpu") {
    return Support::no("LibTorch's backends are told apart on CUDA only; torch_sdpa runs here");
  }
  switch (backend) {
    case Backend::flash:
      return flash_supports(band, problem);
    case Backend::cudnn:
      return cudnn_supports(band, problem);
    case Backend::efficient:
      return efficient_supports(problem);
    default:
      return {};
  }
}

Cost cost_of(Backend backend, Cost cost, const Window& band, const Problem& problem) {
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double length = static_cast<double>(problem.length);
  const double square = length * static_cast<double>(problem.key_length);
  const double dims = static_cast<double>(problem.head_dim + problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const bool whole = backend == Backend::math || needs_mask(band, problem);
  const double pairs = whole ? square : blocked_pairs(problem, band, 128, 128, true);
  cost.executed_flops = 2 * dims * heads * pairs;
  cost.exponentials = heads * pairs;
  cost.saved_bytes = 4 * heads * length;
  cost.workspace_bytes = cost.saved_bytes;
  if (needs_mask(band, problem)) cost.workspace_bytes += (bytes + 1) * square;
  if (backend == Backend::math) {
    cost.workspace_bytes += 2 * heads * square * std::max(4.0, bytes);
    cost.saved_bytes += heads * square * bytes;
  }
  return cost;
}

Implementation implementation_of(Backend backend, const BandedMechanism& mechanism) {
  const bool chosen = backend == Backend::chosen;
  return {
      .name = name_of(backend),
      .title = std::string("LibTorch's scaled_dot_product_attention") +
               (chosen ? "" : ", this backend alone"),
      .supports =
          [backend, mechanism](const Options& options, const Problem& problem) {
            return supports(backend, mechanism.band(options, problem), problem);
          },
      .mix =
          [backend, mechanism](Mechanism& module, const Inputs& inputs, State* state) {
            if (state != nullptr && backend != Backend::chosen) {
              throw UnsupportedError(name_of(backend) + " takes no state; torch_sdpa does");
            }
            return Mixed{softmax_by(mechanism.call(module, inputs, state), backend), {}};
          },
      .cost =
          [backend, mechanism](const Options& options, const Problem& problem) {
            return cost_of(backend, common_softmax_cost(mechanism, options, problem),
                           mechanism.band(options, problem), problem);
          },
      .growth = {.time_in_length = 2, .workspace_in_length = backend == Backend::math ? 2.0 : 1.0},
      .rank = chosen ? 5 : -5};
}

}  // namespace

std::vector<Implementation> sdpa_softmax(const BandedMechanism& mechanism) {
  std::vector<Implementation> all{implementation_of(Backend::chosen, mechanism)};
#ifdef ATTNBENCH_TORCH_HAS_CUDA
  for (const auto& [backend, word] : forced_backends) {
    all.push_back(implementation_of(backend, mechanism));
  }
#endif
  return all;
}

#endif

}  // namespace attnbench
