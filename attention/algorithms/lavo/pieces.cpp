#include <algorithm>
#include <vector>

#include "attention/algorithms/lavo/lavo.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::lavo {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// `count` tokens from `begin` on: a part of one window, or whole windows and a part of the next.
struct Part {
  std::int64_t begin, count, phase;
};

std::vector<Part> parts_of(const Call& call, std::int64_t position, std::int64_t most) {
  const std::int64_t length = call.local.length();
  const std::int64_t window = call.plain() ? unlimited : call.window;
  std::vector<Part> parts;
  for (std::int64_t begin = 0; begin < length;) {
    const std::int64_t phase = (position + begin) % window;
    std::int64_t count = length - begin;
    if (count > most || phase != 0) {
      const bool windows = phase == 0 && most >= window;
      count = std::min(count, windows ? most / window * window : std::min(most, window - phase));
    }
    parts.push_back({begin, count, phase});
    begin += count;
  }
  return parts;
}

/// The tokens of one part, with the past keys that its first query sees.
Call part_of(const Call& call, const Part& part) {
  Call out = call;
  const std::int64_t first = call.local.offset + part.begin;
  const std::int64_t past = call.plain() ? 0 : std::min(call.local.left, first);
  out.local.offset = past;
  out.local.q = call.local.q.narrow(2, part.begin, part.count);
  if (call.local.key_mask.defined()) {
    out.local.key_mask = call.local.key_mask.narrow(1, first - past, past + part.count);
  }
  if (call.plain()) {
    out.context = call.context.narrow(2, part.begin, part.count);
  } else {
    out.local.k = call.local.k.narrow(2, first - past, past + part.count);
    out.local.v = call.local.v.narrow(2, first - past, past + part.count);
  }
  return out;
}

Memory memory_of(const Call& call) {
  return {call.bases.to(compute_type(call.local.q.scalar_type())), call.scale};
}

Tensor own_mask(const Call& call) {
  if (!call.local.key_mask.defined()) return {};
  return call.local.key_mask.narrow(1, call.local.offset, call.local.length());
}

/// One part, with the output in the dtype of computation.
Tensor mix_part(const Call& call, std::int64_t phase, Carry& carry) {
  const auto type = compute_type(call.local.q.scalar_type());
  const Tensor query = call.local.q.to(type);
  if (call.plain()) {
    return running(query, call.context.to(type), own_mask(call), memory_of(call), carry);
  }
  return dissected(query, relative_band(call.local, call.bias), own_mask(call), memory_of(call),
                   {call.window, phase, call.local_alone}, carry);
}

/// The differentiable tensors of a call, in the order of the autograd node's inputs.
std::vector<Tensor*> tensors_of(Call& call) {
  std::vector<Tensor*> tensors{&call.local.q, &call.bases};
  if (call.plain()) {
    tensors.push_back(&call.context);
  } else {
    tensors.insert(tensors.end(), {&call.local.k, &call.local.v});
    if (call.bias.bias.defined()) tensors.push_back(&call.bias.bias);
  }
  return tensors;
}

/// The carries at the start of each part.
struct Kept {
  std::vector<Tensor> u, count, sum, sum_count;
  void take(const Carry& carry) {
    u.push_back(carry.u);
    count.push_back(carry.count);
    if (!carry.sum.defined()) return;
    sum.push_back(carry.sum);
    sum_count.push_back(carry.sum_count);
  }
};

/// Adds the gradients of one part to `whole`, those of tensors_of(call). `carry` holds the
/// gradients of the carry after the part and is updated to those of the carry before it.
void add_gradients(const Call& call, const Part& part, Carry begun, const Tensor& upstream,
                   variable_list& whole, Carry& carry) {
  const at::AutoGradMode recording(true);
  Call piece = part_of(call, part);
  variable_list leaves;
  for (Tensor* tensor : tensors_of(piece)) {
    *tensor = tensor->detach().requires_grad_(true);
    leaves.push_back(*tensor);
  }
  std::vector<Tensor*> passed{&begun.u};
  std::vector<Tensor*> passed_gradients{&carry.u};
  if (!call.plain()) {
    passed.push_back(&begun.sum);
    passed_gradients.push_back(&carry.sum);
  }
  for (Tensor* tensor : passed) {
    *tensor = tensor->detach().requires_grad_(true);
    leaves.push_back(*tensor);
  }
  Carry after = begun;
  const Tensor output = mix_part(piece, part.phase, after);
  variable_list ends{output};
  variable_list given{upstream.narrow(2, part.begin, part.count).to(output.scalar_type())};
  const auto end = [&](const Tensor& tensor, const Tensor& gradient) {
    if (!tensor.requires_grad()) return;
    ends.push_back(tensor);
    given.push_back(gradient);
  };
  end(after.u, carry.u);
  if (!call.plain()) end(after.sum, carry.sum);
  const variable_list gradients =
      torch::autograd::grad(ends, leaves, given, /*retain_graph=*/false, /*create_graph=*/false,
                            /*allow_unused=*/true);

  const at::NoGradGuard no_grad;
  const std::int64_t past = piece.local.offset;
  const std::size_t inputs = leaves.size() - passed.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!gradients[i].defined()) continue;
    const bool parameter = i == 1 || i == 4;  // the bases and the bias
    const bool keys = i == 2 || i == 3;
    const Tensor place =
        parameter ? whole[i]
                  : whole[i].narrow(2, part.begin - (keys ? past : 0), gradients[i].size(2));
    place.add_(gradients[i]);
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const Tensor& gradient = gradients[inputs + i];
    *passed_gradients[i] = gradient.defined() ? gradient : at::zeros_like(*passed[i]);
  }
}

