// attnbench apply in the worker: every mechanism of the registry, on arrays from files, against its
// definition.
#include "harness/worker/apply.hpp"

#include <nlohmann/json.hpp>

#include "attention/layer.hpp"
#include "attention/tolerance.hpp"
#include "harness/worker/arrays.hpp"
#include "harness/worker/cell.hpp"
#include "harness/worker/role_sizes.hpp"
#include "tasks/reference_rows.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using namespace attnbench::test;
using worker::Json;

namespace {

using Values = std::map<std::string, OptionValue>;

constexpr std::uint64_t kSeed = 5;

const Registry& registry() {
  static const Registry all = Registry::with_builtins();
  return all;
}

struct Case {
  const Entry* entry = nullptr;
  Problem problem;
  Values said;
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  std::string where;
};

Problem problem_of(Pattern pattern, std::int64_t length, std::int64_t kv_heads) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.kv_heads = kv_heads;
  problem.length = length;
  problem.key_length = pattern == Pattern::cross ? length + 2 : length;
  problem.head_dim = 43;
  problem.value_dim = 43;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  return problem;
}

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

/// Nothing where the mechanism says that this is not defined.
std::optional<Case> made(const Entry& entry, const Problem& problem, const Values& said) {
  Case made{&entry, problem, said, {}, nullptr, ""};
  try {
    made.options = entry.derive(Options::resolve(entry.options, said), problem);
  } catch (const UsageError&) {
    return std::nullopt;
  }
  if (!entry.supports(made.options, problem)) return std::nullopt;
  made.mechanism = entry.make(made.options, problem);
  made.mechanism->draw_parameters(kSeed);
  made.where = entry.name + " " + to_string(problem.pattern) +
               " T=" + std::to_string(problem.length) +
               " kv_heads=" + std::to_string(problem.kv_heads);
  for (const auto& [name, value] : said) made.where += " " + name + "=" + to_string(value);
  return made;
}

/// Every mechanism, pattern and inner size of this length; each mechanism must have at least one.
void for_each(std::int64_t length, const std::function<void(const Case&)>& body) {
  for (const std::string& name : registry().mechanisms()) {
    const Entry& entry = registry().entry(name);
    int count = 0;
    for (const Pattern pattern : entry.patterns) {
      for (const std::int64_t kv_heads : {2, 1}) {
        for (const std::int64_t inner : {1, 7}) {
          const Values said = inner_sizes(entry, inner);
          if (said.empty() && inner > 1) continue;
          const auto one = made(entry, problem_of(pattern, length, kv_heads), said);
          if (!one) continue;
          ++count;
          body(*one);
        }
      }
    }
    INFO(name << " at T=" << length);
    CHECK(count > 0);
  }
}

/// Full mantissas, so that a float on the way would show.
Inputs inputs_of(const Case& one) {
  Inputs inputs = random_inputs(*one.mechanism, 3, 1, false);
  for (auto& [role, tensor] : inputs.tensors) tensor = tensor / 1.1;
  return inputs;
}

/// A request, its arrays and its folder.
struct Call {
  Call(const Case& one, const Inputs& inputs) {
    std::filesystem::create_directories(folder / "out");
    request = {{"mechanism", one.entry->name},
               {"implementation", "auto"},
               {"pattern", to_string(one.problem.pattern)},
               {"options", Json::object()},
               {"roles", Json::object()},
               {"parameters", Json::object()},
               {"seed", kSeed},
               {"out", (folder / "out").string()}};
    for (const auto& [name, value] : one.said) request["options"][name] = worker::to_json(value);
    for (const auto& [role, tensor] : inputs.tensors) {
      request["roles"][role] = put(role, tensor);
    }
    if (inputs.key_mask.defined()) request["mask"] = put("mask", inputs.key_mask);
  }

  std::string put(const std::string& name, const at::Tensor& tensor) {
    worker::write_tensor(folder / (name + ".npy"), tensor);
    return folder / (name + ".npy");
  }

  Json run() { return worker::apply_arrays(registry(), request); }

