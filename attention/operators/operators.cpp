// The mechanisms as operators of PyTorch, torch.ops.attnbench: what python/src/attnbench/kernels.py
// calls, in the process, the threads and the memory of the caller.
//
//   mix            a whole sequence; with gradients
//   mix_backward   its gradients, the forward pass recomputed: for torch.compile and torch.export,
//                  which keep nothing of what an operator computes inside
//   step           continues from a state, which it updates
//   describe       roles, weights and state of a mechanism, as JSON
//   initial_weights, empty_state
#include <nlohmann/json.hpp>

#include "attention/operators/prepared_call.hpp"
#include "attention/shape_inference.hpp"
#include "attention/torch/autocast.hpp"
#include "attention/torch/library.hpp"

namespace attnbench::operators {
namespace {

using at::Tensor;
using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;

/// Errors of ours as those of Python: ValueError and NotImplementedError, with our sentence.
template <class Work>
auto translated(const Work& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  } catch (const UnsupportedError& error) {
    C10_THROW_ERROR(NotImplementedError, error.what());
  }
}

Arguments arguments_of(at::TensorList inputs, at::TensorList weights,
                       const OptionalTensor& key_mask) {
  return {inputs.vec(), weights.vec(), key_mask ? *key_mask : Tensor()};
}

Tensor computed(const std::string& text, const Arguments& arguments, bool gradient) {
  const NoAutocast plain;
  const auto prepared = prepared_for(text, arguments, gradient);
  const auto mechanism = prepared->mechanism(arguments);
  return prepared->implementation->mix(*mechanism, prepared->inputs(arguments), nullptr).output;
}

// ---- mix

Tensor mix(at::TensorList inputs, at::TensorList weights, const OptionalTensor& key_mask,
           std::string text) {
  const at::NoGradGuard no_grad;
  return translated([&] { return computed(text, arguments_of(inputs, weights, key_mask), false); });
}

/// Recording is possible again inside an operator, below autograd, while this exists.
class WithAutograd {
 public:
  WithAutograd() : keys_(with_autograd()), recording_(true) {}

 private:
  static c10::impl::LocalDispatchKeySet with_autograd() {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return keys;
  }
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode recording_;
};

/// A leaf of the same numbers.
Tensor leaf_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) return tensor;
  return tensor.detach().requires_grad_();
}

Tensors mix_backward(const Tensor& upstream, at::TensorList inputs, at::TensorList weights,
                     const OptionalTensor& key_mask, std::string text) {
  const WithAutograd recording;
  return translated([&] {
    Arguments arguments = arguments_of(inputs, weights, key_mask);
    Tensors leaves;
    for (Tensors* const tensors : {&arguments.inputs, &arguments.weights}) {
      for (Tensor& tensor : *tensors) {
        tensor = leaf_of(tensor);
        if (tensor.requires_grad()) leaves.push_back(tensor);
      }
    }
    const Tensor output = computed(text, arguments, true);
    Tensors found(leaves.size());
    if (output.requires_grad()) {
      found = torch::autograd::grad({output}, leaves, {upstream}, {}, false, true);
    }
    Tensors gradients;
    std::size_t next = 0;
    for (const Tensors* const tensors : {&arguments.inputs, &arguments.weights}) {
      for (const Tensor& tensor : *tensors) {
        const Tensor gradient = tensor.requires_grad() ? found[next++] : Tensor();
        gradients.push_back(gradient.defined()
                                ? gradient.detach().contiguous()
                                : at::zeros_like(tensor, at::MemoryFormat::Contiguous));
      }
    }
    return gradients;
  });
}

Tensor call_mix(at::TensorList inputs, at::TensorList weights, const OptionalTensor& key_mask,
                const std::string& text) {
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("attnbench::mix", "").typed<decltype(mix)>();
  return operation.call(inputs, weights, key_mask, text);
}

Tensors call_mix_backward(const Tensor& upstream, at::TensorList inputs, at::TensorList weights,
                          const OptionalTensor& key_mask, const std::string& text) {
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("attnbench::mix_backward", "")
                                    .typed<decltype(mix_backward)>();
  return operation.call(upstream, inputs, weights, key_mask, text);
}

