// What the fused forms of the recurrent families have in common: one call of a kernel on query, key
// and values [B, H, T, .], its gradient, and how much of it is taken together where the kernel's
// rows have to be made of the inputs first (random features, feature maps it has not).
//
// A family F says
//   Sizes, Arguments<T>, Gradients<T>   those of its kernel
//   Form                                what a call is beside its tensors; IValue pack(Form) and
//   back Carry                               what it continues from; empty(values, rows), set_carry
//   sizes(rows, form)                   sizes with the memory's rows
//   arguments<T>, gradients<T>          from rows
//   forward<T>, backward<T>             the kernel, by the place
//   mapped(form), map, map_gradient     what the kernel leaves to tensor operations
//   cuda_refusal(sizes, gradient)
#pragma once

#include <algorithm>
#include <string>

#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/operand.hpp"
#include "attention/algorithms/recurrence/fused_cost.hpp"

namespace attnbench::recurrent_call {

using at::Tensor;

template <class F>
struct Call {
  Operand query, key;
  Tensor values;
  typename F::Form form;

  /// Whether the kernel's rows are not the inputs themselves.
  bool mapped() const {
    return query.features.omega.defined() || key.features.omega.defined() ||
           key.features.hidden.defined() || F::mapped(form);
  }
  at::ScalarType type() const {
    const auto type =
        at::promote_types(at::promote_types(query.whole.scalar_type(), key.whole.scalar_type()),
                          values.scalar_type());
    return mapped() ? compute_type(type) : type;
  }
  Tensor query_rows(std::int64_t begin, std::int64_t count) const {
    return rows_of(query, begin, count);
  }
  Tensor key_rows(std::int64_t begin, std::int64_t count) const {
    return rows_of(key, begin, count);
  }
  Tensor value_rows(std::int64_t begin, std::int64_t count) const {
    return with_dense_rows(values.narrow(2, begin, count).to(type()));
  }
  Call heads(std::int64_t begin, std::int64_t count) const {
    const auto part = [&](const Operand& x) {
      Operand y{x.whole.narrow(1, begin, count), x.features};
      const Tensor& omega = x.features.omega;
      if (omega.defined() && omega.dim() == 3) y.features.omega = omega.narrow(0, begin, count);
      return y;
    };
    return {part(query), part(key), values.narrow(1, begin, count), form};
  }

 private:
  Tensor rows_of(const Operand& x, std::int64_t begin, std::int64_t count) const {
    const Tensor raw = x.whole.narrow(2, begin, count).to(type());
    return with_dense_rows(mapped() ? F::map(x.features.of(raw, begin), form) : raw);
  }
};

template <class F>
typename F::Sizes sizes_of(const Tensor& key, const Tensor& values, const typename F::Form& form) {
  auto sizes = F::sizes(key.size(3), form);
  sizes.batch = values.size(0);
  sizes.heads = values.size(1);
  sizes.length = values.size(2);
  sizes.value_dim = values.size(3);
  return sizes;
}

/// One call of the kernel, into `out`; dense rows of one dtype.
template <class F>
void run(const Tensor& query, const Tensor& key, const Tensor& values, const typename F::Form& form,
         const typename F::Carry* carry, const Tensor& out) {
  const auto sizes = sizes_of<F>(key, values, form);
  on_kernels(values, [&](auto element, auto& place) {
    using T = decltype(element);
    auto arguments = F::template arguments<T>(
        kernel_rows<const T>(query), kernel_rows<const T>(key), kernel_rows<const T>(values));
    arguments.out = kernel_rows<T>(out);
    if (carry != nullptr) F::template set_carry<T>(arguments, *carry, form);
    F::template forward<T>(place, out, sizes, arguments);
  });
}

/// The whole sequence, from `carry` on, where there is one.
template <class F>
Tensor forward(const Call<F>& call, const typename F::Carry* carry) {
  const Tensor& values = call.values;
  const std::int64_t length = values.size(2);
  const Tensor out = at::empty(values.sizes(), values.options().dtype(call.type()));
  const std::int64_t most = call.mapped()
                                ? tokens_together(values.size(0) * values.size(1), call.key.width(),
                                                  static_cast<std::int64_t>(out.element_size()))
                                : length;
  if (length <= most) {
    run<F>(call.query_rows(0, length), call.key_rows(0, length), call.value_rows(0, length),
           call.form, carry, out);
    return out;
  }
  const typename F::Carry own =
      carry != nullptr ? *carry : F::empty(values, call.key.width(), call.form);
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t count = std::min(most, length - begin);
    run<F>(call.query_rows(begin, count), call.key_rows(begin, count),
           call.value_rows(begin, count), call.form, &own, out.narrow(2, begin, count));
  }
  return out;
}

