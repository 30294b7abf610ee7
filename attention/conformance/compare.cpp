#include "attention/conformance/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace attnbench::conformance {
namespace {

/// An algorithm may be off by this many times what rounding each input once changes, since it
/// rounds each intermediate as well. A dot product rounds once for each of its terms (Higham 2002,
/// section 3.1), at the size of its partial sums where they all have one sign; the few roundings
/// beside it are what narrow roles need.
double roundings(const Trial& trial) {
  std::int64_t terms = 8;
  for (const Role& role : trial.mechanism->roles()) terms = std::max(terms, role.width);
  return static_cast<double>(terms);
}

reference::Array array_of(const at::Tensor& tensor) {
  return {std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end()), numbers(tensor)};
}

/// The inputs, each number off by one rounding of the dtype under test.
Inputs rounded_inputs(const Subject& subject, const Inputs& inputs, std::uint64_t draw = 0) {
  Inputs out = converted(inputs, at::kDouble);
  std::uint64_t seed = subject.seed + 77 + 100 * draw;
  for (auto& [name, tensor] : out.tensors) {
    tensor = tensor * (1 + subject.bar.unit_roundoff * normal(tensor.sizes(), ++seed));
  }
  return out;
}

std::vector<double> define(const Subject& subject, const Trial& trial, const Inputs& inputs,
                           const std::vector<reference::RowIndex>& rows) {
  return subject.reference(trial.options, trial.problem, definition_inputs(trial, inputs), rows);
}

at::Tensor upstream_of(const Trial& trial, std::uint64_t seed) {
  const Problem& problem = trial.problem;
  return normal({problem.batch, problem.heads, problem.length, problem.value_dim}, seed)
      .to(scalar_type(problem.dtype));
}

}  // namespace

reference::ReferenceInputs definition_inputs(const Trial& trial, const Inputs& inputs) {
  reference::ReferenceInputs out;
  for (const auto& [name, tensor] : inputs.tensors) out.roles[name] = array_of(tensor);
  for (const auto& item : trial.mechanism->named_parameters()) {
    out.parameters[item.key()] = array_of(item.value());
  }
  for (const auto& item : trial.mechanism->named_buffers()) {
    out.parameters[item.key()] = array_of(item.value());
  }
  if (inputs.key_mask.defined()) {
    const at::Tensor mask = inputs.key_mask.to(at::kByte).contiguous();
    out.key_mask.assign(mask.data_ptr<std::uint8_t>(),
                        mask.data_ptr<std::uint8_t>() + mask.numel());
  }
  return out;
}

std::vector<reference::RowIndex> all_rows(const Problem& problem) {
  std::vector<reference::RowIndex> rows;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t t = 0; t < problem.length; ++t) rows.push_back({b, h, t});
    }
  }
  return rows;
}

std::vector<reference::RowIndex> sampled_rows(const Problem& problem, int sampled,
                                              std::uint64_t seed) {
  const auto all = all_rows(problem);
  if (static_cast<int>(all.size()) <= sampled + 2) return all;
  std::vector<reference::RowIndex> rows{all.front(), all.back()};
  std::mt19937_64 random(seed);
  for (int i = 0; i < sampled; ++i) rows.push_back(all[random() % all.size()]);
  return rows;
}

std::vector<double> rows_of(const at::Tensor& output,
                            const std::vector<reference::RowIndex>& rows) {
  const at::Tensor dense = output.detach().to(at::kDouble).contiguous();
  const double* data = dense.data_ptr<double>();
  const std::int64_t width = dense.size(3);
  std::vector<double> out;
  for (const auto& row : rows) {
    const double* begin = data + ((row.b * dense.size(1) + row.h) * dense.size(2) + row.t) * width;
    out.insert(out.end(), begin, begin + width);
  }
  return out;
}

std::string not_finite_side(const std::vector<double>& got, const std::vector<double>& want,
                            const std::string& other) {
  const auto bad = [](const std::vector<double>& all) {
    return std::count_if(all.begin(), all.end(), [](double one) { return !std::isfinite(one); });
  };
  const auto share = [&](const std::vector<double>& all) {
    return bad(all) == 0
               ? std::string("none")
               : std::to_string(bad(all)) + " of " + std::to_string(all.size()) + " numbers";
  };
  if (bad(got) == 0 && bad(want) == 0) return "";
  if (bad(got) == 0) {
    return other + " holds NaN or infinity in " + share(want) + ", the mechanism in none";
  }
  return "the mechanism holds NaN or infinity in " + share(got) + ", " + other + " in " +
         share(want);
}

