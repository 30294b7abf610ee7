// Order in time: outputs do not depend on the future, and steps from a state equal the whole
// sequence, in the mix and, if something comes before the projections, in a Layer.
#include <algorithm>

#include "attention/conformance/compare.hpp"
#include "attention/layer.hpp"

namespace attnbench::conformance {
namespace {

constexpr const char* causal_only = "only the causal pattern has an order";

/// Every role changed at token `s` and only there; times 1000 where `huge`.
Inputs changed_at(const Trial& trial, const Inputs& inputs, std::int64_t s, bool huge) {
  Inputs out;
  std::uint64_t seed = 900 + static_cast<std::uint64_t>(s);
  for (const Role& role : trial.mechanism->roles()) {
    at::Tensor tensor = inputs[role.name].clone();
    if (role.source != Source::latent_stream) {
      at::Tensor token = tensor.narrow(2, s, 1);
      token.copy_(normal_like(token, ++seed) * (huge ? 1000 : 1));
    }
    out.tensors[role.name] = tensor;
  }
  return out;
}

/// Gradients of the outputs before `s` with respect to the inputs from `s` on.
void compare_future_gradients(const Subject& subject, Judge& judge, const Trial& trial,
                              const Inputs& inputs, std::int64_t s) {
  const Problem& problem = trial.problem;
  at::Tensor upstream =
      normal({problem.batch, problem.heads, problem.length, problem.value_dim}, subject.seed + 8);
  upstream.narrow(2, s, problem.length - s).zero_();
  const Differentiated got = differentiate(trial, inputs, upstream);
  for (const Role& role : trial.mechanism->roles()) {
    if (role.source == Source::latent_stream) continue;
    const at::Tensor future = got.gradients.at(role.name).narrow(2, s, problem.length - s);
    judge.compare("gradient of " + role.name + " from token " + std::to_string(s) + " on",
                  difference(future, at::zeros_like(future), 1), subject.unchanged());
  }
}

void causality(const Subject& subject, Judge& judge) {
  if (subject.pattern != Pattern::causal) return judge.leave_out("", causal_only);
  const auto trial = subject.prepare(judge, "length 37", {}, {}, true);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 9);
  const at::Tensor output = mix(*trial, inputs);
  for (const std::int64_t s : {1, 7, 8, 9, 20, 36}) {
    for (const bool huge : {false, true}) {
      const at::Tensor other = mix(*trial, changed_at(*trial, inputs, s, huge));
      judge.compare("outputs before token " + std::to_string(s) +
                        (huge ? ", which is 1000 times as large" : ""),
                    difference(other.narrow(2, 0, s), output.narrow(2, 0, s)), subject.unchanged());
    }
    if (subject.differentiable()) compare_future_gradients(subject, judge, *trial, inputs, s);
  }
}

using Ways = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// The outputs of `step(begin, count)` for pieces of these lengths, the last one repeated, joined
/// along dimension `dim`.
template <class Step>
at::Tensor in_pieces(std::int64_t length, const std::vector<std::int64_t>& lengths,
                     std::int64_t dim, const Step& step) {
  std::vector<at::Tensor> outputs;
  std::int64_t done = 0;
  for (std::size_t i = 0; done < length; ++i) {
    const std::int64_t count = std::min(lengths[std::min(i, lengths.size() - 1)], length - done);
    outputs.push_back(step(done, count));
    done += count;
  }
  return at::cat(outputs, dim);
}

at::Tensor mix_in_pieces(const Trial& trial, const Inputs& inputs, State& state,
                         const std::vector<std::int64_t>& lengths) {
  return in_pieces(trial.problem.length, lengths, 2, [&](std::int64_t begin, std::int64_t count) {
    return mix(trial, tokens(trial, inputs, begin, count), &state);
  });
}

/// Two continuations of one prefill must be independent.
void compare_clones(const Subject& subject, Judge& judge, const Trial& trial,
                    const Inputs& inputs) {
  State state = empty_state(trial);
  mix(trial, tokens(trial, inputs, 0, 20), &state);
  State copy = state.clone();
  const Inputs next = tokens(trial, inputs, 20, 1);
  const at::Tensor first = mix(trial, next, &state);
  mix(trial, tokens(trial, inputs, 21, 9), &state);
  judge.compare("a clone of the state after 20 tokens", difference(mix(trial, next, &copy), first),
                subject.unchanged());
}

/// A state belongs to the mechanism: one implementation continues that of another.
void compare_handover(const Subject& subject, Judge& judge, const Trial& trial,
                      const Inputs& inputs) {
  const auto other = subject.naive(trial);
  if (!other || other->implementation == trial.implementation) return;
  const auto rows = all_rows(trial.problem);
  for (const bool ours_first : {true, false}) {
    const Trial& first = ours_first ? trial : *other;
    const Trial& second = ours_first ? *other : trial;
    State state = empty_state(trial);
    std::vector<at::Tensor> outputs{mix(first, tokens(trial, inputs, 0, 20), &state)};
    outputs.push_back(mix(second, tokens(trial, inputs, 20, 17), &state));
    const std::string where =
        second.implementation->name + " after a prefill of 20 by " + first.implementation->name;
    compare_rows(judge, subject, trial, inputs, rows, where, rows_of(at::cat(outputs, 2), rows));
  }
}

/// Key heads that query heads share are shared in the state, too.
void grouped_steps(const Subject& subject, Judge& judge) {
  const auto trial = subject.prepare(judge, "2 key heads for 4", grouped_sizes());
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 30);
  const auto rows = all_rows(trial->problem);
  State state = empty_state(*trial);
  const at::Tensor output = mix_in_pieces(*trial, inputs, state, {7, 1, 1, 5, 1});
  compare_rows(judge, subject, *trial, inputs, rows, trial->where, rows_of(output, rows));
}

