#include "harness/worker/role_sizes.hpp"

#include <algorithm>

namespace attnbench::worker {
namespace {

using apply::InputArrays;
using npy::Array;

const Array* role_of(const InputArrays& given, const std::string& name) {
  const auto found = given.roles.find(name);
  return found == given.roles.end() ? nullptr : &found->second;
}

/// The first of these roles that was given, or any.
const Array& one_of(const InputArrays& given, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const Array* array = role_of(given, name)) return *array;
  }
  return given.roles.begin()->second;
}

std::int64_t greatest(const InputArrays& given, std::size_t dimension) {
  std::int64_t most = 1;
  for (const auto& [role, array] : given.roles) most = std::max(most, array.shape[dimension]);
  return most;
}

std::string described(const std::string& role, const Array& array) {
  return role + " in " + array.file.string() + " is " + npy::to_string(array.shape);
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
const Array* side(const std::vector<Role>& roles, const InputArrays& given, Source source) {
  const Array* first = nullptr;
  std::string name;
  for (const Role& role : roles) {
    if (role.source != source) continue;
    const Array& array = given.roles.at(role.name);
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

void require_going_together(const Problem& problem, const Array& query, const Array& key) {
  const std::string both = query.file.string() + " is " + npy::to_string(query.shape) + " and " +
                           key.file.string() + " is " + npy::to_string(key.shape);
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

}  // namespace

Problem guessed_problem(const InputArrays& given, Pattern pattern, bool gradient) {
  Problem problem;
  problem.batch = given.roles.begin()->second.shape[0];
  problem.heads = greatest(given, 1);
  const Array* key = role_of(given, "key");
  problem.kv_heads = key == nullptr ? problem.heads : key->shape[1];
  const Array* query = role_of(given, "query");
  problem.key_length = one_of(given, {"key", "value"}).shape[2];
  problem.length = query != nullptr            ? query->shape[2]
                   : pattern == Pattern::cross ? greatest(given, 2)
                                               : problem.key_length;
  if (pattern != Pattern::cross) problem.key_length = problem.length;
  if (problem.heads % problem.kv_heads != 0) problem.kv_heads = problem.heads;
  problem.head_dim = one_of(given, {"query", "key", "value"}).shape[3];
  problem.value_dim = role_of(given, "value") == nullptr && given.gradient
                          ? given.gradient->shape[3]
                          : one_of(given, {"value", "query", "key"}).shape[3];
  problem.pattern = pattern;
  problem.dtype = given.element() == npy::Element::float64 ? Dtype::float64 : Dtype::float32;
  problem.gradient = gradient;
  return problem;
}

void require_roles(const Mechanism& mechanism, const InputArrays& given) {
  const std::vector<Role> roles = mechanism.roles();
  std::vector<std::string> names;
  for (const Role& role : roles) names.push_back(role.name);
  for (const auto& [name, array] : given.roles) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = closest_word(name, names);
    throw UsageError(apply::flag_of_role(name, array.file.string()) + ": " + mechanism.name() +
                     " has no role \"" + name + "\"" +
                     (near.empty() ? "." : "; did you mean \"" + near + "\"?") +
                     " Its roles are: " + listed(roles));
  }
  for (const std::string& name : names) {
    if (role_of(given, name) != nullptr) continue;
    throw UsageError(mechanism.name() + " needs the role \"" + name + "\" as well; give " +
                     apply::flag_of_role(name, "FILE") + ". Its roles are: " + listed(roles));
  }
}

Problem problem_of(const Mechanism& mechanism, const InputArrays& given) {
  const std::vector<Role> roles = mechanism.roles();
  const Array* query = side(roles, given, Source::query_tokens);
  const Array* key = side(roles, given, Source::key_tokens);
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

std::vector<std::int64_t Problem::*> open_widths(const InputArrays& given) {
  std::vector<std::int64_t Problem::*> widths;
  if (role_of(given, "query") == nullptr && role_of(given, "key") == nullptr) {
    widths.push_back(&Problem::head_dim);
  }
  if (role_of(given, "value") == nullptr && !given.gradient) {
    widths.push_back(&Problem::value_dim);
  }
  return widths;
}

npy::Shape shape_of_role(const Role& role, const Mechanism& mechanism, const Array& array) {
  const Problem& problem = mechanism.problem;
  switch (role.source) {
    case Source::query_tokens:
      return {problem.batch, problem.heads, problem.length, role.width};
    case Source::key_tokens:
      return {problem.batch, problem.kv_heads, problem.key_length, role.width};
    case Source::latent_stream:
      break;
  }
  const bool said = mechanism.options.has("latents_per_head");
  return {problem.batch, problem.heads,
          said ? mechanism.options.integer("latents_per_head") : array.shape[2], role.width};
}

std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& item : mechanism.named_parameters()) all.emplace_back(item.key(), item.value());
  for (const auto& item : mechanism.named_buffers()) all.emplace_back(item.key(), item.value());
  return all;
}

}  // namespace attnbench::worker
