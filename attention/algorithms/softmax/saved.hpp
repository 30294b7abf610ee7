// What the backward passes of the softmax forms keep: inputs, output and logarithms of the sums.
#pragma once

#include "attention/algorithms/softmax/forms.hpp"

namespace attnbench {

/// `lse` holds the logarithm of the sum of exponentials per query, +infinity where it sees no key.
inline void save(torch::autograd::AutogradContext* context, const SoftmaxCall& call,
                 const at::Tensor& out, const at::Tensor& lse) {
  context->save_for_backward({call.q, call.k, call.v, out, lse});
  context->saved_data["scale"] = call.scale;
  context->saved_data["band"] = std::vector<std::int64_t>{call.left, call.right, call.offset};
  // LibTorch 1.13 takes no undefined tensor among those it saves or differentiates.
  if (call.key_mask.defined()) context->saved_data["key_mask"] = call.key_mask;
}

struct SavedSoftmax {
  SoftmaxCall call;
  at::Tensor out;
  at::Tensor lse;
};

inline SavedSoftmax restore(torch::autograd::AutogradContext* context) {
  const auto tensors = context->get_saved_variables();
  const auto band = context->saved_data.at("band").toIntVector();
  const auto mask = context->saved_data.find("key_mask");
  SoftmaxCall call{tensors[0], tensors[1], tensors[2], {}};
  if (mask != context->saved_data.end()) call.key_mask = mask->second.toTensor();
  call.scale = context->saved_data.at("scale").toDouble();
  call.left = band[0];
  call.right = band[1];
  call.offset = band[2];
  return {call, tensors[3], tensors[4]};
}

}  // namespace attnbench
