#include "reports/page/page_parts.hpp"

namespace attnbench::reports {

const char* const page_style = R"css(
:root { color-scheme: light dark; --text: #1b1f24; --dim: #5b6570; --back: #ffffff;
  --panel: #f5f6f8; --line: #d8dce1; --link: #0060a0; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --dim: #a0a9b4; --back: #14171b; --panel: #1e2228; --line: #363c45;
    --link: #7cb7e8; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
h4 { font-size: 1rem; margin: 1rem 0 .25rem; }
a { color: var(--link); }
p { margin: .4rem 0; }
.dim, figcaption { color: var(--dim); font-size: .875rem; }
.note { background: var(--panel); border-left: 4px solid var(--bad); padding: .5rem .75rem; }
pre { background: var(--panel); padding: .6rem .75rem; overflow-x: auto; border-radius: 4px;
  font-size: .85rem; }
figure { margin: 1.5rem 0; }
figure .plot { width: 100%; min-height: 340px; }
figure .still { min-height: 0; }
figure img, figure svg { max-width: 100%; }
.still svg { height: auto; background: #fff; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; margin: .5rem 0; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.words td, .words th { text-align: left; white-space: normal; vertical-align: top; }
.words td:first-child { min-width: 9rem; }
.words td:nth-child(3), .words code { min-width: 14rem; display: table-cell; }
.bad { color: var(--bad); }
summary { cursor: pointer; margin: .5rem 0; }
code { font-size: .9em; overflow-wrap: break-word; }
.vega-embed { width: 100%; }
.vega-embed.has-actions { padding-right: 0 !important; }
.vega-embed.has-actions summary { top: -2.4rem !important; }
figure h4 { padding-right: 2.6rem; }
.vega-embed .vega-actions { top: 0 !important; }
#vg-tooltip-element table { margin: 0; }
#vg-tooltip-element td, #vg-tooltip-element th { border: 0; padding: 1px 4px; }
@media (max-width: 34rem) { body { padding: .6rem; } th, td { padding: .2rem .4rem; } }
)css";

const char* const page_script = R"js(
(function () {
  "use strict";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  // The palette of the specifications is made for white; this is its other half.
  var lighter = { "#0072b2": "#4aa8e0", "#d55e00": "#ff8a3d", "#009e73": "#2ecc9b",
    "#cc79a7": "#e5a3c6", "#b8860b": "#e0b040", "#56a0d3": "#8cc8f0", "#7f3c8d": "#c58ad2",
    "#6b7280": "#a8b0bd", "#8c564b": "#c9978b", "#3d7a1f": "#8ccf66" };
  function columns(width) { return Math.max(1, Math.floor(width / 190)); }
  function recoloured(value) {
    if (Array.isArray(value)) return value.map(recoloured);
    if (value && typeof value === "object") {
      var copy = {};
      Object.keys(value).forEach(function (key) { copy[key] = recoloured(value[key]); });
      return copy;
    }
    return dark.matches && lighter[value] ? lighter[value] : value;
  }
  function restyle(spec, width) {
    var ink = dark.matches ? "#e4e7eb" : "#1b1f24", line = dark.matches ? "#363c45" : "#dfe3e8";
    spec.background = "transparent";
    Object.assign(spec.config.axis, { labelColor: ink, titleColor: ink, domainColor: line,
      tickColor: line, gridColor: line });
    Object.assign(spec.config.legend, { labelColor: ink, titleColor: ink,
      symbolBaseFillColor: ink, symbolBaseStrokeColor: ink,
      columns: columns(width), labelLimit: Math.min(260, width - 60) });
    if (width < 520) spec.height = 280;
    delete spec.title;    // the page says it in text that wraps
    delete spec.$schema;  // any version that the bundle holds will do
  }
  function draw(place) {
    var spec = recoloured(JSON.parse(document.getElementById(place.dataset.spec).textContent));
    var width = place.clientWidth;
    restyle(spec, width);
    place.dataset.columns = columns(width);
    vegaEmbed(place, spec, { mode: "vega-lite", renderer: "svg",
      tooltip: { theme: dark.matches ? "dark" : "light" },
      actions: { export: true, source: true, compiled: false, editor: false }
    }).catch(function (error) { place.textContent = "This figure could not be drawn: " + error; });
  }
  var places = Array.prototype.slice.call(document.querySelectorAll(".plot[data-spec]"));
  places.forEach(draw);
  dark.addEventListener("change", function () { places.forEach(draw); });
  var waiting = 0;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      places.forEach(function (place) {
        if (String(columns(place.clientWidth)) !== place.dataset.columns) draw(place);
      });
    }, 200);
  });
})();
)js";

}  // namespace attnbench::reports
