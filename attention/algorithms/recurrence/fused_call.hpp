// The fused forms of the recurrent families: one kernel call on queries, keys and values
// [B, H, T, .], its gradient, and processing in blocks where the kernel's rows must be computed
// first (random features, feature maps that the kernel lacks).
//
// A family F has
//   Form, pack(form), unpack(IValue)     the parameters of a call
//   Carry, empty(values, rows, form)     the state that a call continues from
//   set_carry<T>(arguments, carry, form)
//   Sizes, sizes(rows, form)             the kernel's sizes, with `rows` rows of memory
//   arguments<T>(query, key, values), Gradients<T>
//   forward<T>(...), backward<T>(...)    the kernel, selected by the place
//   mapped(form), map, map_gradient      feature maps that are left to tensor operations
//   cuda_refusal(sizes, gradient)        why a CUDA device does not support it; empty if it does
#pragma once

#include <algorithm>
#include <string>

#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/operand.hpp"

namespace attnbench::fused_call {

using at::Tensor;

template <class F>
struct Call {
  Operands all;
  typename F::Form form;

  /// Whether the kernel's rows are not the inputs themselves.
  bool mapped() const {
    return all.query.features.maps() || all.key.features.maps() ||
           all.key.features.hidden.defined() || F::mapped(form);
  }
  at::ScalarType type() const {
    const auto type = at::promote_types(
        at::promote_types(all.query.whole.scalar_type(), all.key.whole.scalar_type()),
        all.values.scalar_type());
    return mapped() ? compute_type(type) : type;
  }
  Tensor query_rows(std::int64_t begin, std::int64_t count) const {
    return rows_of(all.query, begin, count);
  }
  Tensor key_rows(std::int64_t begin, std::int64_t count) const {
    return rows_of(all.key, begin, count);
  }
  Tensor value_rows(std::int64_t begin, std::int64_t count) const {
    return with_dense_rows(all.values.narrow(2, begin, count).to(type()));
  }
  Call heads(std::int64_t begin, std::int64_t count) const {
    const auto part = [&](const Operand& x) {
      Operand y{x.whole.narrow(1, begin, count), x.features};
      const Tensor& omega = x.features.omega;
      if (omega.defined() && omega.dim() == 3) y.features.omega = omega.narrow(0, begin, count);
      return y;
    };
    return {{part(all.query), part(all.key), all.values.narrow(1, begin, count)}, form};
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

/// Makes one kernel call, into `out`; dense rows of one dtype.
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

/// The whole sequence, from `carry` on unless it is null.
template <class F>
Tensor forward(const Call<F>& call, const typename F::Carry* carry) {
  const Tensor& values = call.all.values;
  const std::int64_t length = values.size(2), rows = call.all.key.width();
  const Tensor out = at::empty(values.sizes(), values.options().dtype(call.type()));
  const std::int64_t most = call.mapped()
                                ? tokens_together(values.size(0) * values.size(1), rows,
                                                  static_cast<std::int64_t>(out.element_size()))
                                : length;
  if (length <= most) {
    run<F>(call.query_rows(0, length), call.key_rows(0, length), call.value_rows(0, length),
           call.form, carry, out);
    return out;
  }
  const typename F::Carry own = carry != nullptr ? *carry : F::empty(values, rows, call.form);
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t count = std::min(most, length - begin);
    run<F>(call.query_rows(begin, count), call.key_rows(begin, count),
           call.value_rows(begin, count), call.form, &own, out.narrow(2, begin, count));
  }
  return out;
}

/// The gradients of query, key and values. Mapped rows are recomputed, for as many heads at a time
/// as keep the threads busy.
template <class F>
torch::autograd::variable_list backward(const Call<F>& call, const Tensor& d_out) {
  const auto& [all_queries, all_keys, all_values] = call.all;
  const auto type = call.type();
  const Tensor upstream = with_dense_rows(d_out.to(type));
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const Tensor d_query = like(all_queries.whole), d_key = like(all_keys.whole);
  const Tensor d_values = like(all_values);
  const std::int64_t heads = all_values.size(1), length = all_values.size(2);
  const std::int64_t busy = (at::get_num_threads() + all_values.size(0) - 1) / all_values.size(0);
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
      const typename F::template Gradients<T> gradients{
          kernel_rows<const T>(upstream.narrow(1, h, count)), kernel_rows<T>(dq),
          kernel_rows<T>(dk), kernel_rows<T>(dv)};
      F::template backward<T>(
          place, upstream, sizes,
          F::template arguments<T>(kernel_rows<const T>(query), kernel_rows<const T>(key),
                                   kernel_rows<const T>(values)),
          gradients);
    });
    const auto put = [&](const Tensor& d_whole, const Operand& x, const Tensor& rows,
                         const Tensor& d_rows) {
      d_whole.narrow(1, h, count)
          .copy_(call.mapped()
                     ? x.features.gradient(x.whole, F::map_gradient(rows, d_rows, call.form))
                     : d_rows);
    };
    put(d_query, part.all.query, query, dq);
    put(d_key, part.all.key, key, dk);
    d_values.narrow(1, h, count).copy_(dv);
  }
  return {d_query, d_key, d_values};
}

template <class F>
struct WithGradient {
  using Form = typename F::Form;
  static c10::IValue pack(const Form& form) { return F::pack(form); }
  static Form unpack(const c10::IValue& value) { return F::unpack(value); }
  static Tensor forward(const Operands& all, const Form& form) {
    return fused_call::forward<F>({all, form}, nullptr);
  }
  static torch::autograd::variable_list backward(const Operands& all, const Form& form,
                                                 const Tensor& upstream) {
    return fused_call::backward<F>({all, form}, upstream);
  }
};

/// The output in the dtype of the values. With a carry no gradients are recorded.
template <class F>
Tensor fused(const Call<F>& call, const typename F::Carry* carry) {
  Tensor out;
  if (carry == nullptr) {
    out = Recorded<WithGradient<F>>::run(call.all, call.form);
  } else {
    const at::NoGradGuard no_grad;
    out = forward<F>(call, carry);
  }
  return out.to(call.all.values.scalar_type());
}

template <class F>
Support supports(const Problem& problem, std::int64_t rows) {
  return supported_by_kernels(problem, [&]() -> std::string {
    return F::cuda_refusal(sizes_of<F>(problem, rows, {}), problem.gradient);
  });
}

}  // namespace attnbench::fused_call