/// Where inputs are such that `limit` is wider than any tolerance of the dtype, an error beyond
/// that one is neither right nor wrong.
void compare_within(Judge& judge, const Subject& subject, const std::string& where, double error,
                    double limit) {
  const double most = std::max(subject.bar.gradient, subject.bar.most);
  if (error > most && error <= limit) {
    judge.leave_out(where, "cannot be checked: the definition, or a naive run, is off by as much");
  } else {
    judge.compare(where, error, std::min(limit, most));
  }
}

void compare_rows(Judge& judge, const Subject& subject, const Trial& trial, const Inputs& inputs,
                  const std::vector<reference::RowIndex>& rows, const std::string& where,
                  const std::vector<double>& got) {
  const auto want = define(subject, trial, inputs, rows);
  if (const std::string side = not_finite_side(got, want); !side.empty()) {
    return judge.fail(where + ": " + side);
  }
  const double error = relative_rms(got, want, subject.bar.smallest);
  double limit = subject.bar.value;
  if (error > limit && std::isfinite(error)) {
    // Three draws: among near ties of large logits a single one may see none of them move.
    for (std::uint64_t draw = 0; draw < 3 && error > limit; ++draw) {
      const auto shifted = define(subject, trial, rounded_inputs(subject, inputs, draw), rows);
      limit = std::max(limit, roundings(trial) * relative_rms(shifted, want));
    }
    const auto naive = subject.naive(trial);
    if (naive && trial.implementation != naive->implementation) {
      const double plain = relative_rms(rows_of(mix(*naive, inputs), rows), want);
      limit = std::max(limit, allowed(limit, subject.bar, plain).derived);
    }
  }
  compare_within(judge, subject, where, error, limit);
}

void compare_with_definition(Judge& judge, const Subject& subject, const Trial& trial,
                             const Inputs& inputs, const std::vector<reference::RowIndex>& rows) {
  const at::Tensor output = mix(trial, inputs);
  judge.require(
      trial.where + ": the output is [B, H, T, Dv] in the dtype of the inputs",
      output.sizes() == at::IntArrayRef({trial.problem.batch, trial.problem.heads,
                                         trial.problem.length, trial.problem.value_dim}) &&
          output.scalar_type() == scalar_type(trial.problem.dtype));
  compare_rows(judge, subject, trial, inputs, rows, trial.where, rows_of(output, rows));
}

double difference(const at::Tensor& got, const at::Tensor& want, double floor) {
  const auto a = numbers(got);
  const auto b = numbers(want);
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double off = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  const double count = static_cast<double>(std::max<std::size_t>(b.size(), 1));
  const double error = std::sqrt(off / count) / std::max(std::sqrt(size / count), floor);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

void compare_with_composite(Judge& judge, const Subject& subject, const Trial& trial,
                            const Inputs& inputs, double floor) {
  const auto exact = subject.composite_in_double(trial);
  if (!exact) {
    return compare_with_definition(judge, subject, trial, inputs, all_rows(trial.problem));
  }
  const at::Tensor upstream = upstream_of(trial, subject.seed + 5);
  const bool gradients = subject.differentiable();
  const auto run = [&](const Trial& each, const Inputs& with) {
    return gradients ? differentiate(each, with, upstream) : Differentiated{mix(each, with), {}};
  };
  const Differentiated want = run(*exact, converted(inputs, at::kDouble));
  const Differentiated got = run(trial, inputs);
  // The rest is only computed where the plain bar is passed.
  std::optional<Differentiated> shifted;
  std::optional<Differentiated> plain;
  const auto settle = [&](const std::string& what, const at::Tensor& a, const at::Tensor& b,
                          double limit, const auto& pick) {
    const std::string side =
        not_finite_side(numbers(a), numbers(b), "the composite form in double");
    if (!side.empty()) return judge.fail(trial.where + what + ": " + side);
    const double error = difference(a, b, floor);
    if (error > limit && std::isfinite(error)) {
      if (!shifted) shifted = run(*exact, rounded_inputs(subject, inputs));
      limit = std::max(limit, roundings(trial) * difference(pick(*shifted), b, floor));
      const auto naive = subject.naive(trial);
      if (naive && naive->implementation != trial.implementation) {
        if (!plain) plain = run(*naive, inputs);
        const double off = difference(pick(*plain), b, floor);
        limit = std::max(limit, allowed(limit, subject.bar, off).derived);
      }
    }
    compare_within(judge, subject, trial.where + what, error, limit);
  };
  settle(", output", got.output, want.output, subject.bar.value,
         [](const Differentiated& each) { return each.output; });
  for (const auto& [name, gradient] : want.gradients) {
    const std::string key = name;
    settle(", gradient of " + key, got.gradients.at(key), gradient, subject.bar.gradient,
           [&key](const Differentiated& each) { return each.gradients.at(key); });
  }
}

}  // namespace attnbench::conformance
