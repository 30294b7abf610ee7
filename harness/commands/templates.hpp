// The files of harness/templates/ with a name of one's own in them.
#pragma once

#include <string>
#include <vector>

namespace attnbench::commands {

struct NewFile {
  std::string path;  ///< below the folder it is for
  std::string text;
  std::string meaning;
  bool executable = false;
};

/// Why a mechanism cannot be called that in a file made from a template; empty = it can.
std::string name_complaint(const std::string& name);

/// A mechanism and its reference, below the root of attnbench's sources.
std::vector<NewFile> mechanism_files(const std::string& name);
/// The same as a project of its own that builds a plugin.
std::vector<NewFile> plugin_files(const std::string& name);

}  // namespace attnbench::commands
