// Facts of a result as HTML: how, where and by what it was measured.
#pragma once

#include <string>

#include "core/result/document.hpp"

namespace attnbench::reports {

/// The element "<name attributes>text</name>", with `text` escaped.
std::string element(const std::string& name, const std::string& text,
                    const std::string& attributes = "");

/// The machine and the time of a run: "a CPU, 2 threads, host, 2026-…".
std::string machine_line(const result::Result& result);

/// The command, the ceilings, the machine card and the provenance.
std::string facts_html(const result::Result& result);

/// "1.30 T FLOP/s" for a ceiling by the unit in its name.
std::string ceiling_text(const std::string& name, double value);

}  // namespace attnbench::reports
