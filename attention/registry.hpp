// Registry: names to mechanisms, implementations, aliases and references.
//
// There are no static constructors. `Registry::with_builtins()` uses a table that CMake generates
// from the folders mechanisms/ and reference/; plugins register through the same functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench {

/// A name looked up: the entry, the implementation's name ("auto" by default) and preset options.
struct Resolved {
  const Entry* entry = nullptr;
  std::string implementation = "auto";
  std::map<std::string, OptionValue> options;
};

/// The implementation that will run, and why.
struct Choice {
  const Implementation* implementation = nullptr;
  std::string reason;
};

class Registry {
 public:
  static Registry with_builtins();

  /// Throws NameTaken, and PluginError if a name is malformed or the entry lacks `composite`.
  void add(Entry entry, reference::Reference reference);
  /// Adds an implementation to a registered mechanism. Throws PluginError likewise.
  void add_implementation(const std::string& mechanism, Implementation implementation);

  /// Throws UsageError naming the closest known name.
  Resolved resolve(const std::string& name_or_alias) const;
  const Entry& entry(const std::string& mechanism) const;
  const reference::Reference& reference(const std::string& mechanism) const;
  std::vector<std::string> mechanisms() const;  ///< sorted
  std::vector<Alias> aliases() const;           ///< sorted by name

  /// `word` is an implementation's name or "auto". Throws UsageError for an unknown name, and
  /// UnsupportedError with the reason if no implementation of that name supports the problem.
  static Choice choose(const Entry& entry, const std::string& word, const Options& options,
                       const Problem& problem);

 private:
  std::map<std::string, Entry> entries_;
  std::map<std::string, reference::Reference> references_;
};

/// What the entry's `supports` says. A reason begins with the mechanism's name, once, whether the
/// entry names itself or not.
Support support_of(const Entry& entry, const Options& options, const Problem& problem);

}  // namespace attnbench
