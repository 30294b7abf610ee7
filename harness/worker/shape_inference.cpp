#include "harness/worker/shape_inference.hpp"

#include <algorithm>
#include <optional>

#include "harness/worker/role_sizes.hpp"

namespace attnbench::worker {
namespace {

using apply::InputArrays;
using npy::Array;
using npy::Shape;
using Values = std::map<std::string, OptionValue>;

/// An array whose shape is not what the mechanism wants.
struct Misfit {
  std::string what;
  const Array* array = nullptr;
  Shape wanted;
  /// Dimensions that differ; all of them where even their number does.
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

Fitted made(const Entry& entry, const Values& said, const Problem& problem) {
  Fitted fitted;
  fitted.problem = problem;
  fitted.options = entry.derive(Options::resolve(entry.options, said), problem);
  if (entry.supports) {
    if (const Support support = entry.supports(fitted.options, problem); !support) {
      throw UnsupportedError(support.reason);
    }
  }
  fitted.mechanism = entry.make(fitted.options, problem);
  return fitted;
}

/// A try that may contradict what was said, or ask for what is not defined.
std::optional<Fitted> tried(const Entry& entry, const Values& said, const Problem& problem) {
  try {
    return made(entry, said, problem);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Misfits misfits_of(const Fitted& fitted, const InputArrays& given) {
  Misfits misfits;
  const auto compare = [&](const std::string& what, const Array& array, const Shape& wanted) {
    if (array.shape != wanted) misfits.push_back({what, &array, wanted});
  };
  for (const Role& role : fitted.mechanism->roles()) {
    const Array& array = given.roles.at(role.name);
    compare("the role " + role.name, array, shape_of_role(role, *fitted.mechanism, array));
  }
  for (const auto& [name, tensor] : parameters_of(*fitted.mechanism)) {
    const auto found = given.parameters.find(name);
    if (found == given.parameters.end()) continue;
    compare("the parameter " + name, found->second, tensor.sizes().vec());
  }
  return misfits;
}

/// Integer options that the arrays may decide: not those that only say how to compute.
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

/// One undecided number set so that the shapes come nearer to what was given.
std::optional<Fitted> nearer(const Entry& entry, const Fitted& from, Values& said,
                             const InputArrays& given, const Misfits& misfits) {
  const std::size_t before = distance(misfits);
  for (const Misfit& misfit : misfits) {
    for (const std::string& name : undecided(entry, said)) {
      for (const std::int64_t size : misfit.array->shape) {
        Values more = said;
        more[name] = size;
        auto fitted = tried(entry, more, from.problem);
        if (!fitted || distance(misfits_of(*fitted, given)) >= before) continue;
        said = more;
        return fitted;
      }
    }
    // Where no role is named query, key or value the widths of a head are open as well.
    for (std::int64_t Problem::*const width : open_widths(given)) {
      for (const std::int64_t size : misfit.array->shape) {
        Problem problem = from.problem;
        problem.*width = size;
        auto fitted = tried(entry, said, problem);
        if (fitted && distance(misfits_of(*fitted, given)) < before) return fitted;
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
                   npy::to_string(misfit.array->shape) + "; expected " +
                   npy::to_string(misfit.wanted) +
                   (options.empty() ? ", from the sizes of the other arrays"
                                    : ", from the other arrays and " + options) +
                   ": change the array, or the options that decide its shape");
}

void require_known_parameters(const Fitted& fitted, const InputArrays& given) {
  std::vector<std::string> known;
  for (const auto& [name, tensor] : parameters_of(*fitted.mechanism)) known.push_back(name);
  for (const auto& [name, array] : given.parameters) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
    const std::string near = closest_word(name, known);
    throw UsageError(array.file.string() + ": " + fitted.mechanism->name() +
                     " has no parameter \"" + name + "\" with these options" +
                     (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
                     (list.empty() ? "; it has none" : "; it has: " + list));
  }
}

}  // namespace

Fitted fit(const Entry& entry, const Values& options, Pattern pattern, bool gradient,
           const InputArrays& given) {
  Values said = options;
  Problem problem = guessed_problem(given, pattern, gradient);
  // Which roles there are, and whose tokens they hold, is known only of a mechanism that was made.
  Fitted fitted = made(entry, said, problem);
  require_roles(*fitted.mechanism, given);
  problem = problem_of(*fitted.mechanism, given);
  fitted = made(entry, said, problem);
  Misfits misfits = misfits_of(fitted, given);
  while (!misfits.empty()) {
    auto better = nearer(entry, fitted, said, given, misfits);
    if (!better) refuse(misfits.front(), said);
    fitted = *better;
    misfits = misfits_of(fitted, given);
  }
  require_known_parameters(fitted, given);
  return fitted;
}

}  // namespace attnbench::worker
