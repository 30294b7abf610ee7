// Mechanisms written in Python, as entries. See docs/python.md for what users write.
#pragma once

#include <string>

#include "attention/python/description.hpp"
#include "attention/registry.hpp"

namespace attnbench::python {

/// Adds what `word` names (bridge.hpp) as the mechanism `name` with one implementation,
/// `composite`. Python is started where a mechanism is made or its own cost asked, not here.
///
/// Its reference is the mechanism of ours that it names; its own function or class, run in double;
/// or itself in double, and then a check finds errors of precision, causality and so on, but not a
/// wrong definition, and the entry's citation says so. Throws PluginError for a name that is taken,
/// UsageError for a reference that there is not.
void add_python(const std::string& word, const std::string& name, const Description& description,
                Registry& registry);

/// Adds `name` as a mechanism that cannot be made, so that a suite's other cells are measured.
/// Where it is `unsupported` it supports nothing, for that reason; else making it throws Error.
void add_unusable(const std::string& name, bool unsupported, const std::string& reason,
                  Registry& registry);

}  // namespace attnbench::python
