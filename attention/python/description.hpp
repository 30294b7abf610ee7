// What a mechanism in Python declares, as plain data: the worker has it without starting Python.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/json_object.hpp"
#include "core/option.hpp"
#include "core/problem.hpp"

namespace attnbench::python {

/// A role other words for which are in attention/mechanism.hpp. `source` is query_tokens or
/// key_tokens, `width` head_dim, value_dim or a number.
struct RoleDescription {
  std::string name;
  std::string source;
  std::string width;
};

/// docs/python.md says what each attribute means.
struct Description {
  std::string place;  ///< FILE:LINE of its definition
  std::string title;
  std::string citation;
  std::string formula;
  std::string reference;  ///< own, python, or the name of a mechanism of ours
  std::vector<std::string> patterns;
  std::vector<Option> options;
  std::vector<RoleDescription> roles;  ///< in the order of the call
  std::vector<std::string> claims;     ///< those that are made
  std::map<std::string, double> growth;
  std::vector<std::string> dtypes;   ///< empty = all
  std::vector<std::string> devices;  ///< empty = all
  bool differentiable = true;
  bool shares_heads = false;
  bool key_mask = false;
  bool step_key_mask = false;
  bool state = false;
  bool cost = false;
  std::string python;  ///< versions
  std::string torch;
  std::map<std::string, std::string> packages;
  std::vector<std::string> files;  ///< those on which all this depends
};

ATTNBENCH_JSON(RoleDescription);
ATTNBENCH_JSON(Description);

}  // namespace attnbench::python