struct Recomputed : torch::autograd::Function<Recomputed> {
  static Variable forward(AutogradContext* context, at::TensorList tensors, const Call& call,
                          std::int64_t most) {
    Carry carry = empty_carry(call.local.q.size(0), memory_of(call).bases, !call.plain());
    Tensor output = at::empty_like(call.local.q, at::MemoryFormat::Contiguous);
    Kept kept;
    for (const Part& part : parts_of(call, 0, most)) {
      kept.take(carry);
      output.narrow(2, part.begin, part.count)
          .copy_(mix_part(part_of(call, part), part.phase, carry));
    }
    variable_list saved(tensors.begin(), tensors.end());
    saved.insert(saved.end(), {at::stack(kept.u), at::stack(kept.count)});
    if (!call.plain()) saved.insert(saved.end(), {at::stack(kept.sum), at::stack(kept.sum_count)});
    context->save_for_backward(saved);
    context->saved_data["numbers"] = std::vector<double>{call.scale, call.local.scale};
    context->saved_data["sizes"] = std::vector<std::int64_t>{
        call.local.left,      call.window,    call.local_alone ? 1 : 0, most,
        call.plain() ? 1 : 0, call.bias.reach};
    context->saved_data["key_mask"] = call.local.key_mask;
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const auto sizes = context->saved_data.at("sizes").toIntVector();
    const auto numbers = context->saved_data.at("numbers").toDoubleVector();
    const bool plain = sizes[4] != 0;
    Call call;
    call.local.q = saved[0];
    call.bases = saved[1];
    if (plain) {
      call.context = saved[2];
    } else {
      call.local.k = saved[2];
      call.local.v = saved[3];
    }
    const std::size_t kept = saved.size() - (plain ? 2 : 4);
    if (!plain && kept == 5) call.bias.bias = saved[4];
    call.bias.reach = sizes[5];
    call.scale = numbers[0];
    call.local.scale = numbers[1];
    call.local.left = sizes[0];
    call.local.right = 0;
    call.window = sizes[1];
    call.local_alone = sizes[2] != 0;
    call.local.key_mask = context->saved_data.at("key_mask").toTensor();

    variable_list gradients;
    const auto type = compute_type(call.local.q.scalar_type());
    for (std::size_t i = 0; i < kept; ++i) {
      const bool parameter = i == 1 || i == 4;
      gradients.push_back(at::zeros(
          saved[i].sizes(), parameter ? saved[i].options().dtype(type) : saved[i].options()));
    }
    Carry passed{at::zeros_like(saved[kept][0]), {}, {}, {}};
    if (!plain) passed.sum = at::zeros_like(saved[kept + 2][0]);
    const auto parts = parts_of(call, 0, sizes[3]);
    for (auto i = static_cast<std::int64_t>(parts.size()) - 1; i >= 0; --i) {
      Carry begun{saved[kept][i], saved[kept + 1][i], {}, {}};
      if (!plain) {
        begun.sum = saved[kept + 2][i];
        begun.sum_count = saved[kept + 3][i];
      }
      add_gradients(call, parts[static_cast<std::size_t>(i)], begun, upstream[0], gradients,
                    passed);
    }
    for (std::size_t i = 0; i < kept; ++i) gradients[i] = gradients[i].to(saved[i].scalar_type());
    gradients.insert(gradients.end(), {Tensor(), Tensor()});
    return gradients;
  }
};

}  // namespace

Tensor bidirectional(const Call& call) {
  const auto type = compute_type(call.local.q.scalar_type());
  const Tensor query = call.local.q.to(type);
  const Memory memory = memory_of(call);
  if (call.plain()) {
    const Tensor u = compressed(call.context.to(type), call.local.key_mask, memory);
    return read(query, u, memory).to(call.local.q.scalar_type());
  }
  const Tensor local = relative_band(call.local, call.bias);
  const Tensor u = compressed(local, call.local.key_mask, memory);
  return ((local + read(query, u, memory)) / 2).to(call.local.q.scalar_type());
}

Tensor causal(const Call& call, Carry& carry, std::int64_t position, std::int64_t most) {
  const auto parts = parts_of(call, position, most);
  if (parts.size() == 1) {
    return mix_part(part_of(call, parts[0]), parts[0].phase, carry).to(call.local.q.scalar_type());
  }
  Tensor output = at::empty_like(call.local.q, at::MemoryFormat::Contiguous);
  for (const Part& part : parts) {
    output.narrow(2, part.begin, part.count)
        .copy_(mix_part(part_of(call, part), part.phase, carry));
  }
  return output;
}

Tensor causal_recomputed(const Call& call, std::int64_t most) {
  Call copy = call;
  variable_list tensors;
  for (Tensor* tensor : tensors_of(copy)) tensors.push_back(*tensor);
  return Recomputed::apply(at::TensorList(tensors), call, most);
}

Tensor token(const Call& call, const Tensor& local, Carry& carry, std::int64_t position) {
  const auto type = compute_type(call.local.q.scalar_type());
  Tensor mask;
  if (call.local.key_mask.defined()) mask = call.local.key_mask;
  return dissected(call.local.q.to(type), local, mask, memory_of(call),
                   {call.window, position % call.window, call.local_alone}, carry)
      .to(call.local.q.scalar_type());
}

}  // namespace attnbench::lavo