/// One node of autograd for the whole call, whose backward pass is an operator again.
struct Opaque : torch::autograd::Function<Opaque> {
  static Tensor forward(torch::autograd::AutogradContext* context, at::TensorList all,
                        const OptionalTensor& key_mask, const std::string& text,
                        std::int64_t inputs) {
    Tensors saved = all.vec();
    if (key_mask) saved.push_back(*key_mask);
    context->save_for_backward(saved);
    context->saved_data["text"] = text;
    context->saved_data["inputs"] = inputs;
    context->saved_data["masked"] = key_mask.has_value();
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto count = static_cast<std::size_t>(inputs);
    return call_mix(all.slice(0, count), all.slice(count), key_mask, text);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list upstream) {
    Tensors saved = context->get_saved_variables();
    OptionalTensor key_mask;
    if (context->saved_data["masked"].toBool()) {
      key_mask = saved.back();
      saved.pop_back();
    }
    const auto count = static_cast<std::size_t>(context->saved_data["inputs"].toInt());
    const at::TensorList given(saved);
    Tensors gradients = call_mix_backward(upstream[0], given.slice(0, count), given.slice(count),
                                          key_mask, context->saved_data["text"].toStringRef());
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i].requires_grad()) gradients[i] = Tensor();
    }
    gradients.resize(saved.size() + 3);  // of the mask, the text and the count: none
    return gradients;
  }
};

/// Whether operations on it run at once: it is not traced, and no mode listens.
bool is_plain(const Tensor& tensor) {
  return !tensor.defined() || (!tensor.unsafeGetTensorImpl()->is_python_dispatch() &&
                               !tensor.key_set().has(c10::DispatchKey::Functionalize) &&
                               !tensor.key_set().has(c10::DispatchKey::FuncTorchGradWrapper) &&
                               !tensor.key_set().has(c10::DispatchKey::FuncTorchBatched));
}

bool all_plain(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), is_plain) &&
         !c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Python);
}

Tensor mix_autograd(at::TensorList inputs, at::TensorList weights, const OptionalTensor& key_mask,
                    std::string text) {
  Tensors all = inputs.vec();
  all.insert(all.end(), weights.begin(), weights.end());
  const bool records = at::GradMode::is_enabled() &&
                       std::any_of(all.begin(), all.end(),
                                   [](const Tensor& tensor) { return tensor.requires_grad(); });
  if (records && all_plain(all)) {
    return translated(
        [&] { return computed(text, arguments_of(inputs, weights, key_mask), true); });
  }
  if (!records) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_mix(inputs, weights, key_mask, text);
  }
  return Opaque::apply(at::TensorList(all), key_mask, text,
                       static_cast<std::int64_t>(inputs.size()));
}

// ---- states

/// The problem of [batch, heads, kv_heads, length, key_length, head_dim, value_dim].
Problem problem_of(const CallText& call, at::IntArrayRef sizes, at::ScalarType type,
                   const std::string& device) {
  if (sizes.size() != 7) throw UsageError("a problem has 7 sizes");
  Problem problem{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]};
  problem.pattern = call.pattern;
  problem.device = device;
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == type) {
      problem.dtype = dtype;
      return problem;
    }
  }
  throw UsageError(std::string("dtype ") + c10::toString(type) +
                   "; expected float32, float64, bfloat16 or float16");
}

std::shared_ptr<Mechanism> mechanism_for(const CallText& call, const Problem& problem) {
  const Entry& entry = *call.resolved.entry;
  const Options options = entry.derive(Options::resolve(entry.options, call.options), problem);
  if (const Support support = support_of(entry, options, problem); !support) {
    throw UnsupportedError(support.reason);
  }
  Registry::choose(entry, call.implementation, options, problem);
  return entry.make(options, problem);
}