/// Hidden tokens before the first real one and in two pieces: every step gets its part of the mask.
void masked_steps(const Subject& subject, Judge& judge, const Trial& trial) {
  Inputs inputs = draw(trial, subject.seed + 33);
  inputs.key_mask = at::ones({trial.problem.batch, trial.problem.length}, at::kBool);
  inputs.key_mask[0].narrow(0, 0, 22).fill_(false);
  inputs.key_mask[1].narrow(0, 18, 9).fill_(false);
  const auto rows = all_rows(trial.problem);
  State state = empty_state(trial);
  const at::Tensor output = mix_in_pieces(trial, inputs, state, {20, 1, 7, 1, 1});
  compare_rows(judge, subject, trial, inputs, rows, "steps with hidden tokens",
               rows_of(output, rows));
}

void step_equals_full(const Subject& subject, Judge& judge) {
  if (subject.pattern != Pattern::causal) return judge.leave_out("", causal_only);
  const auto trial = subject.prepare(judge, "length 37");
  if (!trial) return;
  try {
    State probe = empty_state(*trial);
    mix(*trial, tokens(*trial, draw(*trial, subject.seed), 0, 1), &probe);
  } catch (const UnsupportedError& error) {
    return judge.leave_out("", error.what());
  }
  const Inputs inputs = draw(*trial, subject.seed + 10);
  const auto rows = all_rows(trial->problem);
  const Ways ways = {
      {"single steps", {1}},
      {"steps after a prefill of 1", {1, 1}},
      {"steps after a prefill of 7", {7, 1}},
      {"steps after a prefill of 8", {8, 1}},
      {"steps after a prefill of 20", {20, 1}},
      {"steps after a prefill of 36", {36, 1}},
      {"blocks of 5, 1, 9, 16, 3", {5, 1, 9, 16, 3}},
      {"one block", {37}},
  };
  for (const auto& [name, lengths] : ways) {
    State state = empty_state(*trial);
    const at::Tensor output = mix_in_pieces(*trial, inputs, state, lengths);
    compare_rows(judge, subject, *trial, inputs, rows, name, rows_of(output, rows));
    judge.require(name + ": the state counts the tokens it has seen",
                  state.position == trial->problem.length);
  }
  compare_clones(subject, judge, *trial, inputs);
  compare_handover(subject, judge, *trial, inputs);
  grouped_steps(subject, judge);
  try {
    masked_steps(subject, judge, *trial);
  } catch (const UnsupportedError& error) {
    judge.leave_out("steps with hidden tokens", error.what());
  }
}

