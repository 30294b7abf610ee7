// Faults: what a careless implementation gets wrong, each wrapped around one that is in order.
#pragma once

#include <functional>
#include <string>

#include "attention/mechanism.hpp"

namespace attnbench::test {

using Fault = std::function<Mixed(const Mix& original, Mechanism&, const Inputs&, State*)>;

/// The implementation with `fault` in place of its mix.
std::function<Implementation(const Implementation&)> with(Fault fault);
/// A fault that shows only where query heads share key heads.
Fault where_grouped(Fault fault);
/// A fault of the output alone.
std::function<Implementation(const Implementation&)> with_output(
    std::function<at::Tensor(const at::Tensor&)> change);
/// A fault of one input alone; `role` finds its name.
std::function<Implementation(const Implementation&)> with_role(
    std::function<std::string(const Inputs&)> role,
    std::function<at::Tensor(const at::Tensor&)> change);
/// The names that a mechanism has for its queries, keys and values.
std::string query(const Inputs& inputs);
std::string key(const Inputs& inputs);
std::string value(const Inputs& inputs);
/// A fault of keys and values alike.
std::function<Implementation(const Implementation&)> with_key_tokens(
    std::function<at::Tensor(const at::Tensor& token, const Inputs&)> change);
/// Query head h reads key head h mod G in place of h / (H / G).
Mixed deals_heads_out(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
Mixed scales_the_gradient(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
at::Tensor next_token(const at::Tensor& x, const Inputs&);
Mixed steps_without_state(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// Agrees with itself, but not with what the mechanism's other forms keep in a state.
Mixed scales_the_state(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// Loses what `Mechanism::before` left in the state.
Mixed forgets_what_came_before(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                               State* state);
Mixed forgets_to_count(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// The tail that fills no chunk starts from nothing.
Mixed drops_the_carry(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// Sums of exponentials that never subtract a maximum.
Mixed forgets_the_maximum(const Mix&, Mechanism&, const Inputs& inputs, State*);
/// A running form that rescales what went before only where the maximum rises little.
Mixed forgets_to_rescale(const Mix&, Mechanism&, const Inputs& inputs, State*);
/// Gated linear attention in one product, its decays divided over the whole sequence.
Mixed divides_decays(const Mix&, Mechanism& mechanism, const Inputs& inputs, State*);
Mixed counts_padding(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// Masks values by multiplication, which leaves the padded keys in the denominator.
Mixed masks_values_only(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// As a form that takes a bias by distance for the 0 that it begins with.
Mixed ignores_biases(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// Believes that padding is at the end: tokens before the first real one are taken for zeros.
Mixed counts_leading_padding(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                             State* state);
/// A step that is told of no mask.
Mixed steps_without_mask(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
/// As a form that divides by a sum of weights without asking whether there were any.
Mixed divides_zero_by_zero(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                           State* state);
Mixed computes_in_bfloat16(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                           State* state);
/// The gradient of one input is lost; the values are right.
at::Tensor detached(const at::Tensor& x);
at::Tensor gradient_scaled(const at::Tensor& y, double factor);
/// Different at each call, as sums in whatever order the threads come are.
at::Tensor drifting(const at::Tensor& y);
at::Tensor drifting_gradient(const at::Tensor& y);
/// Forms that take two numbers at a time and forget the odd one.
at::Tensor odd_value_lost(const at::Tensor& v);
/// As a kernel that takes pointers and believes that rows follow one another.
at::Tensor read_as_dense(const at::Tensor& x);
Mixed scales_in_place(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state);
at::Tensor last_row_changed(const at::Tensor& y);

}  // namespace attnbench::test
