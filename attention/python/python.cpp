#include "attention/python/python.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "attention/entry_parts.hpp"
#include "attention/python/bridge.hpp"

namespace attnbench::python {
namespace {

struct Declared {
  std::string word;
  std::string name;
  Description said;
};
using Shared = std::shared_ptr<const Declared>;

bool allows(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

Role role_of(const RoleDescription& said, const Problem& problem) {
  const std::int64_t width = said.width == "head_dim"    ? problem.head_dim
                             : said.width == "value_dim" ? problem.value_dim
                                                         : std::stoll(said.width);
  return {said.name, said.source == "query_tokens" ? Source::query_tokens : Source::key_tokens,
          width};
}

class PythonMechanism : public Mechanism {
 public:
  PythonMechanism(Shared declared, const Options& chosen, const Problem& sizes)
      : Mechanism(declared->name, chosen, sizes),
        declared_(std::move(declared)),
        module_(bridge().make(declared_->word, Which::mechanism, chosen, sizes)) {
    for (const auto& [name, tensor] : module_->tensors(true)) {
      register_parameter(name, tensor, tensor.requires_grad());
    }
    for (const auto& [name, tensor] : module_->tensors(false)) register_buffer(name, tensor);
    has_parameters_ = !parameters().empty();
  }

  std::vector<Role> roles() const override {
    std::vector<Role> roles;
    for (const RoleDescription& one : declared_->said.roles) {
      roles.push_back(role_of(one, problem));
    }
    return roles;
  }

  void draw_parameters(std::uint64_t seed) override { module_->draw(seed); }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    if (!declared_->said.state) return Mechanism::empty_state(batch, capacity, tensor);
    State state;
    state.tensors = module_->empty_state(batch, capacity, tensor);
    return state;
  }

  Mixed mix(const Inputs& inputs, State* state) {
    if (inputs.key_mask.defined() && !declared_->said.key_mask) {
      throw UnsupportedError(declared_->name + ": it takes no key_mask");
    }
    if (state != nullptr && inputs.key_mask.defined() && !declared_->said.step_key_mask) {
      throw UnsupportedError(declared_->name + ": its step takes no key_mask");
    }
    const at::ScalarType given = inputs.tensors.begin()->second.scalar_type();
    const at::ScalarType own = scalar_type(problem.dtype);
    if (given == own || !has_parameters_) return {called(inputs, state), {}};
    // Under autocast inputs are narrower than parameters, which PyTorch does not multiply.
    Inputs wide = inputs;
    for (auto& [role, tensor] : wide.tensors) tensor = tensor.to(own);
    return {called(wide, state).to(given), {}};
  }

 private:
  at::Tensor called(const Inputs& inputs, State* state) {
    if (state == nullptr) return module_->call(inputs);
    at::Tensor output = module_->step(inputs, *state);
    state->position += inputs.tensors.begin()->second.size(2);
    return output;
  }

  Shared declared_;
  std::unique_ptr<Instance> module_;
  bool has_parameters_ = false;
};

// ---- the reference

at::Tensor tensor_of(const reference::Array& array) {
  const at::Tensor tensor = at::empty(array.shape, at::kDouble);
  std::copy(array.values.begin(), array.values.end(), tensor.data_ptr<double>());
  return tensor;
}

/// What tells one made module from another.
std::string key_of(const Options& options, const Problem& problem) {
  std::string key;
  for (const std::int64_t size : {problem.heads, problem.kv_heads, problem.length,
                                  problem.key_length, problem.head_dim, problem.value_dim}) {
    key += std::to_string(size) + " ";
  }
  key += to_string(problem.pattern);
  for (const auto& [name, value] : options.values()) key += " " + name + "=" + to_string(value);
  return key;
}

/// The definition in Python, in double: made once for each problem, since a check asks it often.
class Definition {
 public:
  explicit Definition(Shared declared) : declared_(std::move(declared)) {}

