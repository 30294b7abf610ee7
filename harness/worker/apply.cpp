#include "harness/worker/apply.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/shape_inference.hpp"
#include "core/failure.hpp"
#include "harness/worker/arrays.hpp"
#include "harness/worker/catalogue.hpp"
#include "tasks/check.hpp"
#include "tasks/output_checks.hpp"

namespace attnbench::worker {
namespace {

/// The folder that is written to, and what was written.
class Out {
 public:
  explicit Out(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void write(const std::string& name, const at::Tensor& tensor) {
    const std::filesystem::path file = folder_ / (name + ".npy");
    std::filesystem::create_directories(file.parent_path());
    write_tensor(file, tensor);
    files_.push_back(name + ".npy");
  }

  const std::vector<std::string>& files() const { return files_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> files_;
};

/// The output, computed so that every gradient asked for can be had.
Mixed mixed(const Implementation& implementation, Mechanism& mechanism, Inputs& inputs) {
  const at::AutoGradMode with_grad(mechanism.problem.gradient);
  for (auto& [role, tensor] : inputs.tensors) tensor.requires_grad_(mechanism.problem.gradient);
  return implementation.mix(mechanism, inputs, nullptr);
}

/// The gradient is zero where the output does not depend on the leaf.
void write_gradient(Out& out, const std::string& name, const at::Tensor& leaf) {
  out.write("gradients/" + name, leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
}

void write_gradients(Out& out, const at::Tensor& output, const at::Tensor& upstream,
                     const Inputs& inputs, const Mechanism& mechanism) {
  const at::AutoGradMode with_grad(true);
  if (output.requires_grad()) output.backward(upstream);
  for (const auto& [role, tensor] : inputs.tensors) write_gradient(out, role, tensor);
  for (const auto& item : mechanism.named_parameters()) {
    if (item.value().requires_grad()) {
      write_gradient(out, "parameter." + item.key(), item.value());
    }
  }
}

bool all_finite(const std::vector<double>& values, std::size_t begin, std::size_t count) {
  for (std::size_t i = begin; i < begin + count; ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

/// Rows for which both the reference and the output are finite. A product with a weight of 0
/// carries NaN to rows where the reference has none; --allow-nan allows that.
tasks::Rows finite_rows(const tasks::MixCase& mix, const at::Tensor& output,
                        const tasks::Rows& rows) {
  const Problem& problem = mix.mechanism.problem;
  const std::vector<double> want =
      tasks::reference_rows(mix.reference, mix.mechanism.options, problem,
                            tasks::to_reference(mix.mechanism, mix.inputs), rows);
  const std::vector<double> got = tasks::rows_of(output, rows);
  const auto width = static_cast<std::size_t>(problem.value_dim);
  tasks::Rows finite;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = i * width;
    if (all_finite(want, at, width) && all_finite(got, at, width)) finite.push_back(rows[i]);
  }
  return finite;
}

/// Checks sampled rows of the output against the reference, that all of it is finite, and that the
/// inputs were left as they were; nothing where no row is to be checked.
std::optional<tasks::CheckSection> check(const tasks::MixCase& mix, const tasks::Snapshot& before,
                                         const at::Tensor& output, const protocol::Apply& request) {
  const at::NoGradGuard no_grad;
  const Problem& problem = mix.mechanism.problem;
  if (request.check_rows == 0) return std::nullopt;
  if (const std::string name = before.changed(); !name.empty()) {
    return tasks::found_wrong("it changed its input \"" + name + "\" in place");
  }
  const std::int64_t bad = request.allow_nan ? 0 : tasks::count_not_finite(output);
  if (bad > 0) {
    return tasks::found_wrong("it returned numbers that are not finite: " + std::to_string(bad) +
                              " of " + std::to_string(output.numel()));
  }
  tasks::Rows rows = tasks::sampled_rows(problem, request.check_rows, mix.seed);
  const std::size_t sampled = rows.size();
  if (request.allow_nan) rows = finite_rows(mix, output, rows);
  tasks::CheckSection section;
  section.rows = 0;
  if (!rows.empty()) {
    section = tasks::check_rows(mix, problem, rows, tasks::rows_of(output, rows));
  }
  if (rows.size() < sampled) section.rows_not_finite = sampled - rows.size();
  return section;
}

std::map<std::string, protocol::AppliedParameter> applied_parameters(
    const Mechanism& mechanism, const arrays::InputArrays& arrays) {
  std::map<std::string, protocol::AppliedParameter> out;
  for (const auto& [name, tensor] : parameters_of(mechanism)) {
    const auto said = arrays.parameters.find(name);
    const bool drawn = said == arrays.parameters.end();
    out[name] = {tensor.sizes().vec(), drawn ? "seed" : said->second.file.string()};
  }
  return out;
}

std::map<std::string, protocol::AppliedRole> applied_roles(const arrays::InputArrays& arrays) {
  std::map<std::string, protocol::AppliedRole> out;
  for (const auto& [role, array] : arrays.roles) out[role] = {array.file.string(), array.shape};
  return out;
}

/// Refuses the option `before`: it acts on tokens ahead of their projection, and the arrays are the
/// projected ones.
void refuse_before(const Mechanism& mechanism, const OptionValues& options) {
  const auto before = options.find("before");
  if (before == options.end()) return;
  std::string fed;
  for (const Role& role : mechanism.roles()) {
    if (role.feed == Feed::before) fed += (fed.empty() ? "" : ", ") + role.name;
  }
  if (fed.empty()) return;
  const auto* const word = std::get_if<std::string>(&before->second);
  throw UsageError("--set before=" + (word != nullptr ? *word : to_string(before->second)) + ": " +
                   mechanism.name() +
                   " runs it on the tokens, before they are projected to the roles " + fed +
                   ", which are given as arrays here; leave it out, and give " + fed +
                   " as they come out of it");
}

/// `reason` with the words for sizes explained: here arrays decide them.
std::string with_sizes_explained(const std::string& reason) {
  std::string meant;
  for (const auto& [size, where] :
       {std::pair{"kv_heads", "dimension 1 of the arrays of key tokens"},
        std::pair{"value_dim", "the last dimension of value (or of the gradient)"},
        std::pair{"head_dim", "the last dimension of query and key"}}) {
    if (reason.find(size) == std::string::npos) continue;
    meant += (meant.empty() ? "" : "; ") + std::string(size) + " is " + where;
  }
  return meant.empty() ? reason : reason + " (arrays decide sizes here: " + meant + ")";
}

protocol::ApplyAnswer applied(const Registry& registry, const protocol::Apply& request) {
  const Entry& entry = registry.entry(request.mechanism);
  const arrays::InputArrays arrays = arrays::open_input_arrays(request);
  const bool gradient = !request.gradient.empty();
  const bool allow_nan = request.allow_nan;
  const std::uint64_t seed = request.seed;
  const Inferred inferred =
      infer_shapes(entry, request.options, pattern_from(request.pattern), gradient, arrays);
  Mechanism& mechanism = *inferred.mechanism;
  refuse_before(mechanism, request.options);
  const Choice choice =
      Registry::choose(entry, request.implementation, inferred.options, inferred.problem);
  Inputs inputs = inputs_from(arrays, mechanism, allow_nan);
  const at::Tensor upstream =
      gradient ? upstream_from(arrays, inferred.problem, allow_nan) : at::Tensor();
  mechanism.draw_parameters(seed);
  set_parameters(arrays, mechanism, allow_nan);

  const tasks::Snapshot before(tasks::read_by(mechanism, inputs));
  const Mixed result = mixed(*choice.implementation, mechanism, inputs);
  Out out(request.out);
  out.write("output", result.output);
  if (result.latents.defined()) out.write("latents", result.latents);
  for (const auto& [name, tensor] : parameters_of(mechanism)) {
    out.write("parameters/" + name, tensor);
  }
  if (gradient) write_gradients(out, result.output, upstream, inputs, mechanism);
  protocol::ApplyAnswer answer;
  const std::optional<tasks::CheckSection> found = check(
      {entry, *choice.implementation, registry.reference(entry.name), mechanism, inputs, seed},
      before, result.output, request);
  if (found) answer.check = *found;
  answer.implementation = choice.implementation->name;
  answer.implementation_reason = choice.reason;
  answer.options = inferred.options.values();
  answer.problem = inferred.problem;
  answer.roles = applied_roles(arrays);
  answer.parameters = applied_parameters(mechanism, arrays);
  answer.files = out.files();
  answer.stamp = stamp();
  if (found && !found->ok()) {
    if (found->verdict == "wrong") answer.status = Status::wrong;
    answer.reason = found->reason;
  }
  return answer;
}

protocol::ApplyAnswer refused(Status status, const std::string& reason) {
  protocol::ApplyAnswer answer;
  answer.status = status;
  answer.reason = reason;
  answer.refused = true;
  return answer;
}

}  // namespace

protocol::ApplyAnswer apply_arrays(const Registry& registry, const protocol::Apply& request) {
  try {
    return applied(registry, request);
  } catch (const UsageError& error) {
    return refused(Status::error, error.what());
  } catch (const UsageFailure& failure) {
    return refused(Status::error, failure.what());
  } catch (const UnsupportedError& error) {
    return refused(Status::unsupported, with_sizes_explained(error.what()));
  }
}

}  // namespace attnbench::worker