/// The gradients of query, key and values; rows are made anew, of as many heads as keep the threads
/// busy.
template <class F>
torch::autograd::variable_list backward(const Call<F>& call, const Tensor& d_out) {
  const auto type = call.type();
  const Tensor upstream = with_dense_rows(d_out.to(type));
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const Tensor d_query = like(call.query.whole), d_key = like(call.key.whole);
  const Tensor d_values = like(call.values);
  const std::int64_t heads = call.values.size(1), length = call.values.size(2);
  const std::int64_t busy = (at::get_num_threads() + call.values.size(0) - 1) / call.values.size(0);
  const std::int64_t most = call.mapped() ? std::min(heads, busy) : heads;
  for (std::int64_t h = 0; h < heads; h += most) {
    const std::int64_t count = std::min(most, heads - h);
    const Call<F> part = call.heads(h, count);
    const Tensor query = part.query_rows(0, length), key = part.key_rows(0, length);
    const Tensor values = part.value_rows(0, length);
    const Tensor dq = like(query), dk = like(key), dv = like(values);
    const auto sizes = sizes_of<F>(key, values, call.form);
    on_kernels(values, [&](auto element, auto& place) {
      using T = decltype(element);
      const auto gradients =
          F::template gradients<T>(kernel_rows<const T>(upstream.narrow(1, h, count)),
                                   kernel_rows<T>(dq), kernel_rows<T>(dk), kernel_rows<T>(dv));
      F::template backward<T>(
          place, upstream, sizes,
          F::template arguments<T>(kernel_rows<const T>(query), kernel_rows<const T>(key),
                                   kernel_rows<const T>(values)),
          gradients);
    });
    const auto put = [&](const Tensor& whole, const Operand& x, const Tensor& rows,
                         const Tensor& slope) {
      Tensor back = slope;
      if (call.mapped())
        back = x.features.gradient(x.whole, F::map_gradient(rows, slope, call.form));
      whole.narrow(1, h, count).copy_(back);
    };
    put(d_query, part.query, query, dq);
    put(d_key, part.key, key, dk);
    d_values.narrow(1, h, count).copy_(dv);
  }
  return {d_query, d_key, d_values};
}

template <class F>
struct Recorded : torch::autograd::Function<Recorded<F>> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& query,
                        const Tensor& key, const Tensor& values, const Call<F>& call) {
    context->save_for_backward({query, key, values});
    context->saved_data["query"] = call.query.features.packed();
    context->saved_data["key"] = call.key.features.packed();
    context->saved_data["form"] = F::pack(call.form);
    return recurrent_call::forward<F>(call, nullptr);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    auto gradients = recurrent_call::backward<F>({{saved[0], Features::unpacked(data["query"])},
                                                  {saved[1], Features::unpacked(data["key"])},
                                                  saved[2],
                                                  F::unpack(data["form"])},
                                                 upstream[0]);
    gradients.push_back({});
    return gradients;
  }
};

/// The output in the dtype of the values. With a carry nothing is recorded for gradients.
template <class F>
Tensor fused(const Call<F>& call, const typename F::Carry* carry) {
  Tensor out;
  if (carry == nullptr) {
    out = Recorded<F>::apply(call.query.whole, call.key.whole, call.values, call);
  } else {
    const at::NoGradGuard no_grad;
    out = forward<F>(call, carry);
  }
  return out.to(call.values.scalar_type());
}

template <class F>
typename F::Sizes sizes_of(const Problem& problem, std::int64_t rows,
                           const typename F::Form& form) {
  auto sizes = F::sizes(rows, form);
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.length = problem.length;
  sizes.value_dim = problem.value_dim;
  return sizes;
}

template <class F>
Support supports(const Problem& problem, std::int64_t rows) {
  return supported_by_kernels(problem, [&]() -> std::string {
    return F::cuda_refusal(sizes_of<F>(problem, rows, {}), problem.gradient);
  });
}

}  // namespace attnbench::recurrent_call
