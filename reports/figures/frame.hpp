// The frame of every figure: fonts, sizes, the legend's place, lines of a subtitle.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::reports {

/// Vega-Lite's `config` of all figures.
nlohmann::json frame_config();

/// `text` as lines of at most `width` columns, broken after commas, semicolons and full stops.
nlohmann::json wrapped_lines(const std::string& text, std::size_t width = 90);

}  // namespace attnbench::reports
