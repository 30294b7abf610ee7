// Text made safe for the language it is put into.
#pragma once

#include <string>

namespace attnbench::reports {

std::string escape_html(const std::string& text);
std::string escape_latex(const std::string& text);
std::string escape_markdown(const std::string& text);
/// A field of a CSV line, quoted where it must be.
std::string escape_csv(const std::string& text);

}  // namespace attnbench::reports