bool fed_by(const Mechanism& mechanism, Feed feed) {
  const auto roles = mechanism.roles();
  return std::any_of(roles.begin(), roles.end(),
                     [feed](const Role& role) { return role.feed == feed; });
}

/// The default options, and every choice of the text options: one of them may select what comes
/// before the projections.
std::vector<OptionValues> choices(const Subject& subject) {
  std::vector<OptionValues> all{{}};
  for (const Option& option : subject.entry.options) {
    if (option.type != OptionType::text) continue;
    for (const auto& word : option.choices) all.push_back({{option.name, word}});
  }
  return all;
}

std::string described(const OptionValues& choice) {
  std::string text;
  for (const auto& [name, value] : choice) text += ", " + name + " " + to_string(value);
  return text;
}

void compare_layer(const Subject& subject, Judge& judge, const Trial& trial) {
  const at::NoGradGuard no_grad;
  Layer layer(trial.mechanism, *trial.implementation, Scope::layer, subject.seed);
  const Problem& problem = trial.problem;
  const at::Tensor x = normal({problem.batch, problem.length, problem.width()}, subject.seed + 29)
                           .to(at::Device(problem.device), scalar_type(problem.dtype));
  const at::Tensor whole = layer.forward(x, x).output;
  const Ways ways = {
      {"single steps", {1}},
      {"steps after a prefill of 20", {20, 1}},
      {"blocks of 5, 1, 9, 16, 3", {5, 1, 9, 16, 3}},
      {"one block", {37}},
  };
  for (const auto& [name, lengths] : ways) {
    State state = layer.mechanism().empty_state(x.size(0), x.size(1), x.options());
    const auto step = [&](std::int64_t begin, std::int64_t count) {
      const at::Tensor piece = x.narrow(1, begin, count);
      return layer.forward(piece, piece, {}, {}, &state).output;
    };
    judge.compare(name + trial.where, difference(in_pieces(x.size(1), lengths, 1, step), whole),
                  2 * subject.bar.value);
  }
}

void layer_steps(const Subject& subject, Judge& judge) {
  if (subject.pattern != Pattern::causal) {
    return judge.leave_out("", causal_only);
  }
  if (bytes_of(subject.dtype) == 2) {
    // LibTorch computes products of a single token differently and rounds every partial sum.
    return judge.leave_out(
        "",
        "a token projected alone is rounded differently in this dtype; float32 and "
        "float64 check the same");
  }
  bool found = false;
  for (const OptionValues& choice : choices(subject)) {
    Judge ignored;  // a choice that contradicts the other defaults is not a finding
    const auto trial = subject.prepare(ignored, described(choice), {}, choice);
    if (!trial || !fed_by(*trial->mechanism, Feed::before)) continue;
    found = true;
    compare_layer(subject, judge, *trial);
  }
  if (!found) judge.leave_out("", "nothing comes before its projections");
}

}  // namespace

std::vector<PropertyCheck> order_checks() {
  return {
      {{"causality", "changing a token, were it 1000 times as large, changes no output before it"},
       causality},
      {{"step_equals_full", "steps and blocks from a state give the outputs of the whole sequence"},
       step_equals_full},
  };
}

std::vector<PropertyCheck> layer_checks() {
  return {
      {{"layer_steps",
        "what comes before the projections gives the same in steps and blocks from a state as over "
        "the whole sequence"},
       layer_steps}};
}

}  // namespace attnbench::conformance