  std::vector<double> rows(const Options& options, const Problem& problem,
                           const reference::ReferenceInputs& given,
                           const std::vector<reference::RowIndex>& rows) {
    const std::lock_guard one_at_a_time(busy_);
    const at::NoGradGuard no_grad;
    Instance& module = made_for(options, problem);
    set_parameters(module, given);
    const Inputs inputs = inputs_of(problem, given);
    const at::Tensor output = module.call(inputs).contiguous();
    if (!works_) require_work(module, inputs, output);
    works_ = true;
    std::vector<double> result;
    for (const auto& row : rows) {
      const double* const values =
          output.data_ptr<double>() +
          ((row.b * problem.heads + row.h) * problem.length + row.t) * problem.value_dim;
      result.insert(result.end(), values, values + problem.value_dim);
    }
    return result;
  }

 private:
  Instance& made_for(const Options& options, const Problem& problem) {
    const std::string key = key_of(options, problem);
    if (module_ && key == key_) return *module_;
    Problem exact = problem;
    exact.dtype = Dtype::float64;
    exact.device = "cpu";
    const bool own = declared_->said.reference == "own";
    module_.reset();
    module_ =
        bridge().make(declared_->word, own ? Which::mechanism : Which::reference, options, exact);
    key_ = key;
    works_ = false;
    return *module_;
  }

  /// As many tokens as the problem has: the arrays may hold those that follow, too.
  Inputs inputs_of(const Problem& problem, const reference::ReferenceInputs& given) const {
    Inputs inputs;
    for (const RoleDescription& role : declared_->said.roles) {
      const auto found = given.roles.find(role.name);
      if (found == given.roles.end()) continue;
      const bool query = role.source == "query_tokens";
      inputs.tensors[role.name] =
          tensor_of(found->second).narrow(2, 0, query ? problem.length : problem.key_length);
    }
    if (!given.key_mask.empty()) {
      const auto keys = static_cast<std::int64_t>(given.key_mask.size()) / problem.batch;
      inputs.key_mask = at::empty({problem.batch, keys}, at::kBool);
      std::copy(given.key_mask.begin(), given.key_mask.end(), inputs.key_mask.data_ptr<bool>());
      inputs.key_mask = inputs.key_mask.narrow(1, 0, problem.key_length);
    }
    return inputs;
  }

  /// A mechanism that is held to itself could remember results, and so could its double: then both
  /// give the same output for other inputs.
  void require_work(Instance& module, const Inputs& inputs, const at::Tensor& output) {
    Inputs other = inputs;
    bool all_changed = true;
    for (auto& [role, tensor] : other.tensors) {
      const at::Tensor factors = at::linspace(0.5, 0.9, tensor.numel(), tensor.options());
      const at::Tensor changed = tensor * factors.view(tensor.sizes());
      all_changed = all_changed && changed.ne(tensor).all().item<bool>();
      tensor = changed;
    }
    if (!all_changed || !module.call(other).equal(output)) return;
    throw std::runtime_error(declared_->said.place + ": " + declared_->name +
                             " returned the same output for other inputs: it keeps results "
                             "between calls");
  }

  /// Sets those that the call has under the same name and shape.
  static void set_parameters(Instance& module, const reference::ReferenceInputs& inputs) {
    for (const bool parameters : {true, false}) {
      for (const auto& [name, tensor] : module.tensors(parameters)) {
        const auto given = inputs.parameters.find(name);
        if (given == inputs.parameters.end() || tensor.sizes() != given->second.shape) continue;
        at::Tensor mine = tensor;
        mine.copy_(tensor_of(given->second));
      }
    }
  }

