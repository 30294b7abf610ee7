#include "harness/worker/arrays.hpp"

#include <algorithm>

namespace attnbench::worker {
namespace {

using arrays::ArrayFile;
using arrays::Element;
using arrays::InputArrays;

const ArrayFile* role_of(const InputArrays& arrays, const std::string& name) {
  const auto found = arrays.roles.find(name);
  return found == arrays.roles.end() ? nullptr : &found->second;
}

/// The first of these roles that was given, or any.
const ArrayFile& one_of(const InputArrays& arrays, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const ArrayFile* array = role_of(arrays, name)) return *array;
  }
  return arrays.roles.begin()->second;
}

std::int64_t greatest(const InputArrays& arrays, std::size_t dimension) {
  std::int64_t most = 1;
  for (const auto& [role, array] : arrays.roles) most = std::max(most, array.shape[dimension]);
  return most;
}

std::string described(const std::string& role, const ArrayFile& array) {
  return role + " in " + array.file.string() + " is " + arrays::to_string(array.shape);
}

const char* tokens_word(Source source) {
  switch (source) {
    case Source::query_tokens:
      return "[B, H, T, width]";
    case Source::key_tokens:
      return "[B, H, S, width]";
    case Source::latent_stream:
      return "[B, H, latents, width]";
  }
  return "";
}

std::string listed(const std::vector<Role>& roles) {
  std::string text;
  for (const Role& role : roles) {
    text += (text.empty() ? "" : ", ") + role.name + " " + tokens_word(role.source);
  }
  return text;
}

/// The first role of this source; the others must have its heads and tokens.
const ArrayFile* side(const std::vector<Role>& roles, const InputArrays& arrays, Source source) {
  const ArrayFile* first = nullptr;
  std::string name;
  for (const Role& role : roles) {
    if (role.source != source) continue;
    const ArrayFile& array = arrays.roles.at(role.name);
    if (first == nullptr) {
      first = &array;
      name = role.name;
    } else if (!std::equal(first->shape.begin(), first->shape.end() - 1, array.shape.begin())) {
      throw UsageError(described(role.name, array) + ", but " + described(name, *first) +
                       "; expected the same batch, heads and tokens in both");
    }
  }
  return first;
}

void require_going_together(const Problem& problem, const ArrayFile& query, const ArrayFile& key) {
  const std::string both = query.file.string() + " is " + arrays::to_string(query.shape) + " and " +
                           key.file.string() + " is " + arrays::to_string(key.shape);
  if (problem.heads % problem.kv_heads != 0) {
    throw UsageError(both +
                     "; expected a number of key heads (dimension 1) that divides that of "
                     "the query heads, since each serves as many of them");
  }
  if (problem.length != problem.key_length && problem.pattern != Pattern::cross) {
    throw UsageError(both + "; expected as many key tokens as query tokens (dimension 2), as " +
                     to_string(problem.pattern) +
                     " attention has them: only --pattern cross has two lengths");
  }
}

at::ScalarType type_of(Element element) {
  static const at::ScalarType types[] = {at::kFloat, at::kDouble, at::kLong, at::kBool, at::kByte};
  return types[static_cast<int>(element)];
}

Element element_of(const at::Tensor& tensor) {
  for (const Element element :
       {Element::float32, Element::float64, Element::int64, Element::boolean, Element::uint8}) {
    if (type_of(element) == tensor.scalar_type()) return element;
  }
  throw Error(std::string("a tensor of ") + c10::toString(tensor.scalar_type()) +
              " cannot be written as an array; expected float32, float64, int64, bool or uint8");
}

at::Tensor tensor_from(const ArrayFile& array) {
  at::Tensor tensor = at::empty(array.shape, at::TensorOptions().dtype(type_of(array.element)));
  arrays::read_array(array, tensor.data_ptr());
  return tensor;
}

[[noreturn]] void refuse(const ArrayFile& array, const std::string& what) {
  throw UsageError(array.file.string() + ": " + what);
}

