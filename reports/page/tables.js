(function () {
  "use strict";
  var units = { s: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6, ns: 1e-9, B: 1, KiB: 1024, MiB: 1048576,
    GiB: 1073741824, TiB: 1099511627776, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  // The number that a cell begins with, in its unit; null for words and for nothing.
  function valueOf(text) {
    var found = /^(-?[\d.,]+(?:e[-+]?\d+)?)\s*([A-Za-zµ]*)/.exec(text.trim());
    if (!found) return null;
    var number = parseFloat(found[1].replace(/,/g, ""));
    return isNaN(number) ? null : number * (units[found[2]] || 1);
  }
  function compare(a, b, column) {
    var left = a.cells[column].textContent, right = b.cells[column].textContent;
    if (column === 0) return left.localeCompare(right, undefined, { numeric: true });
    var x = valueOf(left), y = valueOf(right);
    if (x === null || y === null) return (x === null) - (y === null);  // numbers first
    return x - y;
  }
  function sort(table, head, column) {
    var down = head.getAttribute("aria-sort") === "ascending";
    var rows = Array.prototype.slice.call(table.rows, 1);
    rows.sort(function (a, b) { return compare(a, b, column) * (down ? -1 : 1); });
    Array.prototype.forEach.call(table.rows[0].cells, function (other) {
      other.removeAttribute("aria-sort");
    });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.forEach(function (row) { row.parentNode.appendChild(row); });
  }
  function makeSortable(table) {
    Array.prototype.forEach.call(table.rows[0].cells, function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.title = "Sort by this column";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(table, head, column); });
    });
  }
  function makeFilter(place) {
    var field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter the tables by name";
    field.setAttribute("aria-label", "Filter the tables by name");
    place.appendChild(field);
    field.addEventListener("input", function () {
      var wanted = field.value.toLowerCase();
      place.parentNode.querySelectorAll("table.sortable").forEach(function (table) {
        Array.prototype.slice.call(table.rows, 1).forEach(function (row) {
          row.hidden = row.cells[0].textContent.toLowerCase().indexOf(wanted) < 0;
        });
      });
    });
  }
  function texts(table) {
    return Array.prototype.map.call(table.rows, function (row) {
      return Array.prototype.map.call(row.cells, function (cell) {
        return cell.textContent.trim();
      });
    });
  }
  function quoted(text) { return /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text; }
  var special = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}", "µ": "$\\mu$",
    "<": "\\textless{}", ">": "\\textgreater{}" };
  function latex(text) {
    return text.replace(/[\\~^µ<>&%$#_{}]/g, function (one) { return special[one] || "\\" + one; });
  }
  var forms = {
    Markdown: function (rows) {
      var lines = rows.map(function (row) {
        return "| " + row.map(function (one) { return one.replace(/[|*_<\\]/g, "\\$&"); }).join(" | ") + " |";
      });
      lines.splice(1, 0, "|" + rows[0].map(function (one, i) { return i ? "--:" : ":--"; }).join("|") + "|");
      return lines.join("\n");
    },
    LaTeX: function (rows) {
      return rows.map(function (row) { return row.map(latex).join(" & ") + " \\\\"; }).join("\n");
    },
    CSV: function (rows) {
      return rows.map(function (row) { return row.map(quoted).join(","); }).join("\n");
    }
  };
  function copyButton(words, text) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = words;
    button.addEventListener("click", function () {
      var copied = navigator.clipboard ? navigator.clipboard.writeText(text()) : Promise.reject();
      copied.then(function () {
        button.textContent = "copied";
      }, function () { button.textContent = "not allowed here"; }).then(function () {
        setTimeout(function () { button.textContent = words; }, 1500);
      });
    });
    return button;
  }
  function addCopying(table) {
    var place = document.createElement("p");
    place.className = "dim";
    Object.keys(forms).forEach(function (form) {
      place.appendChild(copyButton("Copy as " + form, function () { return forms[form](texts(table)); }));
    });
    table.parentNode.parentNode.insertBefore(place, table.parentNode.nextSibling);
  }
  window.attnbenchCopyButton = copyButton;  // for page.js
  document.querySelectorAll("table[data-copy]").forEach(addCopying);
  document.querySelectorAll("pre[data-copy]").forEach(function (text) {
    text.parentNode.insertBefore(copyButton("Copy", function () { return text.textContent; }), text);
  });
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll("[data-filter]").forEach(makeFilter);
})();
