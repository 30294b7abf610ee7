// The fixed text of the page: its style and its script.
#pragma once

namespace attnbench::reports {

/// CSS for light and dark, wide and narrow.
extern const char* const page_style;

/// Draws every figure into its place with the bundle's vegaEmbed: again when the reader's theme or
/// the page's width class changes.
extern const char* const page_script;

}  // namespace attnbench::reports