  Shared declared_;
  std::mutex busy_;
  std::string key_;
  std::unique_ptr<Instance> module_;
  bool works_ = false;  ///< the module was called with other inputs, and gave another output
};

/// Throws where `inputs` lacks a role or a parameter of the mechanism of ours that the definition
/// is of, or has it in another shape.
void require_inputs(const Declared& declared, const Entry& entry, const Options& options,
                    const Problem& problem, const reference::ReferenceInputs& inputs) {
  const auto fail = [&](const std::string& lack) {
    throw Error(declared.said.place + ": its attribute reference names " + entry.name + ", which " +
                lack + "; expected a mechanism of ours with the roles and parameters that " +
                declared.name + " has, or a function as the reference");
  };
  Problem here = problem;
  here.device = "cpu";
  const auto ours = entry.make(options, here);
  for (const Role& role : ours->roles()) {
    const auto given = inputs.roles.find(role.name);
    if (given == inputs.roles.end()) fail("takes " + role.name);
    if (given->second.shape.back() != role.width) {
      fail("takes " + role.name + " of width " + std::to_string(role.width) + ", not " +
           std::to_string(given->second.shape.back()));
    }
  }
  for (const auto& parameter : ours->named_parameters()) {
    if (inputs.parameters.count(parameter.key()) == 0) fail("has parameters: " + parameter.key());
  }
}

/// The definition of a mechanism of ours, with the options that both have.
reference::Reference reference_of_ours(const Registry& registry, const std::string& name,
                                       Shared declared) {
  const Resolved resolved = registry.resolve(name);
  return
      [entry = *resolved.entry, preset = resolved.options, declared = std::move(declared),
       definition = registry.reference(resolved.entry->name)](
          const Options& options, const Problem& problem, const reference::ReferenceInputs& inputs,
          const std::vector<reference::RowIndex>& rows) {
        std::map<std::string, OptionValue> said = preset;
        for (const Option& option : entry.options) {
          if (options.has(option.name)) said[option.name] = options.values().at(option.name);
        }
        const Options derived = entry.derive(Options::resolve(entry.options, said), problem);
        require_inputs(*declared, entry, derived, problem, inputs);
        return definition(derived, problem, inputs, rows);
      };
}

// ---- the entry

Support supports(const Declared& declared, const Problem& problem) {
  const Description& said = declared.said;
  if (!allows(said.dtypes, to_string(problem.dtype))) {
    return Support::no(declared.name + ": it takes " + word_list(said.dtypes) + ", not " +
                       to_string(problem.dtype));
  }
  const std::string device = problem.device.substr(0, problem.device.find(':'));
  if (!allows(said.devices, device)) {
    return Support::no(declared.name + ": it runs on " + word_list(said.devices) + ", not on " +
                       device);
  }
  return said.shares_heads ? Support{} : unshared_heads(declared.name, problem);
}

/// Inputs and output are known; other numbers are NaN unless its function cost says them.
Cost cost_of(const Declared& declared, const Problem& problem) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double width = static_cast<double>(problem.length * problem.value_dim);
  for (const RoleDescription& one : declared.said.roles) {
    const Role role = role_of(one, problem);
    const bool query = role.source == Source::query_tokens;
    width += static_cast<double>(role.width * (query ? problem.length : problem.key_length));
  }
  std::map<std::string, double> numbers;
  if (declared.said.cost) numbers = bridge().cost(declared.word, problem);
  const auto number = [&](const char* name, double otherwise) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  };
  Cost cost;
  cost.minimal_bytes =
      number("minimal_bytes", static_cast<double>(problem.batch * problem.heads) * width *
                                  static_cast<double>(bytes_of(problem.dtype)));
  cost.model_flops = number("model_flops", unknown);
  cost.executed_flops = number("executed_flops", unknown);
  cost.exponentials = number("exponentials", unknown);
  cost.workspace_bytes = number("workspace_bytes", unknown);
  cost.saved_bytes = number("saved_bytes", unknown);
  cost.state_bytes = number("state_bytes", unknown);
  return cost;
}

Claims claims_of(const Description& said) {
  const auto claimed = [&](const char* claim) {
    return std::find(said.claims.begin(), said.claims.end(), claim) != said.claims.end();
  };
  return {.rows_sum_to_one = claimed("rows_sum_to_one"),
          .linear_in_value = claimed("linear_in_value"),
          .permutation_equivariant = claimed("permutation_equivariant"),
          .last_row_agrees = claimed("last_row_agrees"),
          .heads_independent = claimed("heads_independent")};
}

