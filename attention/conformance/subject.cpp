#include "attention/conformance/subject.hpp"

#include <algorithm>

#include "attention/registry.hpp"

namespace attnbench::conformance {
namespace {

/// Values that make the kit's small trials cross the borders of chunks, blocks and windows, and
/// have more blocks than a query sees.
OptionValues small_options(const Entry& entry, Pattern pattern, OptionValues& chunks) {
  OptionValues values;
  for (const Option& option : entry.options) {
    const bool chunk = option.name.find("chunk") != std::string::npos ||
                       option.name.find("tile") != std::string::npos;
    const bool block = option.name == "block";
    if (option.type == OptionType::integer && (chunk || block)) {
      const double wanted = block ? 4 : 8 + 4 * static_cast<double>(chunks.size());
      const double least = option.minimum.value_or(wanted);
      const double most = option.maximum.value_or(wanted);
      chunks[option.name] = static_cast<std::int64_t>(std::clamp(wanted, least, most));
      values[option.name] = chunks[option.name];
    } else if (option.type == OptionType::integer && option.name == "blocks") {
      const auto least = static_cast<std::int64_t>(option.minimum.value_or(1));
      values[option.name] = std::max<std::int64_t>(3, least + 1);
    } else if (option.type == OptionType::window) {
      values[option.name] = pattern == Pattern::causal ? Window{5, 0} : Window{4, 3};
    }
  }
  return values;
}

Options resolved(const Entry& entry, const OptionValues& said, const Problem& problem) {
  const Options options = Options::resolve(entry.options, said);
  return entry.derive ? entry.derive(options, problem) : options;
}

Support support(const Entry& entry, const Implementation& implementation, const Options& options,
                const Problem& problem) {
  if (std::find(entry.patterns.begin(), entry.patterns.end(), problem.pattern) ==
      entry.patterns.end()) {
    return Support::no(entry.name + " has no " + to_string(problem.pattern) + " form");
  }
  const Support by_entry = support_of(entry, options, problem);
  if (!by_entry || !implementation.supports) return by_entry;
  return implementation.supports(options, problem);
}

/// Where shapes differ (a parameter as long as the sequence) the common leading part is taken over.
void copy_parameter(const at::Tensor& from, at::Tensor to) {
  at::Tensor source = from;
  for (std::int64_t i = 0; i < to.dim(); ++i) {
    const std::int64_t common = std::min(source.size(i), to.size(i));
    source = source.narrow(i, 0, common);
    to = to.narrow(i, 0, common);
  }
  to.copy_(source);
}

void copy_parameters(const Mechanism& from, Mechanism& to) {
  const at::NoGradGuard no_grad;
  const auto parameters = from.named_parameters();
  for (auto& item : to.named_parameters()) copy_parameter(parameters[item.key()], item.value());
  const auto buffers = from.named_buffers();
  for (auto& item : to.named_buffers()) copy_parameter(buffers[item.key()], item.value());
}

/// Biases that begin at 0 would hide a form that ignores them.
void wake(Mechanism& mechanism, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (auto& item : mechanism.named_parameters()) {
    at::Tensor& numbers = item.value();
    if (numbers.eq(0).all().item<bool>()) numbers.copy_(normal(numbers.sizes(), ++seed) * 0.5);
  }
}

}  // namespace

TrialSizes grouped_sizes() {
  TrialSizes sizes;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = 19;
  return sizes;
}

Subject::Subject(const Entry& entry_, const reference::Reference& reference_,
                 const Implementation& implementation_, Pattern pattern_, Dtype dtype_,
                 const CheckOptions& options)
    : entry(entry_),
      reference(reference_),
      implementation(implementation_),
      pattern(pattern_),
      dtype(dtype_),
      device(options.device),
      seed(options.seed),
      bar(tolerance(dtype_)),
      kit_options_(small_options(entry_, pattern_, chunks_)),
      said_(options.options) {
  Options::resolve(entry.options, said_);
}

const Option* Subject::option(const std::string& name) const {
  for (const Option& each : entry.options) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

double Subject::unchanged() const {
  return dtype == Dtype::float64 ? 1e-11 : dtype == Dtype::float32 ? 1e-6 : bar.value;
}

Problem Subject::problem(const TrialSizes& sizes) const {
  Problem problem;
  problem.batch = sizes.batch;
  problem.heads = sizes.heads;
  problem.kv_heads = sizes.kv_heads == 0 ? sizes.heads : sizes.kv_heads;
  problem.length = sizes.length;
  problem.key_length = sizes.length;
  if (pattern == Pattern::cross) {
    problem.key_length = sizes.key_length == 0 ? 29 : sizes.key_length;
  }
  problem.head_dim = sizes.head_dim;
  problem.value_dim = sizes.value_dim == 0 ? sizes.head_dim : sizes.value_dim;
  problem.pattern = pattern;
  problem.dtype = dtype;
  problem.device = device;
  return problem;
}

std::optional<Trial> Subject::prepare(Judge& judge, const std::string& where,
                                      const TrialSizes& sizes, const OptionValues& changes,
                                      bool gradient) const {
  Trial trial;
  trial.problem = problem(sizes);
  trial.problem.gradient = gradient && differentiable();
  trial.implementation = &implementation;
  trial.where = where;
  OptionValues values = kit_options_;
  for (const auto& [name, value] : changes) values[name] = value;
  for (const auto& [name, value] : said_) values[name] = value;
  try {
    trial.options = resolved(entry, values, trial.problem);
  } catch (const UsageError& error) {
    judge.leave_out(where, error.what());
    return std::nullopt;
  }
  const Support answer = support(entry, implementation, trial.options, trial.problem);
  if (!answer) {
    judge.leave_out(where, answer.reason);
    return std::nullopt;
  }
  trial.mechanism = entry.make(trial.options, trial.problem);
  wake(*trial.mechanism, seed + 34);
  return trial;
}

std::optional<Trial> Subject::in_pattern(const Trial& like, Pattern other) const {
  Trial changed = like;
  changed.problem.pattern = other;
  return composite_in_double(changed);
}

std::optional<Trial> Subject::composite_in_double(const Trial& trial) const {
  Trial exact = trial;
  exact.implementation = &entry.implementations.front();
  exact.problem.dtype = Dtype::float64;
  exact.problem.device = "cpu";
  if (!support(entry, *exact.implementation, exact.options, exact.problem)) return std::nullopt;
  exact.mechanism = entry.make(exact.options, exact.problem);
  copy_parameters(*trial.mechanism, *exact.mechanism);
  return exact;
}

std::optional<Trial> Subject::naive(const Trial& trial) const {
  Trial plain = trial;
  plain.implementation = &entry.implementations.front();
  if (!support(entry, *plain.implementation, plain.options, plain.problem)) return std::nullopt;
  return plain;
}

}  // namespace attnbench::conformance
