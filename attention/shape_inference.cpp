#include "attention/shape_inference.hpp"

#include <algorithm>
#include <optional>

#include "attention/registry.hpp"

namespace attnbench {
namespace {

using arrays::ArrayFile;
using arrays::InputArrays;
using arrays::Shape;

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

std::int64_t max_size(const InputArrays& arrays, std::size_t dimension) {
  std::int64_t size = 1;
  for (const auto& [role, array] : arrays.roles) size = std::max(size, array.shape[dimension]);
  return size;
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
                     " attention has them: only the pattern cross has two lengths");
  }
}

/// A problem near enough to learn the mechanism's roles from: sizes of the roles named query, key
/// and value, and of any other where those are missing.
Problem guessed_problem(const InputArrays& arrays, Pattern pattern, bool gradient) {
  Problem problem;
  problem.batch = arrays.roles.begin()->second.shape[0];
  problem.heads = max_size(arrays, 1);
  const ArrayFile* key = role_of(arrays, "key");
  problem.kv_heads = key == nullptr ? problem.heads : key->shape[1];
  const ArrayFile* query = role_of(arrays, "query");
  problem.key_length = one_of(arrays, {"key", "value"}).shape[2];
  problem.length = query != nullptr            ? query->shape[2]
                   : pattern == Pattern::cross ? max_size(arrays, 2)
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

/// Throws UsageError where a role is missing, or an array has a role that the mechanism lacks.
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

/// The mechanism's problem with the sizes of the arrays. Throws UsageError, naming two files, where
/// arrays of the same tokens differ in heads or tokens, and where heads or lengths do not go
/// together.
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

/// The widths head_dim and value_dim, as far as no role is named query, key or value, which decides
/// them.
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

/// The shape [B, heads, tokens, width] that the mechanism wants of the role. Tokens of a latent
/// stream are as many as latents_per_head, or as `array` has where there is no such option.
arrays::Shape shape_of_role(const Role& role, const Mechanism& mechanism, const ArrayFile& array) {
  arrays::Shape shape = mechanism.shape_of(role);
  if (role.source == Source::latent_stream && !mechanism.options.has("latents_per_head")) {
    shape[2] = array.shape[2];
  }
  return shape;
}

/// An array whose shape differs from what the mechanism wants.
struct Misfit {
  std::string what;
  const ArrayFile* array = nullptr;
  Shape wanted;
  /// The number of dimensions that differ; all of them where the ranks differ.
  std::size_t distance() const {
    if (wanted.size() != array->shape.size()) return std::max(wanted.size(), array->shape.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) count += wanted[i] != array->shape[i] ? 1 : 0;
    return count;
  }
};

using Misfits = std::vector<Misfit>;

std::size_t distance(const Misfits& misfits) {
  std::size_t sum = 0;
  for (const Misfit& misfit : misfits) sum += misfit.distance();
  return sum;
}

Inferred made(const Entry& entry, const OptionValues& said, const Problem& problem) {
  Inferred inferred;
  inferred.problem = problem;
  inferred.options = entry.derive(Options::resolve(entry.options, said), problem);
  if (const Support support = support_of(entry, inferred.options, problem); !support) {
    throw UnsupportedError(support.reason);
  }
  inferred.mechanism = entry.make(inferred.options, problem);
  return inferred;
}

/// Nothing where the sizes contradict the options, or are not supported.
std::optional<Inferred> tried(const Entry& entry, const OptionValues& said,
                              const Problem& problem) {
  try {
    return made(entry, said, problem);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Misfits misfits_of(const Inferred& inferred, const InputArrays& arrays) {
  Misfits misfits;
  const auto compare = [&](const std::string& what, const ArrayFile& array, const Shape& wanted) {
    if (array.shape != wanted) misfits.push_back({what, &array, wanted});
  };
  for (const Role& role : inferred.mechanism->roles()) {
    const ArrayFile& array = arrays.roles.at(role.name);
    compare("the role " + role.name, array, shape_of_role(role, *inferred.mechanism, array));
  }
  for (const auto& [name, tensor] : parameters_of(*inferred.mechanism)) {
    const auto found = arrays.parameters.find(name);
    if (found == arrays.parameters.end()) continue;
    compare("the parameter " + name, found->second, tensor.sizes().vec());
  }
  return misfits;
}

/// Integer options that the arrays may decide: not those that only choose how to compute.
std::vector<std::string> undecided(const Entry& entry, const OptionValues& said) {
  std::vector<std::string> names;
  for (const Option& option : entry.options) {
    const auto holds = [&](const char* part) {
      return option.name.find(part) != std::string::npos;
    };
    if (option.type != OptionType::integer || said.count(option.name) != 0) continue;
    if (!holds("chunk") && !holds("tile") && !holds("seed")) names.push_back(option.name);
  }
  return names;
}

/// `from` with one undecided number set so that its shapes come nearer to the arrays'.
std::optional<Inferred> nearer(const Entry& entry, const Inferred& from, OptionValues& said,
                               const InputArrays& arrays, const Misfits& misfits) {
  const std::size_t before = distance(misfits);
  for (const Misfit& misfit : misfits) {
    for (const std::string& name : undecided(entry, said)) {
      for (const std::int64_t size : misfit.array->shape) {
        OptionValues more = said;
        more[name] = size;
        auto inferred = tried(entry, more, from.problem);
        if (!inferred || distance(misfits_of(*inferred, arrays)) >= before) continue;
        said = more;
        return inferred;
      }
    }
    // Where no role is named query, key or value, the head widths are undecided as well.
    for (std::int64_t Problem::*const width : open_widths(arrays)) {
      for (const std::int64_t size : misfit.array->shape) {
        Problem problem = from.problem;
        problem.*width = size;
        auto inferred = tried(entry, said, problem);
        if (inferred && distance(misfits_of(*inferred, arrays)) < before) return inferred;
      }
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const Misfit& misfit, const OptionValues& said) {
  std::string options;
  for (const auto& [name, value] : said) {
    options += (options.empty() ? "" : ", ") + name + "=" + to_string(value);
  }
  throw UsageError(misfit.array->file.string() + ": " + misfit.what + " is " +
                   arrays::to_string(misfit.array->shape) + "; expected " +
                   arrays::to_string(misfit.wanted) +
                   (options.empty() ? ", from the sizes of the other arrays"
                                    : ", from the other arrays and " + options) +
                   ": change the array, or the options that decide its shape");
}

void require_known_parameters(const Inferred& inferred, const InputArrays& arrays) {
  std::vector<std::string> known;
  for (const auto& [name, tensor] : parameters_of(*inferred.mechanism)) known.push_back(name);
  for (const auto& [name, array] : arrays.parameters) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
    const std::string near = closest_word(name, known);
    throw UsageError(array.file.string() + ": " + inferred.mechanism->name() +
                     " has no parameter \"" + name + "\" with these options" +
                     (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
                     (list.empty() ? "; it has none" : "; it has: " + list));
  }
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& item : mechanism.named_parameters()) all.emplace_back(item.key(), item.value());
  for (const auto& item : mechanism.named_buffers()) all.emplace_back(item.key(), item.value());
  return all;
}

Inferred infer_shapes(const Entry& entry, const OptionValues& options, Pattern pattern,
                      bool gradient, const InputArrays& arrays) {
  OptionValues said = options;
  Problem problem = guessed_problem(arrays, pattern, gradient);
  // Only an instance of the mechanism knows its roles and whose tokens they hold.
  Inferred inferred = made(entry, said, problem);
  require_roles(*inferred.mechanism, arrays);
  problem = problem_of(*inferred.mechanism, arrays);
  inferred = made(entry, said, problem);
  Misfits misfits = misfits_of(inferred, arrays);
  while (!misfits.empty()) {
    auto better = nearer(entry, inferred, said, arrays, misfits);
    if (!better) refuse(misfits.front(), said);
    inferred = *better;
    misfits = misfits_of(inferred, arrays);
  }
  require_known_parameters(inferred, arrays);
  return inferred;
}

}  // namespace attnbench
