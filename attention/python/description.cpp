#include "attention/python/description.hpp"

namespace attnbench::python {

ATTNBENCH_JSON_CODEC(RoleDescription) { JSON_AT(name, source, width); }

ATTNBENCH_JSON_CODEC(Description) {
  JSON_AT(place, title, citation, formula, reference, patterns, options, roles, claims, growth,
          dtypes, devices, differentiable, shares_heads, key_mask, step_key_mask, state, cost,
          python, torch, packages, files);
}

}  // namespace attnbench::python
