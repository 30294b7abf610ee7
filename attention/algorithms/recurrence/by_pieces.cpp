#include "attention/algorithms/recurrence/by_pieces.hpp"

#include <algorithm>

namespace attnbench {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Data of the gradient beside the inputs.
struct Tape : torch::CustomClassHolder {
  Step step;
  std::int64_t size = 0;
  std::vector<bool> defined;    ///< which of tokens and shared; autograd accepts only these
  std::size_t token_count = 0;  ///< how many of these are tokens
  std::vector<Tensors> starts;  ///< the carry at the start of each piece
};

Tensors piece_of(const Tensors& tokens, std::int64_t begin, std::int64_t count) {
  Tensors parts;
  for (const Tensor& each : tokens) {
    parts.push_back(each.defined() ? each.narrow(2, begin, count) : each);
  }
  return parts;
}

Tensor run(const Step& step, const Tensors& tokens, const Tensors& shared, Tensors& carry,
           std::int64_t size, std::vector<Tensors>* starts) {
  const at::NoGradGuard no_grad;
  const std::int64_t length = tokens[0].size(2);
  Tensor out;
  for (std::int64_t begin = 0; begin < length; begin += size) {
    const std::int64_t count = std::min(size, length - begin);
    if (starts) starts->push_back(carry);
    Stepped made = step(piece_of(tokens, begin, count), shared, carry);
    carry = std::move(made.carry);
    if (count == length && !starts) return made.output;
    if (!out.defined()) {
      std::vector<std::int64_t> sizes = made.output.sizes().vec();
      sizes[2] = length;
      out = at::empty(sizes, made.output.options());
    }
    out.narrow(2, begin, count).copy_(made.output);
  }
  return out;
}

/// The same tensors as leaves of a new graph. Masks have no gradient.
Tensors leaves_of(const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& each : tensors) {
    leaves.push_back(each.defined() ? each.detach() : each);
    if (each.defined() && each.is_floating_point()) leaves.back().requires_grad_(true);
  }
  return leaves;
}

/// Appends the leaves that require gradients.
void append_wanted(const Tensors& leaves, Tensors& wanted) {
  std::copy_if(leaves.begin(), leaves.end(), std::back_inserter(wanted),
               [](const Tensor& each) { return each.defined() && each.requires_grad(); });
}

/// The gradients of one piece. `upstream` is that of its output, `right` that of its final carry;
/// an undefined one is 0.
class PieceGradient {
 public:
  PieceGradient(const Step& step, const Tensors& tokens, const Tensors& shared,
                const Tensors& carry, const Tensor& upstream, const Tensors& right) {
    const at::AutoGradMode record(true);
    const Tensors token_leaves = leaves_of(tokens);
    const Tensors shared_leaves = leaves_of(shared);
    const Tensors carry_leaves = leaves_of(carry);
    const Stepped made = step(token_leaves, shared_leaves, carry_leaves);
    Tensors outputs{made.output};
    Tensors seeds{upstream};
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (!right[i].defined() || !made.carry[i].requires_grad()) continue;
      outputs.push_back(made.carry[i]);
      seeds.push_back(right[i]);
    }
    Tensors wanted;
    append_wanted(token_leaves, wanted);
    append_wanted(shared_leaves, wanted);
    append_wanted(carry_leaves, wanted);
    gradients_ = torch::autograd::grad(outputs, wanted, seeds, c10::nullopt, false, true);
  }

  /// The next `of.size()` gradients, in the order tokens, shared, carry; undefined for tensors
  /// without gradient.
  Tensors take(const Tensors& of) {
    Tensors taken;
    for (const Tensor& each : of) {
      const bool has = each.defined() && each.is_floating_point();
      taken.push_back(has ? gradients_[next_++] : Tensor());
    }
    return taken;
  }

 private:
  variable_list gradients_;
  std::size_t next_ = 0;
};

/// Tokens and shared tensors, undefined ones included, from the list of defined ones.
struct Unpacked {
  Tensors tokens, shared;

  Unpacked(const Tensors& defined, const Tape& tape) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < tape.defined.size(); ++i) {
      (i < tape.token_count ? tokens : shared)
          .push_back(tape.defined[i] ? defined[next++] : Tensor());
    }
  }
};

class Pieces : public torch::autograd::Function<Pieces> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList inputs,
                        const c10::intrusive_ptr<Tape>& tape, const Tensors& first) {
    context->save_for_backward(inputs.vec());
    context->saved_data["tape"] = c10::IValue::make_capsule(tape);
    const Unpacked all(inputs.vec(), *tape);
    Tensors carry = first;
    return run(tape->step, all.tokens, all.shared, carry, tape->size, &tape->starts);
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const auto tape =
        c10::static_intrusive_pointer_cast<Tape>(context->saved_data["tape"].toCapsule());
    const Unpacked all(context->get_saved_variables(), *tape);
    const Tensors &tokens = all.tokens, &shared = all.shared;
    Tensors to_tokens;
    for (const Tensor& each : tokens) {
      const bool has = each.defined() && each.is_floating_point();
      to_tokens.push_back(has ? at::zeros_like(each) : Tensor());
    }
    Tensors to_shared(shared.size());
    Tensors right;
    for (std::size_t i = tape->starts.size(); i-- > 0;) {
      const auto begin = static_cast<std::int64_t>(i) * tape->size;
      const auto count = std::min(tape->size, tokens[0].size(2) - begin);
      const Tensors parts = piece_of(tokens, begin, count);
      PieceGradient gradient(tape->step, parts, shared, tape->starts[i],
                             upstream[0].narrow(2, begin, count), right);
      const Tensors of_tokens = gradient.take(parts);
      for (std::size_t j = 0; j < parts.size(); ++j) {
        if (of_tokens[j].defined()) to_tokens[j].narrow(2, begin, count).copy_(of_tokens[j]);
      }
      const Tensors of_shared = gradient.take(shared);
      for (std::size_t j = 0; j < shared.size(); ++j) {
        if (!of_shared[j].defined()) continue;
        to_shared[j] = to_shared[j].defined() ? to_shared[j] + of_shared[j] : of_shared[j];
      }
      right = gradient.take(tape->starts[i]);
    }
    to_tokens.insert(to_tokens.end(), to_shared.begin(), to_shared.end());
    variable_list gradients;
    for (std::size_t i = 0; i < to_tokens.size(); ++i) {
      if (tape->defined[i]) gradients.push_back(to_tokens[i]);
    }
    gradients.resize(gradients.size() + 2);  // none for the tape and the first carry
    return gradients;
  }
};

}  // namespace

Tensor by_pieces(const Step& step, const Tensors& tokens, const Tensors& shared, Tensors& carry,
                 std::int64_t size) {
  const auto tape = c10::make_intrusive<Tape>();
  tape->step = step;
  tape->size = size;
  tape->token_count = tokens.size();
  Tensors inputs;
  for (const Tensors& some : {tokens, shared}) {
    for (const Tensor& each : some) {
      tape->defined.push_back(each.defined());
      if (each.defined()) inputs.push_back(each);
    }
  }
  if (!at::GradMode::is_enabled() ||
      std::none_of(inputs.begin(), inputs.end(),
                   [](const Tensor& each) { return each.requires_grad(); })) {
    return run(step, tokens, shared, carry, size, nullptr);
  }
  return Pieces::apply(at::TensorList(inputs), tape, carry);
}

}  // namespace attnbench
