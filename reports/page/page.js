(function () {
  "use strict";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var lighter = JSON.parse(document.getElementById("dark-colours").textContent);
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
  // A facet has no width of its own: as many beside each other as fit, each as wide as that lets it.
  function refit(spec, width) {
    if (!spec.usermeta || !spec.usermeta.fluid) {  // of a size of their own
      spec.columns = Math.max(1, Math.floor(width / 280));
      return;
    }
    var axes = 60, between = 24;
    var scopes = spec.facet.column && (spec.facet.column.sort || []).length;
    var beside = scopes || Math.max(1, Math.min(spec.columns || 3, Math.floor((width - axes) / 140)));
    if (spec.columns) spec.columns = beside;
    spec.spec.width = Math.max(90, Math.floor((width - axes - between * (beside - 1)) / beside));
  }
  function restyle(spec, width) {
    var ink = dark.matches ? "#e4e7eb" : "#1b1f24", line = dark.matches ? "#363c45" : "#dfe3e8";
    spec.background = "transparent";
    Object.assign(spec.config.axis, { labelColor: ink, titleColor: ink, domainColor: line,
      tickColor: line, gridColor: line });
    spec.config.header = { labelColor: ink, titleColor: ink };
    Object.assign(spec.config.legend, { labelColor: ink, titleColor: ink,
      symbolBaseFillColor: ink, symbolBaseStrokeColor: ink,
      columns: columns(width), labelLimit: Math.min(260, width - 60),
      layout: { bottom: { anchor: "start",  // two legends have no room side by side on a phone
        direction: width < 520 ? "vertical" : "horizontal" } } });
    if (spec.config.axisY) spec.config.axisY.labelLimit = Math.max(90, Math.min(300, width * 0.4));
    if (spec.facet) refit(spec, width);
    else if (width < 520 && typeof spec.height === "number") spec.height = 280;
    delete spec.title;    // the page says it in text that wraps
    delete spec.$schema;  // any version that the bundle holds will do
  }
  // What a new width has to change before a figure is drawn again; Vega widens all but facets itself.
  function fit(place) {
    return place.dataset.facet ? place.clientWidth : columns(place.clientWidth);
  }
  // What is saved stands alone: with the title and the line of machine and date that the page has
  // as text, on white, at its own size.
  function save(place, kind) {
    var text = document.getElementById(place.dataset.spec).textContent, spec = JSON.parse(text);
    if (spec.width === "container") spec.width = 640;
    var hidden = document.createElement("div");
    var loaded = vegaEmbed(hidden, spec, { mode: "vega-lite", renderer: "svg", actions: false });
    return loaded.then(function (drawn) {
      return drawn.view.toImageURL(kind, 2).then(function (address) {
        var link = document.createElement("a");
        link.href = address;
        link.download = place.dataset.name + "." + kind;
        link.click();
        drawn.finalize();
      });
    });
  }
  function addSaving(place) {
    var menu = place.querySelector(".vega-actions");
    if (!menu) return;
    ["png", "svg"].forEach(function (kind) {
      var link = document.createElement("a");
      link.href = "#";
      link.textContent = "Save as " + kind.toUpperCase();
      link.addEventListener("click", function (event) {
        event.preventDefault();
        save(place, kind);
      });
      menu.insertBefore(link, menu.firstChild);
    });
  }
  // The mark of a crossing, of which the command that measures around it is known.
  function crossingOf(element) {
    var item = element && element.__data__;
    return item && item.datum && item.datum.command ? item.datum : null;
  }
  var box = null;
  function closeBox() {
    if (!box) return;
    var opener = box.opener;
    box.element.remove();
    box = null;
    opener.focus();
  }
  function textElement(name, text) {
    var element = document.createElement(name);
    element.textContent = text;
    return element;
  }
  // Shows the commands of these marks below the first, over what the figure has there.
  function openBox(marks) {
    var figure = marks[0].closest("figure"), element = document.createElement("div");
    closeBox();
    element.className = "around";
    element.setAttribute("role", "dialog");
    element.setAttribute("aria-label", "Commands that measure around crossings");
    marks.map(crossingOf).forEach(function (crossing) {
      element.appendChild(textElement("p", crossing.series + " is " + crossing.said + "; to measure there:"));
      element.appendChild(textElement("pre", crossing.command));
      element.appendChild(window.attnbenchCopyButton("Copy", function () { return crossing.command; }));
    });
    var close = textElement("button", "Close");
    close.type = "button";
    close.className = "copy";
    close.addEventListener("click", closeBox);
    element.appendChild(close);
    element.style.top =
      marks[0].getBoundingClientRect().bottom - figure.getBoundingClientRect().top + 8 + "px";
    figure.appendChild(element);
    box = { element: element, opener: marks[0] };
    element.querySelector("button").focus();
  }
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") closeBox(); });
  document.addEventListener("click", function (event) {
    if (box && !event.target.closest(".around, .crossing")) closeBox();
  });
  // Rings are reached by the keyboard as they are by a pointer.
  function openCrossings(place) {
    place.querySelectorAll(".mark-symbol path").forEach(function (mark) {
      var crossing = crossingOf(mark);
      if (!crossing) return;
      place.setAttribute("role", "group");  // what is in a picture cannot be reached
      mark.setAttribute("tabindex", "0");
      mark.setAttribute("role", "button");
      mark.removeAttribute("aria-roledescription");
      mark.setAttribute("aria-label", crossing.series + " is " + crossing.said +
        ": show the command that measures there");
      mark.classList.add("crossing");
      mark.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        openBox([mark]);
      });
    });
  }
  function draw(place) {
    var spec = recoloured(JSON.parse(document.getElementById(place.dataset.spec).textContent));
    var width = place.clientWidth;
    restyle(spec, width);
    place.dataset.facet = spec.facet ? "yes" : "";
    place.dataset.fit = fit(place);
    vegaEmbed(place, spec, { mode: "vega-lite", renderer: "svg",
      tooltip: { theme: dark.matches ? "dark" : "light" },
      actions: { export: false, source: true, compiled: false, editor: false }
    }).then(function () { addSaving(place); openCrossings(place); highlight(); }).catch(function (error) {
      place.textContent = "This figure could not be drawn: " + error;
    });
  }
  // What a mark shows: the series of its row; the entry of a legend, where that is one of series.
  var known = {};
  function seriesOf(element) {
    var item = element && element.__data__;  // Vega's; of a line the first of its points
    if (Array.isArray(item)) item = item[0];
    var row = item && item.datum;
    if (!row) return null;
    if (row.series !== undefined) {
      known[row.series] = true;
      return row.series;
    }
    return known[row.value] && element.closest(".role-legend-entry") ? row.value : null;
  }
  // The chosen series stand out in all figures of the page; with none chosen all are equal.
  var hovered = null, kept = [];
  function highlight() {
    var chosen = hovered === null ? kept : kept.concat([hovered]);
    document.querySelectorAll(".plot svg path, .plot svg line, .plot svg text").forEach(function (element) {
      var series = seriesOf(element);
      if (series === null) return;
      var faded = chosen.length > 0 && chosen.indexOf(series) < 0;
      element.style.opacity = faded ? 0.1 * (element.getAttribute("opacity") || 1) : "";
    });
    document.querySelectorAll("table[data-copy] tr").forEach(function (row) {
      row.classList.toggle("chosen", chosen.indexOf(row.cells[0].textContent) >= 0);
    });
  }
  function choose(series) {
    if (series === hovered) return;
    hovered = series;
    highlight();
  }
  function listen(place) {
    place.addEventListener("mouseover", function (event) { choose(seriesOf(event.target)); });
    place.addEventListener("mouseleave", function () { choose(null); });
    place.addEventListener("click", function (event) {
      if (event.target.classList.contains("crossing")) {
        // Rings may lie over each other; a click that no pointer made has no place.
        var rings = document.elementsFromPoint(event.clientX, event.clientY).filter(function (one) {
          return one.classList.contains("crossing");
        });
        openBox(rings.length ? rings : [event.target]);
        return;
      }
      var series = seriesOf(event.target);
      if (series === null) return;
      var others = kept.filter(function (one) { return one !== series; });
      if (event.shiftKey) kept = others.length < kept.length ? others : kept.concat([series]);
      else kept = [series];
      highlight();
    });
    place.addEventListener("dblclick", function () { kept = []; highlight(); });
  }
  // A page of sixty figures opens at once: each is drawn when it comes near to the window.
  var places = Array.prototype.slice.call(document.querySelectorAll(".plot[data-spec]"));
  function drawOnce(place) {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    draw(place);
  }
  var near = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) return;
      near.unobserve(entry.target);
      drawOnce(entry.target);
    });
  }, { rootMargin: "800px 0px" });
  places.forEach(function (place) { listen(place); near.observe(place); });
  window.addEventListener("beforeprint", function () { places.forEach(drawOnce); });
  function drawn() { return places.filter(function (place) { return place.dataset.drawn; }); }
  dark.addEventListener("change", function () { drawn().forEach(draw); });
  document.querySelectorAll("table[data-copy] tr").forEach(function (row) {
    row.addEventListener("mouseenter", function () {
      if (row.cells[0].tagName === "TD") choose(row.cells[0].textContent);
    });
    row.addEventListener("mouseleave", function () { choose(null); });
  });
  var waiting = 0;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      drawn().forEach(function (place) {
        if (String(fit(place)) !== place.dataset.fit) draw(place);
      });
    }, 200);
  });
})();
