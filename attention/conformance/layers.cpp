// What a mechanism does before its inputs are projected is seen through a Layer alone.
#include <algorithm>

#include "attention/conformance/compare.hpp"
#include "attention/conformance/property.hpp"
#include "attention/layer.hpp"

namespace attnbench::conformance {
namespace {

bool fed_by(const Mechanism& mechanism, Feed feed) {
  const auto roles = mechanism.roles();
  return std::any_of(roles.begin(), roles.end(),
                     [feed](const Role& role) { return role.feed == feed; });
}

/// The mechanism as it is, and with every word that its options of text may have: what comes before
/// is chosen by one of them.
std::vector<Values> choices(const Subject& subject) {
  std::vector<Values> all{{}};
  for (const Option& option : subject.entry.options) {
    if (option.type != OptionType::text) continue;
    for (const auto& word : option.choices) all.push_back({{option.name, word}});
  }
  return all;
}

std::string described(const Values& choice) {
  std::string text;
  for (const auto& [name, value] : choice) text += ", " + name + " " + to_string(value);
  return text;
}

/// A layer over x [B, T, C] in pieces of these lengths, the last one repeated, from an empty state.
at::Tensor in_pieces(Layer& layer, const at::Tensor& x, const std::vector<std::int64_t>& lengths) {
  State state = layer.mechanism().empty_state(x.size(0), x.size(1), x.options());
  std::vector<at::Tensor> outputs;
  std::int64_t done = 0;
  for (std::size_t i = 0; done < x.size(1); ++i) {
    const std::int64_t count = std::min(lengths[std::min(i, lengths.size() - 1)], x.size(1) - done);
    const at::Tensor piece = x.narrow(1, done, count);
    outputs.push_back(layer.forward(piece, piece, {}, {}, &state).output);
    done += count;
  }
  return at::cat(outputs, 1);
}

void compare_layer(const Subject& subject, Judge& judge, const Trial& trial) {
  const at::NoGradGuard no_grad;
  Layer layer(trial.mechanism, *trial.implementation, Scope::layer, subject.seed);
  const Problem& problem = trial.problem;
  const at::Tensor x = normal({problem.batch, problem.length, problem.width()}, subject.seed + 29)
                           .to(at::Device(problem.device), scalar_type(problem.dtype));
  const at::Tensor whole = layer.forward(x, x).output;
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> ways = {
      {"single steps", {1}},
      {"steps after a prefill of 20", {20, 1}},
      {"blocks of 5, 1, 9, 16, 3", {5, 1, 9, 16, 3}},
      {"one block", {37}},
  };
  for (const auto& [name, lengths] : ways) {
    judge.compare(name + trial.where, difference(in_pieces(layer, x, lengths), whole),
                  2 * subject.bar.value);
  }
}

void layer_steps(const Subject& subject, Judge& judge) {
  if (subject.pattern != Pattern::causal) {
    return judge.leave_out("", "only the causal pattern has an order");
  }
  if (bytes_of(subject.dtype) == 2) {
    // Products as small as a token's go another way in LibTorch, which rounds every partial sum.
    return judge.leave_out("",
                           "a token projected alone is rounded otherwise in this dtype; "
                           "float32 and float64 hold the same");
  }
  bool found = false;
  for (const Values& choice : choices(subject)) {
    Judge unheard;  // a word that goes with no other default is no finding
    const auto trial = subject.prepare(unheard, described(choice), {}, choice);
    if (!trial || !fed_by(*trial->mechanism, Feed::before)) continue;
    found = true;
    compare_layer(subject, judge, *trial);
  }
  if (!found) judge.leave_out("", "nothing comes before its projections");
}

}  // namespace

std::vector<Check> layer_checks() {
  return {{{"layer_steps",
            "what comes before the projections gives the same in steps and blocks from a state as "
            "over the whole sequence"},
           layer_steps}};
}

}  // namespace attnbench::conformance
