// Padding: tokens that are not there have no influence, whatever they hold.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

/// Real key tokens of each batch row: all, some, one and none.
constexpr std::int64_t key_tokens = 29;
constexpr std::int64_t real_tokens[] = {key_tokens, 20, 1, 0};

TrialSizes padded_sizes(bool grouped) {
  TrialSizes sizes = grouped ? grouped_sizes() : TrialSizes{};
  sizes.batch = 4;
  sizes.length = key_tokens;
  sizes.key_length = key_tokens;
  return sizes;
}

/// Normal inputs, the padded key tokens not even numbers, and the mask.
Inputs padded_inputs(const Subject& subject, const Trial& trial) {
  Inputs inputs = draw(trial, subject.seed + 12);
  inputs.key_mask = at::zeros({4, key_tokens}, at::kBool);
  for (std::int64_t b = 0; b < 4; ++b) {
    inputs.key_mask[b].narrow(0, 0, real_tokens[b]).fill_(true);
    for (const Role& role : trial.mechanism->roles()) {
      if (role.source != Source::key_tokens) continue;
      inputs.tensors[role.name][b]
          .narrow(1, real_tokens[b], key_tokens - real_tokens[b])
          .fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return inputs;
}

/// Query tokens that are real in batch row `b`.
std::int64_t queries(const Subject& subject, std::int64_t b) {
  return subject.pattern == Pattern::cross ? key_tokens : real_tokens[b];
}

TrialSizes unpadded_sizes(const Subject& subject, std::int64_t b, bool grouped) {
  TrialSizes sizes = grouped ? grouped_sizes() : TrialSizes{};
  sizes.batch = 1;
  sizes.length = queries(subject, b);
  sizes.key_length = real_tokens[b];
  return sizes;
}

/// Row `b` of the padded inputs without its padding.
Inputs cut(const Subject& subject, const Trial& trial, const Inputs& inputs, std::int64_t b) {
  Inputs out;
  for (const Role& role : trial.mechanism->roles()) {
    at::Tensor tensor = inputs[role.name].narrow(0, b, 1);
    if (role.source == Source::query_tokens) tensor = tensor.narrow(2, 0, queries(subject, b));
    if (role.source == Source::key_tokens) tensor = tensor.narrow(2, 0, real_tokens[b]);
    out.tensors[role.name] = tensor.contiguous();
  }
  return out;
}

/// Gradients of row `b` against those of the unpadded run; zero at tokens that are not there.
void compare_gradients(const Subject& subject, Judge& judge, const Trial& alone, std::int64_t b,
                       const Inputs& inputs, const at::Tensor& upstream,
                       const Differentiated& padded) {
  const std::int64_t count = queries(subject, b);
  const Differentiated want = differentiate(alone, cut(subject, alone, inputs, b),
                                            upstream.narrow(0, b, 1).narrow(2, 0, count));
  for (const Role& role : alone.mechanism->roles()) {
    if (role.source == Source::latent_stream) continue;
    const at::Tensor got = padded.gradients.at(role.name).narrow(0, b, 1);
    const at::Tensor real = want.gradients.at(role.name);
    const std::int64_t there = real.size(2);
    judge.compare(alone.where + ", gradient of " + role.name,
                  difference(got.narrow(2, 0, there), real), 2 * subject.bar.gradient);
    if (role.source == Source::key_tokens && there < got.size(2)) {
      const at::Tensor rest = got.narrow(2, there, got.size(2) - there);
      judge.require(alone.where + ": padded tokens of " + role.name + " have no gradient",
                    rest.eq(0).all().item<bool>());
    }
  }
}

/// The batch row without a single real key.
void require_nothing(Judge& judge, const at::Tensor& output, const Differentiated* padded) {
  judge.require("an all-padded row has the output 0", output[3].eq(0).all().item<bool>());
  judge.require("no output is NaN or infinite", at::isfinite(output).all().item<bool>());
  if (padded == nullptr) return;
  for (const auto& [name, gradient] : padded->gradients) {
    judge.require("no gradient of " + name + " is NaN or infinite",
                  at::isfinite(gradient).all().item<bool>());
    if (name.rfind("parameter ", 0) == 0) continue;
    judge.require("an all-padded row has the gradient 0 in " + name,
                  gradient[3].eq(0).all().item<bool>());
  }
}

/// `grouped`: 2 key heads for 4.
void compare_padded(const Subject& subject, Judge& judge, bool grouped) {
  const std::string heads = grouped ? ", 2 key heads for 4" : "";
  const auto trial =
      subject.prepare(judge, "29 key tokens" + heads, padded_sizes(grouped), {}, true);
  if (!trial) return;
  const Inputs inputs = padded_inputs(subject, *trial);
  at::Tensor output;
  try {
    output = mix(*trial, inputs);
  } catch (const UnsupportedError& error) {
    return judge.leave_out("", error.what());
  }
  at::Tensor upstream = normal(output.sizes(), subject.seed + 13);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t there = queries(subject, b);
    upstream[b].narrow(1, there, key_tokens - there).zero_();
  }
  std::optional<Differentiated> padded;
  if (subject.differentiable()) padded = differentiate(*trial, inputs, upstream);
  require_nothing(judge, output, padded ? &*padded : nullptr);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::string where = std::to_string(real_tokens[b]) + " of 29 key tokens" + heads;
    const auto alone = subject.prepare(judge, where, unpadded_sizes(subject, b, grouped), {}, true);
    if (!alone) continue;
    const at::Tensor want = mix(*alone, cut(subject, *alone, inputs, b));
    judge.compare(where, difference(output.narrow(0, b, 1).narrow(2, 0, queries(subject, b)), want),
                  2 * subject.bar.value);
    if (padded) compare_gradients(subject, judge, *alone, b, inputs, upstream, *padded);
  }
}

