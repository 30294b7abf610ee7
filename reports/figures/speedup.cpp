#include "reports/figures/speedup.hpp"

#include <cstdio>
#include <map>

#include "reports/figures/legend.hpp"
#include "reports/figures/lines.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

std::string times_words(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g times", ratio);
  return text;
}

Scale ratio_scale(const std::vector<double>&) { return {1, "times"}; }

/// The baseline's times by place on the axis.
std::map<std::string, Measured> baseline_of(const Panel& panel, const std::string& series,
                                            const Quantity& time) {
  std::map<std::string, Measured> times;
  for (const Placed& placed : panel.cells) {
    if (placed.series != series || !placed.x) continue;
    if (const auto measured = time(*placed.cell)) times[placed.x->dump()] = *measured;
  }
  return times;
}

}  // namespace

std::optional<Figure> speedup_figure(const Panel& panel, const std::vector<std::string>& order,
                                     const std::vector<PublishedRow>& published,
                                     const std::string& timing) {
  if (order.empty()) return std::nullopt;
  const Quantity time = time_quantity(timing);
  const auto baseline = baseline_of(panel, order.front(), time);
  std::map<const Json*, Measured> ratios;
  bool any = false;
  for (const Placed& placed : panel.cells) {
    const auto measured = time(*placed.cell);
    const auto found = placed.x ? baseline.find(placed.x->dump()) : baseline.end();
    if (!measured || found == baseline.end()) continue;
    const Measured& base = found->second;
    const bool own = placed.series == order.front();
    ratios[placed.cell] = own ? Measured{1, 1, 1, ""}
                              : Measured{base.value / measured->value, base.low / measured->high,
                                         base.high / measured->low, measured->interval};
    any = any || !own;
  }
  if (!any) return std::nullopt;
  LineRequest request;
  request.published = published_speedups(published, panel);
  request.what = timing.empty() ? "speedup" : timing + "_speedup";
  request.title = timing.empty() ? "Speedup over " + order.front()
                                 : "Speedup of " + timing + " over " + order.front();
  request.axis = "speedup over " + order.front();
  request.caption = "The median time of " + order.front() +
                    " over that of each; bars and bands: the quotient of the intervals." +
                    disturbed_words(panel);
  request.quantity = [ratios](const Json& cell) -> std::optional<Measured> {
    const auto found = ratios.find(&cell);
    if (found == ratios.end()) return std::nullopt;
    return found->second;
  };
  request.scale = ratio_scale;
  request.words = times_words;
  return line_figure(panel, order, request);
}

}  // namespace attnbench::reports
