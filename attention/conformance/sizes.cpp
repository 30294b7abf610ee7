// Sizes: around the borders of chunks, odd widths, and as many queries as keys or not.
#include <algorithm>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

void compare_at(const Subject& subject, Judge& judge, const std::string& where,
                const TrialSizes& sizes, const OptionValues& changes, bool gradient) {
  const auto trial = subject.prepare(judge, where, sizes, changes, gradient);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 11);
  if (gradient) {
    compare_with_composite(judge, subject, *trial, inputs);
  }
  compare_with_definition(judge, subject, *trial, inputs,
                          sampled_rows(trial->problem, 48, subject.seed));
}

TrialSizes of_length(std::int64_t length) {
  TrialSizes sizes;
  sizes.batch = 1;
  sizes.length = length;
  sizes.key_length = length;
  return sizes;
}

/// Lengths around the borders of a chunk of `c`.
void around(const Subject& subject, Judge& judge, std::int64_t c, const OptionValues& changes,
            const std::string& note) {
  for (const std::int64_t length : {std::int64_t{1}, std::int64_t{2}, c - 1, c, c + 1, 3 * c + 5}) {
    if (length < 1) continue;
    compare_at(subject, judge, "length " + std::to_string(length) + note, of_length(length),
               changes, length > 2);
  }
}

/// The option's value moved into its range.
OptionValue within(const Option& option, std::int64_t value) {
  const double wanted = static_cast<double>(value);
  return static_cast<std::int64_t>(
      std::clamp(wanted, option.minimum.value_or(wanted), option.maximum.value_or(wanted)));
}

void chunk_invariance(const Subject& subject, Judge& judge) {
  if (subject.chunks().empty()) {
    // Forms without an option may still work in tiles: powers of two are where those end.
    for (const std::int64_t c : {16, 64}) around(subject, judge, c, {}, "");
    return;
  }
  for (const auto& [name, value] : subject.chunks()) {
    const std::int64_t c = std::get<std::int64_t>(value);
    around(subject, judge, c, {}, ", " + name + " " + std::to_string(c));
    for (const std::int64_t other : {1, 5, 16, 64, 1000}) {
      const OptionValue moved = within(*subject.option(name), other);
      compare_at(subject, judge, "length 53, " + name + " " + to_string(moved), of_length(53),
                 {{name, moved}}, false);
    }
  }
}

void odd_widths(const Subject& subject, Judge& judge) {
  TrialSizes sizes;
  sizes.length = 19;
  for (const std::int64_t width : {43, 1}) {
    sizes.head_dim = width;
    compare_at(subject, judge, "head_dim " + std::to_string(width), sizes, {}, true);
  }
  sizes.head_dim = 16;
  sizes.value_dim = 5;
  compare_at(subject, judge, "value_dim 5 beside head_dim 16", sizes, {}, true);
  sizes.value_dim = 0;
  for (const char* name : {"latents_per_head", "features", "bases", "projected_length"}) {
    if (subject.option(name) == nullptr) continue;
    for (const std::int64_t count : {1, 7}) {
      compare_at(subject, judge, std::string(name) + " " + std::to_string(count), sizes,
                 {{name, count}}, true);
    }
  }
}

void cross(const Subject& subject, Judge& judge) {
  if (subject.pattern != Pattern::cross) {
    return judge.leave_out("", "queries and keys are the same tokens in this pattern");
  }
  for (const auto& [queries, keys] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 37}, {37, 5}, {1, 37}, {37, 1}}) {
    TrialSizes sizes = of_length(queries);
    sizes.key_length = keys;
    compare_at(subject, judge,
               std::to_string(queries) + " queries, " + std::to_string(keys) + " keys", sizes, {},
               true);
  }
}

}  // namespace

std::vector<PropertyCheck> size_checks() {
  return {
      {{"chunk_invariance",
        "lengths around the borders of chunks and other chunk sizes change nothing"},
       chunk_invariance},
      {{"odd_widths",
        "head_dim 43 and 1, another value_dim, 1 and 7 latents give the definition's output"},
       odd_widths},
      {{"cross", "more queries than keys, or fewer, give the definition's output"}, cross},
  };
}

}  // namespace attnbench::conformance
