#include "tests/harness/worker/apply_cases.hpp"

#include "attention/layer.hpp"
#include "core/cell.hpp"
#include "harness/worker/apply.hpp"
#include "harness/worker/arrays.hpp"
#include "tasks/reference_rows.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::test {
namespace {

/// The sizes per head that mechanisms have beside D.
Values inner_sizes(const Entry& entry, std::int64_t inner) {
  Values said;
  for (const Option& option : entry.options) {
    for (const char* name : {"latents_per_head", "features", "bases", "projected_length"}) {
      if (option.name == name) said[name] = inner;
    }
  }
  return said;
}

}  // namespace

const Registry& all_mechanisms() {
  static const Registry all = Registry::with_builtins();
  return all;
}

Problem apply_problem(Pattern pattern, std::int64_t kv_heads) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.kv_heads = kv_heads;
  problem.length = 3;
  problem.key_length = pattern == Pattern::cross ? 5 : 3;
  problem.head_dim = 43;
  problem.value_dim = 43;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  return problem;
}

std::optional<ApplyCase> apply_case(const Entry& entry, const Problem& problem,
                                    const Values& said) {
  ApplyCase made{&entry, problem, said, {}, nullptr, ""};
  try {
    made.options = entry.derive(Options::resolve(entry.options, said), problem);
  } catch (const UsageError&) {
    return std::nullopt;
  }
  if (!entry.supports(made.options, problem)) return std::nullopt;
  made.mechanism = entry.make(made.options, problem);
  made.mechanism->draw_parameters(apply_seed);
  made.where = entry.name + " " + to_string(problem.pattern) +
               " kv_heads=" + std::to_string(problem.kv_heads);
  for (const auto& [name, value] : said) made.where += " " + name + "=" + to_string(value);
  return made;
}

void for_each_case(const std::function<void(const ApplyCase&)>& body) {
  for (const std::string& name : all_mechanisms().mechanisms()) {
    const Entry& entry = all_mechanisms().entry(name);
    int count = 0;
    for (const Pattern pattern : entry.patterns) {
      for (const std::int64_t kv_heads : {2, 1}) {
        for (const std::int64_t inner : {1, 7}) {
          const Values said = inner_sizes(entry, inner);
          if (said.empty() && inner > 1) continue;
          const auto one = apply_case(entry, apply_problem(pattern, kv_heads), said);
          if (!one) continue;
          ++count;
          body(*one);
        }
      }
    }
    INFO(name);
    CHECK(count > 0);
  }
}

Inputs inputs_of(const ApplyCase& one) {
  Inputs inputs = random_inputs(*one.mechanism, 3, 1, false);
  for (auto& [role, tensor] : inputs.tensors) tensor = tensor / 1.1;
  return inputs;
}

ApplyCall::ApplyCall(const ApplyCase& one, const Inputs& inputs) {
  std::filesystem::create_directories(folder / "out");
  request = {{"mechanism", one.entry->name},
             {"implementation", "auto"},
             {"pattern", to_string(one.problem.pattern)},
             {"options", Json::object()},
             {"roles", Json::object()},
             {"parameters", Json::object()},
             {"seed", apply_seed},
             {"out", (folder / "out").string()}};
  for (const auto& [name, value] : one.said) request["options"][name] = to_json(value);
  for (const auto& [role, tensor] : inputs.tensors) {
    request["roles"][role] = put(role, tensor);
  }
  if (inputs.key_mask.defined()) request["mask"] = put("mask", inputs.key_mask);
}

std::string ApplyCall::put(const std::string& name, const at::Tensor& tensor) {
  worker::write_tensor(folder / (name + ".npy"), tensor);
  return folder / (name + ".npy");
}

Json ApplyCall::run() {
  return worker::apply_arrays(all_mechanisms(), request.get<protocol::Apply>());
}

at::Tensor ApplyCall::read(const std::string& name) const {
  const arrays::ArrayFile array = arrays::open_array(folder / "out" / (name + ".npy"));
  const at::Tensor tensor = at::empty(array.shape, at::kDouble);
  REQUIRE(array.element == arrays::Element::float64);
  arrays::read_array(array, tensor.data_ptr());
  return tensor;
}

double error_of(const ApplyCase& one, const Inputs& inputs, const at::Tensor& output) {
  const tasks::Rows rows = tasks::sampled_rows(one.problem, 48, 1);
  const std::vector<double> want =
      tasks::reference_rows(all_mechanisms().reference(one.entry->name), one.options, one.problem,
                            tasks::to_reference(*one.mechanism, inputs), rows);
  const std::vector<double> got = tasks::rows_of(output, rows);
  double most = 0;
  double size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= most)) most = std::abs(got[i] - want[i]);
    size = std::max(size, std::abs(want[i]));
  }
  return size > 0 ? most / size : most;
}

}  // namespace attnbench::test
