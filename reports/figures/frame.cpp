#include "reports/figures/frame.hpp"

#include <algorithm>

#include "core/text/format.hpp"

namespace attnbench::reports {

using Json = nlohmann::json;

Json frame_config() {
  return {
      {"font", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"},
      {"view", {{"continuousWidth", 640}, {"stroke", nullptr}}},
      {"title", {{"anchor", "start"}, {"fontSize", 15}, {"subtitleFontSize", 11}, {"offset", 12}}},
      {"axis", {{"labelFontSize", 11}, {"titleFontSize", 12}, {"titleFontWeight", "normal"}}},
      {"legend",
       {{"orient", "bottom"},
        {"columns", 3},
        {"labelLimit", 260},
        {"labelFontSize", 11},
        {"symbolSize", 70}}}};
}

Json wrapped_lines(const std::string& text, std::size_t width) {
  Json lines = Json::array();
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t mark = text.find_first_of(",;.", begin);
    const std::size_t end =
        mark == std::string::npos ? text.size() : std::min(mark + 2, text.size());
    const std::string piece = text.substr(begin, end - begin);
    if (!line.empty() && result::display_width(line + piece) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += piece;
    begin = end;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace attnbench::reports
