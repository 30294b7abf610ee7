// Claims: what an entry says of itself.
#include <cmath>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

constexpr const char* not_claimed = "not claimed";

/// Rows sum to one up to what guards the denominator: a mechanism with such an option is asked
/// without it, where its range allows that.
OptionValues without_guard(const Subject& subject) {
  const Option* guard = subject.option("epsilon");
  if (guard == nullptr || guard->minimum.value_or(0) > 0) return {};
  return {{"epsilon", 0.0}};
}

/// A trial of a mechanism that has values; tells the judge otherwise.
std::optional<Trial> with_values(const Subject& subject, Judge& judge, bool claimed) {
  if (!claimed) {
    judge.leave_out("", not_claimed);
    return std::nullopt;
  }
  auto trial = subject.prepare(judge, "length 37", {}, without_guard(subject));
  if (trial && value_role(*trial).empty()) {
    judge.leave_out("", "it has no role named v or value to shift or scale");
    return std::nullopt;
  }
  return trial;
}

Inputs with(const Trial& trial, const Inputs& inputs, const at::Tensor& values) {
  Inputs out = inputs;
  out.tensors[value_role(trial)] = values;
  return out;
}

void rows_sum_to_one(const Subject& subject, Judge& judge) {
  const auto trial = with_values(subject, judge, subject.entry.claims.rows_sum_to_one);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 14);
  const at::Tensor values = inputs[value_role(*trial)];
  // One constant vector as the values: each output row must be it.
  const at::Tensor constant =
      normal_like(values.narrow(0, 0, 1).narrow(1, 0, 1).narrow(2, 0, 1), subject.seed + 15);
  const at::Tensor output =
      mix(*trial, with(*trial, inputs, constant.expand_as(values).contiguous()));
  judge.compare("constant values", difference(output, constant.expand_as(output)),
                subject.bar.value);
  const at::Tensor shifted = mix(*trial, with(*trial, inputs, values + constant));
  judge.compare("values + c", difference(shifted, mix(*trial, inputs) + constant),
                3 * subject.bar.value);
}

void linear_in_value(const Subject& subject, Judge& judge) {
  const auto trial = with_values(subject, judge, subject.entry.claims.linear_in_value);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 16);
  const at::Tensor one = inputs[value_role(*trial)];
  const at::Tensor other = normal_like(one, subject.seed + 17);
  const at::Tensor want = mix(*trial, inputs) * 2 - mix(*trial, with(*trial, inputs, other)) * 0.5;
  const at::Tensor got = mix(*trial, with(*trial, inputs, one * 2 - other * 0.5));
  judge.compare("2 v - v'/2", difference(got, want), 3 * subject.bar.value);
}

/// Tokens of one side in the order of `order`.
Inputs reordered(const Trial& trial, const Inputs& inputs, Source source, const at::Tensor& order) {
  Inputs out = inputs;
  for (const Role& role : trial.mechanism->roles()) {
    if (role.source == source) out.tensors[role.name] = inputs[role.name].index_select(2, order);
  }
  return out;
}

/// A fixed order that moves every token: multiplication by 10 modulo a prime length.
at::Tensor scrambled(std::int64_t length) {
  return (at::arange(length, at::kLong) * 10 + 3).remainder(length);
}

void permutation_equivariance(const Subject& subject, Judge& judge) {
  if (!subject.entry.claims.permutation_equivariant) return judge.leave_out("", not_claimed);
  if (subject.pattern == Pattern::causal) {
    return judge.leave_out("", "the causal pattern has an order");
  }
  const auto trial = subject.prepare(judge, "length 37");
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 18);
  const at::Tensor output = mix(*trial, inputs);
  const at::Tensor queries = scrambled(trial->problem.length);
  const Inputs moved = reordered(*trial, inputs, Source::query_tokens, queries);
  const at::Tensor order = scrambled(trial->problem.key_length);
  judge.compare("keys in another order, queries too",
                difference(mix(*trial, reordered(*trial, moved, Source::key_tokens, order)),
                           output.index_select(2, queries)),
                2 * subject.bar.value);
}

void last_row(const Subject& subject, Judge& judge) {
  if (!subject.entry.claims.last_row_agrees) return judge.leave_out("", not_claimed);
  if (subject.pattern != Pattern::causal) {
    return judge.leave_out("", "compares the causal pattern with the bidirectional one");
  }
  const auto trial = subject.prepare(judge, "length 37");
  if (!trial) return;
  const auto other = subject.in_pattern(*trial, Pattern::bidirectional);
  if (!other) return judge.leave_out("", subject.entry.name + " has no bidirectional form");
  const Inputs inputs = draw(*trial, subject.seed + 19);
  const at::Tensor whole = mix(*other, converted(inputs, at::kDouble));
  const std::int64_t last = trial->problem.length - 1;
  judge.compare("row 36 of 37",
                difference(mix(*trial, inputs).narrow(2, last, 1), whole.narrow(2, last, 1)),
                2 * subject.bar.value);
}

}  // namespace

std::vector<PropertyCheck> claim_checks() {
  return {
      {{"rows_sum_to_one", "adding a constant vector to the values adds it to the output"},
       rows_sum_to_one},
      {{"linear_in_value", "the output is linear in the values"}, linear_in_value},
      {{"permutation_equivariance", "tokens in another order give the outputs in that order"},
       permutation_equivariance},
      {{"last_row", "the last causal row is the last bidirectional row"}, last_row},
  };
}

}  // namespace attnbench::conformance