Growth growth_of(const Description& said) {
  const auto exponent = [&](const char* name) {
    const auto found = said.growth.find(name);
    return found == said.growth.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  Growth growth;
  growth.time_in_length = exponent("time_in_length");
  growth.workspace_in_length = exponent("workspace_in_length");
  growth.time_in_head_dim = exponent("time_in_head_dim");
  return growth;
}

std::string citation_of(const Description& said) {
  std::string citation = said.citation;
  const auto add = [&](const std::string& more) {
    citation += (citation.empty() ? "" : "; ") + more;
  };
  if (said.reference == "own") {
    add("compared with itself in double, since it has no reference");
  } else if (said.reference != "python") {
    add("compared with the definition of " + said.reference);
  }
  return citation;
}

}  // namespace

void add_python(const std::string& word, const std::string& name, const Description& description,
                Registry& registry) {
  const Shared declared = std::make_shared<const Declared>(Declared{word, name, description});
  Entry entry;
  entry.name = name;
  entry.title = description.title;
  entry.citation = citation_of(description);
  entry.formula = description.formula;
  entry.options = description.options;
  entry.claims = claims_of(description);
  for (const std::string& pattern : description.patterns) {
    entry.patterns.push_back(pattern_from(pattern));
  }
  entry.supports = [declared](const Options&, const Problem& problem) {
    return supports(*declared, problem);
  };
  entry.make = [declared](const Options& options, const Problem& problem) {
    return std::make_shared<PythonMechanism>(declared, options, problem);
  };
  Implementation only;
  only.name = "composite";
  only.title = "Python";
  only.supports = entry.supports;
  only.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return static_cast<PythonMechanism&>(mechanism).mix(inputs, state);
  };
  only.cost = [declared](const Options&, const Problem& problem) {
    return cost_of(*declared, problem);
  };
  only.growth = growth_of(description);
  only.differentiable = description.differentiable;
  entry.implementations = {std::move(only)};
  const std::string& reference = description.reference;
  if (reference != "own" && reference != "python") {
    registry.add(std::move(entry), reference_of_ours(registry, reference, declared));
    return;
  }
  registry.add(std::move(entry), [definition = std::make_shared<Definition>(declared)](
                                     const Options& options, const Problem& problem,
                                     const reference::ReferenceInputs& inputs,
                                     const std::vector<reference::RowIndex>& rows) {
    return definition->rows(options, problem, inputs, rows);
  });
}

void add_unusable(const std::string& name, bool unsupported, const std::string& reason,
                  Registry& registry) {
  const auto refuse = [unsupported, reason]() {
    if (unsupported) throw UnsupportedError(reason);
    throw Error(reason);
  };
  Entry entry;
  entry.name = name;
  entry.title = "Python, and cannot be used";
  entry.claims = claims_of({});
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  if (unsupported) {
    entry.supports = [reason](const Options&, const Problem&) { return Support::no(reason); };
  }
  entry.make = [refuse](const Options&, const Problem&) -> std::shared_ptr<Mechanism> {
    refuse();
    return {};
  };
  Implementation none;
  none.name = "composite";
  none.title = "Python";
  none.supports = entry.supports;
  none.mix = [refuse](Mechanism&, const Inputs&, State*) -> Mixed {
    refuse();
    return {};
  };
  none.cost = [](const Options&, const Problem&) { return Cost{}; };
  none.growth = growth_of({});
  entry.implementations = {std::move(none)};
  registry.add(std::move(entry),
               [refuse](const Options&, const Problem&, const reference::ReferenceInputs&,
                        const std::vector<reference::RowIndex>&) {
                 refuse();
                 return std::vector<double>{};
               });
}

}  // namespace attnbench::python
