// What the tests of apply share: cases of every mechanism there is, and calls on files.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "attention/registry.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

using Json = nlohmann::json;
using Values = std::map<std::string, OptionValue>;

/// The seed of the parameters in every case and call.
constexpr std::uint64_t apply_seed = 5;

const Registry& all_mechanisms();

/// A mechanism in double with T = 3 and D = 43, in two heads and batch rows.
struct ApplyCase {
  const Entry* entry = nullptr;
  Problem problem;
  Values said;
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  std::string where;
};

Problem apply_problem(Pattern pattern, std::int64_t kv_heads);

/// Nothing where the mechanism says that this is not defined.
std::optional<ApplyCase> apply_case(const Entry& entry, const Problem& problem, const Values& said);

/// Every mechanism, pattern and inner size (1 and 7: latents, features, bases, projected length);
/// each mechanism must have at least one.
void for_each_case(const std::function<void(const ApplyCase&)>& body);

/// Random arrays with full mantissas, so that a float on the way would show.
Inputs inputs_of(const ApplyCase& one);

/// A request, its arrays and its folder.
struct ApplyCall {
  ApplyCall(const ApplyCase& one, const Inputs& inputs);
  /// Writes the array and returns its file.
  std::string put(const std::string& name, const at::Tensor& tensor);
  Json run();
  /// A result, in double.
  at::Tensor read(const std::string& name) const;

  TemporaryFolder folder;
  Json request;
};

/// The greatest difference of sampled output rows from the definition, over their size.
double error_of(const ApplyCase& one, const Inputs& inputs, const at::Tensor& output);

}  // namespace attnbench::test
