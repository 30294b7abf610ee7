#include "harness/worker/shape_inference.hpp"

#include <algorithm>
#include <optional>

#include "harness/worker/arrays.hpp"

namespace attnbench::worker {
namespace {

using arrays::ArrayFile;
using arrays::InputArrays;
using arrays::Shape;
using Values = std::map<std::string, OptionValue>;

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

Inferred made(const Entry& entry, const Values& said, const Problem& problem) {
  Inferred inferred;
  inferred.problem = problem;
  inferred.options = entry.derive(Options::resolve(entry.options, said), problem);
  if (entry.supports) {
    if (const Support support = entry.supports(inferred.options, problem); !support) {
      throw UnsupportedError(support.reason);
    }
  }
  inferred.mechanism = entry.make(inferred.options, problem);
  return inferred;
}

/// Nothing where the sizes contradict the options, or are not supported.
std::optional<Inferred> tried(const Entry& entry, const Values& said, const Problem& problem) {
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
std::vector<std::string> undecided(const Entry& entry, const Values& said) {
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
std::optional<Inferred> nearer(const Entry& entry, const Inferred& from, Values& said,
                               const InputArrays& arrays, const Misfits& misfits) {
  const std::size_t before = distance(misfits);
  for (const Misfit& misfit : misfits) {
    for (const std::string& name : undecided(entry, said)) {
      for (const std::int64_t size : misfit.array->shape) {
        Values more = said;
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

[[noreturn]] void refuse(const Misfit& misfit, const Values& said) {
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

Inferred infer_shapes(const Entry& entry, const Values& options, Pattern pattern, bool gradient,
                      const InputArrays& arrays) {
  Values said = options;
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

}  // namespace attnbench::worker