/// Hidden tokens before the first real one and between others: a causal row sees what comes before
/// it, so that a mask that only its end needs is not enough. They are compared with the definition,
/// for a mechanism that knows positions or a window is not the same without them.
void compare_holes(const Subject& subject, Judge& judge) {
  TrialSizes sizes;
  sizes.length = sizes.key_length = key_tokens;
  const auto trial = subject.prepare(judge, "tokens hidden before others", sizes, {}, true);
  if (!trial) return;
  Inputs clean = draw(*trial, subject.seed + 31);
  clean.key_mask = at::ones({2, key_tokens}, at::kBool);
  clean.key_mask[0].narrow(0, 0, 10).fill_(false);
  clean.key_mask[1].narrow(0, 3, 6).fill_(false);
  clean.key_mask[1].narrow(0, 12, 1).fill_(false);
  Inputs spoiled = clean;
  for (const Role& role : trial->mechanism->roles()) {
    if (role.source != Source::key_tokens) continue;
    const at::Tensor hidden = clean.key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
    spoiled.tensors[role.name] =
        clean[role.name].masked_fill(hidden, std::numeric_limits<double>::quiet_NaN());
  }
  const auto rows = all_rows(trial->problem);
  compare_rows(judge, subject, *trial, clean, rows, trial->where,
               rows_of(mix(*trial, spoiled), rows));
  compare_with_composite(judge, subject, *trial, clean);
  if (!subject.differentiable()) return;
  const Problem& problem = trial->problem;
  const at::Tensor upstream =
      normal({problem.batch, problem.heads, problem.length, problem.value_dim}, subject.seed + 32);
  const Differentiated want = differentiate(*trial, clean, upstream);
  const Differentiated got = differentiate(*trial, spoiled, upstream);
  for (const auto& [name, gradient] : want.gradients) {
    judge.compare(trial->where + ", gradient of " + name,
                  difference(got.gradients.at(name), gradient), 2 * subject.bar.gradient);
  }
}

void padding(const Subject& subject, Judge& judge) {
  compare_padded(subject, judge, false);
  compare_padded(subject, judge, true);
  try {
    compare_holes(subject, judge);
  } catch (const UnsupportedError& error) {
    judge.leave_out("tokens hidden before others", error.what());
  }
}

}  // namespace

std::vector<PropertyCheck> padding_checks() {
  return {{{"padding",
            "padded keys change nothing, whatever they hold; a row without keys gives 0 and no "
            "gradient"},
           padding}};
}

}  // namespace attnbench::conformance