/// Refuses the array where `bad` is true anywhere, naming the first place.
void refuse_where(const at::Tensor& bad, const ArrayFile& array, const std::string& found,
                  const std::string& remedy) {
  const std::int64_t count = bad.sum().item<std::int64_t>();
  if (count == 0) return;
  const at::Tensor place = bad.nonzero()[0].contiguous();
  const auto* index = place.data_ptr<std::int64_t>();
  refuse(array, found + " at " + arrays::to_string(arrays::Shape(index, index + place.numel())) +
                    (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") + remedy);
}

/// `maskable`: of key tokens, which alone a mask can hide. `hidden`: by the mask that was given.
void require_finite(const at::Tensor& tensor, const ArrayFile& array, bool maskable = false,
                    const at::Tensor& hidden = {}) {
  if (!tensor.is_floating_point()) return;
  at::Tensor bad = at::isfinite(tensor).logical_not();
  if (hidden.defined()) bad = bad.logical_and(hidden.logical_not().unsqueeze(1).unsqueeze(-1));
  refuse_where(bad, array, "NaN or infinity",
               std::string("; expected finite numbers: mend them") +
                   (maskable ? ", hide their tokens with --mask," : "") + " or pass --allow-nan");
}

at::Tensor mask_from(const ArrayFile& array, const Problem& problem) {
  const arrays::Shape wanted{problem.batch, problem.key_length};
  if (array.shape != wanted) {
    refuse(array, "the mask is " + arrays::to_string(array.shape) + "; expected " +
                      arrays::to_string(wanted) + ", one number for each key token of the batch");
  }
  const at::Tensor mask = tensor_from(array);
  if (mask.scalar_type() == at::kByte) {
    refuse_where(mask > 1, array, "a number that is neither 0 nor 1",
                 "; expected 1 where the key token is real and 0 where it is padding");
  }
  return mask.to(at::kBool);
}

}  // namespace

Problem guessed_problem(const InputArrays& arrays, Pattern pattern, bool gradient) {
  Problem problem;
  problem.batch = arrays.roles.begin()->second.shape[0];
  problem.heads = greatest(arrays, 1);
  const ArrayFile* key = role_of(arrays, "key");
  problem.kv_heads = key == nullptr ? problem.heads : key->shape[1];
  const ArrayFile* query = role_of(arrays, "query");
  problem.key_length = one_of(arrays, {"key", "value"}).shape[2];
  problem.length = query != nullptr            ? query->shape[2]
                   : pattern == Pattern::cross ? greatest(arrays, 2)
                                               : problem.key_length;
  if (pattern != Pattern::cross) problem.key_length = problem.length;
  if (problem.heads % problem.kv_heads != 0) problem.kv_heads = problem.heads;
  problem.head_dim = one_of(arrays, {"query", "key", "value"}).shape[3];
  problem.value_dim = role_of(arrays, "value") == nullptr && arrays.gradient
                          ? arrays.gradient->shape[3]
                          : one_of(arrays, {"value", "query", "key"}).shape[3];
  problem.pattern = pattern;
  problem.dtype = arrays.element() == arrays::Element::float64 ? Dtype::float64 : Dtype::float32;
  problem.gradient = gradient;
  return problem;
}

void require_roles(const Mechanism& mechanism, const InputArrays& arrays) {
  const std::vector<Role> roles = mechanism.roles();
  std::vector<std::string> names;
  for (const Role& role : roles) names.push_back(role.name);
  for (const auto& [name, array] : arrays.roles) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = closest_word(name, names);
    throw UsageError(arrays::flag_of_role(name, array.file.string()) + ": " + mechanism.name() +
                     " has no role \"" + name + "\"" +
                     (near.empty() ? "." : "; did you mean \"" + near + "\"?") +
                     " Its roles are: " + listed(roles));
  }
  for (const std::string& name : names) {
    if (role_of(arrays, name) != nullptr) continue;
    throw UsageError(mechanism.name() + " needs the role \"" + name + "\" as well; give " +
                     arrays::flag_of_role(name, "FILE") + ". Its roles are: " + listed(roles));
  }
}