  at::Tensor read(const std::string& name) const {
    const npy::Array array = npy::open_array(folder / "out" / (name + ".npy"));
    const at::Tensor tensor = at::empty(array.shape, at::kDouble);
    REQUIRE(array.element == npy::Element::float64);
    npy::read_array(array, tensor.data_ptr());
    return tensor;
  }

  TemporaryFolder folder;
  Json request;
};

/// The greatest difference of sampled output rows from the definition, over their size.
double error_of(const Case& one, const Inputs& inputs, const at::Tensor& output) {
  const tasks::Rows rows = tasks::sampled_rows(one.problem, 48, 1);
  const std::vector<double> want =
      tasks::reference_rows(registry().reference(one.entry->name), one.options, one.problem,
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

/// Whether the options said can be seen in the shape of a role or a parameter.
bool visible(const Case& one) {
  const auto plain = made(*one.entry, one.problem, {});
  if (!plain) return false;
  std::map<std::string, std::int64_t> widths;
  for (const Role& role : plain->mechanism->roles()) widths[role.name] = role.width;
  for (const Role& role : one.mechanism->roles()) {
    if (widths[role.name] != role.width || role.source == Source::latent_stream) return true;
  }
  std::map<std::string, npy::Shape> shapes;
  for (const auto& [name, tensor] : worker::parameters_of(*plain->mechanism)) {
    shapes[name] = tensor.sizes().vec();
  }
  for (const auto& [name, tensor] : worker::parameters_of(*one.mechanism)) {
    if (shapes[name] != tensor.sizes().vec()) return true;
  }
  return false;
}

void hold_to_definition(std::int64_t length) {
  for_each(length, [](const Case& one) {
    const Inputs inputs = inputs_of(one);
    for (const Implementation& implementation : one.entry->implementations) {
      if (!implementation.supports(one.options, one.problem)) continue;
      INFO(one.where << " " << implementation.name);
      Call call(one, inputs);
      call.request["implementation"] = implementation.name;
      const Json answer = call.run();
      INFO(answer.dump());
      REQUIRE(answer.at("status") == "ok");
      CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
      CHECK(answer.at("check").at("error").get<double>() < 1e-10);
      for (const auto& [name, tensor] : worker::parameters_of(*one.mechanism)) {
        CHECK(call.read("parameters/" + name).equal(tensor));
      }
    }
  });
}

}  // namespace

TEST_CASE("apply agrees with every definition at T = 1", "[apply]") { hold_to_definition(1); }
TEST_CASE("apply agrees with every definition at T = 3", "[apply]") { hold_to_definition(3); }
TEST_CASE("apply agrees with every definition at T = 257", "[apply]") { hold_to_definition(257); }

TEST_CASE("apply finds unsaid sizes in the arrays, and takes parameters back", "[apply]") {
  int found = 0;
  for_each(3, [&](const Case& one) {
    if (!visible(one)) return;
    INFO(one.where);
    const Inputs inputs = inputs_of(one);
    Call call(one, inputs);
    call.request["options"] = Json::object();
    call.request["seed"] = kSeed + 1;
    for (const auto& [name, tensor] : worker::parameters_of(*one.mechanism)) {
      call.request["parameters"][name] = call.put("parameter." + name, tensor);
    }
    const Json answer = call.run();
    INFO(answer.dump());
    REQUIRE(answer.at("status") == "ok");
    CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
    for (const auto& [name, value] : one.said) {
      CHECK(answer.at("options").at(name) == worker::to_json(value));
    }
    ++found;
  });
  CHECK(found > 0);
}

TEST_CASE("what was said is contradicted aloud by an array that does not fit", "[apply]") {
  const Entry& latte = registry().entry("latte");
  const auto one =
      made(latte, problem_of(Pattern::causal, 3, 2), {{"latents_per_head", std::int64_t{7}}});
  Call call(*one, inputs_of(*one));
  call.request["options"]["latents_per_head"] = 8;
  const Json answer = call.run();
  CHECK(answer.at("refused") == true);
  CHECK_THAT(answer.at("reason").get<std::string>(),
             Catch::Contains("logits.npy") && Catch::Contains("[2, 2, 3, 7]") &&
                 Catch::Contains("expected [2, 2, 3, 8]") && Catch::Contains("latents_per_head=8"));
  CHECK(std::filesystem::is_empty(call.folder / "out"));
}

TEST_CASE("apply hides masked tokens of every mechanism, whatever stands there", "[apply]") {
  for_each(3, [](const Case& one) {
    INFO(one.where);
    Inputs inputs = inputs_of(one);
    const Problem& problem = one.problem;
    inputs.key_mask = at::ones({problem.batch, problem.key_length}, at::kBool);
    inputs.key_mask[1][problem.key_length - 1].fill_(false);
    for (const Role& role : one.mechanism->roles()) {
      if (role.source != Source::key_tokens) continue;
      inputs.tensors[role.name][1].select(1, problem.key_length - 1).fill_(std::nan(""));
    }
    Call call(one, inputs);
    const Json answer = call.run();
    INFO(answer.dump());
    if (answer.at("status") == "unsupported") return;
    REQUIRE(answer.at("status") == "ok");
    CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
  });
}

namespace {

/// The derivative of sum(upstream * output) along `direction` of one array of the definition.
double difference(const Case& one, reference::ReferenceInputs& inputs, reference::Array& array,
                  const at::Tensor& direction, const std::vector<double>& upstream) {
  constexpr double step = 1e-5;
  const tasks::Rows rows = tasks::sampled_rows(one.problem, 1 << 20, 1);
  const std::vector<double> centre = array.values;
  const std::vector<double> towards = tasks::to_array(direction).values;
  double sum = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < centre.size(); ++i) {
      array.values[i] = centre[i] + sign * step * towards[i];
    }
    const auto found = tasks::reference_rows(registry().reference(one.entry->name), one.options,
                                             one.problem, inputs, rows);
    for (std::size_t i = 0; i < found.size(); ++i) sum += sign * upstream[i] * found[i];
  }
  array.values = centre;
  return sum / (2 * step);
}

