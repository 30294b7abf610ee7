// A plugin as the command line names it.
#pragma once

#include <string>

namespace attnbench::run {

/// PATH, or WORD=PATH for one whose mechanism NAME is to be called NAME_WORD, so that two builds of
/// a plugin can be loaded side by side. A WORD is lower-case letters, digits and _.
struct PluginName {
  std::string path;
  std::string as;  ///< the WORD; empty = its mechanisms keep their names

  explicit PluginName(const std::string& text);
};

}  // namespace attnbench::run
