// Rendering: specifications into pictures, by a Python script that uses vl-convert.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::reports {

struct Rendered {
  bool done = false;    ///< pictures and bundle are there
  std::string bundle;   ///< the JavaScript that draws the specifications on a page
  std::string message;  ///< why not, and what to do; empty when done
};

/// Renders every *.vl.json of `figures` in place, as `formats` ("svg", "png", "pdf"). The
/// interpreter is $ATTNBENCH_PYTHON, or .venv/bin/python of the sources or beside the binary, or
/// python3. Never throws: a report without pictures is still a report. Ends the script after
/// `limit_seconds`.
Rendered render(const std::filesystem::path& figures, const std::vector<std::string>& formats,
                double limit_seconds = 180);

}  // namespace attnbench::reports