void hold_gradient(const Case& one, const at::Tensor& gradient, reference::ReferenceInputs& inputs,
                   reference::Array& array, const std::vector<double>& upstream) {
  REQUIRE(gradient.sizes().vec() == array.shape);
  const at::Tensor direction = tasks::seeded_normal(gradient.sizes(), 7, 1, at::kDouble);
  const double along = (gradient * direction).sum().item<double>();
  const double want = difference(one, inputs, array, direction, upstream);
  CHECK(std::abs(along - want) < 1e-6 * std::max(1.0, gradient.norm().item<double>()));
}

}  // namespace

TEST_CASE("gradients of inputs and parameters are those of the definition", "[apply]") {
  for_each(3, [](const Case& one) {
    INFO(one.where);
    const Inputs inputs = inputs_of(one);
    Call call(one, inputs);
    const Problem& problem = one.problem;
    const at::Tensor upstream = tasks::seeded_normal(
        {problem.batch, problem.heads, problem.length, problem.value_dim}, 9, 1, at::kDouble);
    call.request["gradient"] = call.put("gradient", upstream);
    const Json answer = call.run();
    INFO(answer.dump());
    REQUIRE(answer.at("status") == "ok");
    reference::ReferenceInputs exact = tasks::to_reference(*one.mechanism, inputs);
    const std::vector<double> weights =
        tasks::rows_of(upstream, tasks::sampled_rows(problem, 1 << 20, 1));
    for (const auto& [role, tensor] : inputs.tensors) {
      INFO("role " << role);
      hold_gradient(one, call.read("gradients/" + role), exact, exact.roles.at(role), weights);
    }
    for (const auto& item : one.mechanism->named_parameters()) {
      INFO("parameter " << item.key());
      hold_gradient(one, call.read("gradients/parameter." + item.key()), exact,
                    exact.parameters.at(item.key()), weights);
    }
  });
}