Problem problem_of(const Mechanism& mechanism, const InputArrays& arrays) {
  const std::vector<Role> roles = mechanism.roles();
  const ArrayFile* query = side(roles, arrays, Source::query_tokens);
  const ArrayFile* key = side(roles, arrays, Source::key_tokens);
  if (query == nullptr) query = key;
  if (key == nullptr) key = query;
  Problem problem = mechanism.problem;
  if (query == nullptr) return problem;
  problem.heads = query->shape[1];
  problem.length = query->shape[2];
  problem.kv_heads = key->shape[1];
  problem.key_length = key->shape[2];
  require_going_together(problem, *query, *key);
  return problem;
}

std::vector<std::int64_t Problem::*> open_widths(const InputArrays& arrays) {
  std::vector<std::int64_t Problem::*> widths;
  if (role_of(arrays, "query") == nullptr && role_of(arrays, "key") == nullptr) {
    widths.push_back(&Problem::head_dim);
  }
  if (role_of(arrays, "value") == nullptr && !arrays.gradient) {
    widths.push_back(&Problem::value_dim);
  }
  return widths;
}

arrays::Shape shape_of_role(const Role& role, const Mechanism& mechanism, const ArrayFile& array) {
  arrays::Shape shape = mechanism.shape_of(role);
  if (role.source == Source::latent_stream && !mechanism.options.has("latents_per_head")) {
    shape[2] = array.shape[2];
  }
  return shape;
}

std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& item : mechanism.named_parameters()) all.emplace_back(item.key(), item.value());
  for (const auto& item : mechanism.named_buffers()) all.emplace_back(item.key(), item.value());
  return all;
}

Inputs inputs_from(const arrays::InputArrays& arrays, const Mechanism& mechanism, bool allow_nan) {
  Inputs inputs;
  if (arrays.mask) inputs.key_mask = mask_from(*arrays.mask, mechanism.problem);
  const at::Tensor hidden = arrays.mask ? inputs.key_mask.logical_not() : at::Tensor();
  for (const Role& role : mechanism.roles()) {
    const ArrayFile& array = arrays.roles.at(role.name);
    at::Tensor tensor = tensor_from(array);
    if (!allow_nan) {
      const bool of_keys = role.source == Source::key_tokens;
      require_finite(tensor, array, of_keys, of_keys ? hidden : at::Tensor());
    }
    if (role.source == Source::key_tokens && hidden.defined()) {
      // Not every implementation hides by selection: NaN times a weight of 0 would come through.
      tensor.masked_fill_(hidden.unsqueeze(1).unsqueeze(-1), 0);
    }
    inputs.tensors[role.name] = tensor;
  }
  return inputs;
}

at::Tensor upstream_from(const arrays::InputArrays& arrays, const Problem& problem,
                         bool allow_nan) {
  const arrays::Shape wanted{problem.batch, problem.heads, problem.length, problem.value_dim};
  if (!arrays.gradient) return at::ones(wanted, at::TensorOptions(scalar_type(problem.dtype)));
  if (arrays.gradient->shape != wanted) {
    refuse(*arrays.gradient, "the gradient is " + arrays::to_string(arrays.gradient->shape) +
                                 "; expected the output's shape, " + arrays::to_string(wanted));
  }
  const at::Tensor tensor = tensor_from(*arrays.gradient);
  if (!allow_nan) require_finite(tensor, *arrays.gradient);
  return tensor;
}

void set_parameters(const arrays::InputArrays& arrays, Mechanism& mechanism, bool allow_nan) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_of(mechanism)) {
    const auto found = arrays.parameters.find(name);
    if (found == arrays.parameters.end()) continue;
    const ArrayFile& array = found->second;
    if (type_of(array.element) != tensor.scalar_type()) {
      refuse(array, "the parameter " + name + " is " + arrays::to_string(array.element) +
                        "; expected " + arrays::to_string(element_of(tensor)));
    }
    const at::Tensor said = tensor_from(array);
    if (!allow_nan) require_finite(said, array);
    at::Tensor(tensor).copy_(said);
  }
}

void write_tensor(const std::filesystem::path& file, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  arrays::write_array(file, element_of(plain), plain.sizes().vec(), plain.data_ptr());
}

}  // namespace attnbench::worker