/// While it exists, tensors are real, even where a compiler that traces the caller makes fake ones.
class RealTensors {
  c10::impl::ExcludeDispatchKeyGuard guard_{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
};

const char* word_of(Source source) {
  switch (source) {
    case Source::query_tokens:
      return "query";
    case Source::key_tokens:
      return "key";
    case Source::latent_stream:
      return "latents";
  }
  return "";
}

std::string describe(std::string text, at::IntArrayRef sizes, at::ScalarType type) {
  const RealTensors real;
  return translated([&] {
    const CallText& call = parsed(text);
    const auto mechanism = mechanism_for(call, problem_of(call, sizes, type, "cpu"));
    Json roles = Json::array();
    for (const Role& role : mechanism->roles()) {
      roles.push_back({{"name", role.name},
                       {"tokens", word_of(role.source)},
                       {"shape", mechanism->shape_of(role)},
                       {"fed", role.feed == Feed::before}});
    }
    Json weights = Json::array();
    for (const auto& item : mechanism->named_parameters()) {
      weights.push_back({{"name", item.key()}, {"parameter", true}});
    }
    for (const auto& item : mechanism->named_buffers()) {
      weights.push_back({{"name", item.key()}, {"parameter", false}});
    }
    Json implementations = Json::array();
    for (const Implementation& one : call.resolved.entry->implementations) {
      implementations.push_back(one.name);
    }
    return Json{{"mechanism", call.resolved.entry->name},
                {"roles", roles},
                {"weights", weights},
                {"implementations", implementations}}
        .dump();
  });
}

Tensors initial_weights(std::string text, at::IntArrayRef sizes, at::ScalarType type,
                        at::Device device, std::int64_t seed) {
  return translated([&] {
    const CallText& call = parsed(text);
    const auto mechanism = mechanism_for(call, problem_of(call, sizes, type, device.str()));
    mechanism->draw_parameters(static_cast<std::uint64_t>(seed));
    Tensors weights;
    for (const auto& [name, tensor] : parameters_of(*mechanism)) weights.push_back(tensor.detach());
    return weights;
  });
}

/// Its tensors are handed out in the order of their names, which state_names tells.
State state_for(const std::string& text, at::IntArrayRef sizes, at::ScalarType type,
                at::Device device, std::int64_t capacity) {
  const CallText& call = parsed(text);
  const Problem problem = problem_of(call, sizes, type, device.str());
  return mechanism_for(call, problem)
      ->empty_state(problem.batch, capacity, at::TensorOptions().dtype(type).device(device));
}

Tensors empty_state(std::string text, at::IntArrayRef sizes, at::ScalarType type, at::Device device,
                    std::int64_t capacity) {
  return translated([&] {
    Tensors tensors;
    for (const auto& [name, tensor] : state_for(text, sizes, type, device, capacity).tensors) {
      tensors.push_back(tensor);
    }
    return tensors;
  });
}

std::vector<std::string> state_names(std::string text, at::IntArrayRef sizes, at::ScalarType type) {
  return translated([&] {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : state_for(text, sizes, type, at::kCPU, 1).tensors) {
      names.push_back(name);
    }
    return names;
  });
}

Tensor step(at::TensorList inputs, at::TensorList weights, at::TensorList state,
            std::vector<std::string> names, std::int64_t position, const OptionalTensor& key_mask,
            std::string text) {
  const at::NoGradGuard no_grad;
  const NoAutocast plain;
  return translated([&] {
    const Arguments arguments = arguments_of(inputs, weights, key_mask);
    const auto prepared = prepared_for(text, arguments, false);
    const auto mechanism = prepared->mechanism(arguments);
    if (names.size() != state.size()) {
      throw UsageError(std::to_string(state.size()) + " tensors of state for " +
                       std::to_string(names.size()) + " names");
    }
    State continued;
    continued.position = position;
    for (std::size_t i = 0; i < names.size(); ++i) continued.tensors[names[i]] = state[i];
    const Tensor output =
        prepared->implementation->mix(*mechanism, prepared->inputs(arguments), &continued).output;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Tensor& now = continued[names[i]];
      if (!now.is_same(state[i])) state[i].copy_(now);
    }
    return output;
  });
}

}  // namespace
}  // namespace attnbench::operators

namespace operators = attnbench::operators;

TORCH_LIBRARY(attnbench, library) {
  library.def("mix(Tensor[] inputs, Tensor[] weights, Tensor? key_mask, str call) -> Tensor");
  library.def(
      "mix_backward(Tensor upstream, Tensor[] inputs, Tensor[] weights, Tensor? key_mask, "
      "str call) -> Tensor[]");
  library.def(
      "step(Tensor[] inputs, Tensor[] weights, Tensor(a!)[] state, str[] names, int position, "
      "Tensor? key_mask, str call) -> Tensor");
  library.def("describe(str call, int[] sizes, ScalarType dtype) -> str", operators::describe);
  library.def(
      "initial_weights(str call, int[] sizes, ScalarType dtype, Device device, int seed) -> "
      "Tensor[]",
      operators::initial_weights);
  library.def(
      "empty_state(str call, int[] sizes, ScalarType dtype, Device device, int capacity) -> "
      "Tensor[]",
      operators::empty_state);
  library.def("state_names(str call, int[] sizes, ScalarType dtype) -> str[]",
              operators::state_names);
}

TORCH_LIBRARY_IMPL(attnbench, CPU, library) {
  library.impl("mix", operators::mix);
  library.impl("mix_backward", operators::mix_backward);
  library.impl("step", operators::step);
}

TORCH_LIBRARY_IMPL(attnbench, CUDA, library) {
  library.impl("mix", operators::mix);
  library.impl("mix_backward", operators::mix_backward);
  library.impl("step", operators::step);
}

TORCH_LIBRARY_IMPL(attnbench, Autograd, library) { library.impl("mix", operators::mix_autograd); }
