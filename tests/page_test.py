#!/usr/bin/env python3
"""Opens pages of stored results in Chromium, as their readers do: what the first screen shows, hovering,
sorting by keyboard, copying, the dark theme, the width of a phone.

    page_test.py PROGRAM [--keep DIR] [--times]
        PROGRAM  the built attnbench
        --keep   screenshots for the eye are left there
        --times  prints how long pages take to open, and tests nothing

Chromium is Debian's, its driver PyPI's. Where one of them cannot be had it ends with 77, after a line
with the reason; with CI set that is a failure.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build/browser_venv"
sys.path.insert(0, str(ROOT / "docs/site"))
from build import prepared  # noqa: E402

WIDTHS = (1440, 390)
PAGES, HEALTHY, KEPT, BROWSER, PROGRAM = {}, [], None, None, None

# Of each mark of a series: how opaque it is drawn, by the page's choice.
OPACITIES = """(figure) => {
  const found = {};
  figure.querySelectorAll('svg path').forEach((mark) => {
    let item = mark.__data__;
    if (Array.isArray(item)) item = item[0];
    if (item && item.datum && item.datum.series) found[item.datum.series] = mark.style.opacity || '1';
  });
  return found;
}"""

# The menu's own entry, which is there when a figure can be used.
DRAWN = ".lead .vega-actions a:has-text('Save as PNG')"

# The words among a figure's marks, and which of them lie over each other.
OVERLAPS = """(figure) => {
  const texts = [...figure.querySelectorAll('svg .role-mark text')];
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const over = [];
  texts.forEach((text, i) => texts.slice(0, i).forEach((other, k) => {
    const across = Math.min(boxes[i].right, boxes[k].right) - Math.max(boxes[i].left, boxes[k].left);
    const along = Math.min(boxes[i].bottom, boxes[k].bottom) - Math.max(boxes[i].top, boxes[k].top);
    if (across > 1 && along > 2) over.push([text.textContent, other.textContent]);
  }));
  return [texts.map((text) => text.textContent), over];
}"""

# Texts whose contrast with what lies behind them is below 4.5 (WCAG 2, 1.4.3), with that contrast.
FAINT = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
  }).reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0.05);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = [];
  document.querySelectorAll('h1, h2, h3, h4, p, td, th, figcaption, a, button, pre, li').forEach((element) => {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest('.vega-actions, summary') || element.classList.contains('anchor')) return;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = Math.max(a, b) / Math.min(a, b);
    if (contrast < 4.5) faint.push([element.textContent.slice(0, 40), contrast]);
  });
  return faint;
}"""


def report_of(program, results, folder):
    subprocess.run([program, "report", *results, "--out", folder, "--format", "svg"],
                   check=True, stdout=subprocess.DEVNULL)
    return folder / "index.html"


def stored(suite):
    return ROOT / f"reports/gallery/{suite}.json"


def odd_results(folder):
    """A result of failures alone, and one with a label that would end an element."""
    failed, named = (json.loads(stored("quickstart").read_text(encoding="utf-8")) for _ in range(2))
    for cell in failed["attnbench"]["cells"]:
        cell.update(status="error", reason="<i>x</i>")
        for measured in ("timing", "memory", "metrics", "roofline", "primary"):
            cell.pop(measured, None)
    for cell in named["attnbench"]["cells"]:
        if cell["label"] == "latte":
            cell["label"] = '<b>"a|b"</b>'
    files = folder / "failed.json", folder / "named.json"
    for file, result in zip(files, (failed, named)):
        file.write_text(json.dumps(result), encoding="utf-8")
    return files


class Opened:
    """A page in a window of its own; complaints of its console are an error at the end."""

    def __init__(self, test, suite, width=1440, dark=False, waits=".plot svg"):
        self.test = test
        context = BROWSER.new_context(viewport={"width": width, "height": 900},
                                      color_scheme="dark" if dark else "light",
                                      permissions=["clipboard-read", "clipboard-write"])
        self.page, self.complaints = context.new_page(), []
        self.page.on("console", lambda said: self.complaints.append(said.text)
                     if said.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(PAGES[suite].as_uri())
        self.page.wait_for_selector(waits, timeout=60000)

    def __enter__(self):
        return self.page

    def __exit__(self, *error):
        if KEPT is not None and error[0] is None:
            self.page.screenshot(path=KEPT / f"{self.test.id().split('.')[-1]}_{self.page.viewport_size['width']}.png")
        self.page.context.close()
        if error[0] is None:
            self.test.assertEqual(self.complaints, [])


class PageTest(unittest.TestCase):
    def test_the_first_screen_answers(self):
        for suite in HEALTHY:
            with self.subTest(suite), Opened(self, suite) as page:
                for place in ("h1", ".lead .plot svg", ".ranked table", ".ranked table tr:nth-child(8)"):
                    box = page.locator(place).first.bounding_box()
                    self.assertLess(box["y"] + box["height"] if place != ".ranked table" else box["y"], 900, place)
                self.assertTrue(page.locator(".over").first.inner_text())
                shown = page.locator(".ranked th").all_inner_texts()
                self.assertEqual(shown[0].strip(), "mechanism")

    def test_no_page_is_wider_than_its_window(self):
        for suite in HEALTHY:
            for width in WIDTHS:
                with self.subTest(f"{suite} at {width}"), Opened(self, suite, width) as page:
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)

    def test_texts_can_be_read_in_both_themes(self):
        for dark in (False, True):
            with self.subTest(dark=dark), Opened(self, "quickstart", dark=dark) as page:
                self.assertEqual(page.evaluate(FAINT), [])
                lines = page.locator(".plot svg .mark-line path").evaluate_all(
                    "all => all.map(line => line.getAttribute('stroke'))")
                self.assertEqual("#1b1f24" in lines, not dark, "softmax is black on white alone")

    def test_a_line_that_is_pointed_at_stands_out_in_all_figures_and_in_the_table(self):
        with Opened(self, "quickstart") as page:
            page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # which draws all
            page.wait_for_function("document.querySelectorAll('.plot svg').length > 2", timeout=60000)
            figures = page.locator(".plot:has(svg)")
            label = page.locator(".lead svg text", has_text=re.compile("^latte$")).first

            def faded(number):
                marks = figures.nth(number).evaluate(OPACITIES)
                return {series for series, opacity in marks.items() if float(opacity) < 0.5}

            def expect(alone):
                for number in (0, 1):
                    others = set(figures.nth(number).evaluate(OPACITIES)) - {"latte"}
                    self.assertGreater(len(others), 3)
                    self.assertEqual(faded(number), others if alone else set())
            label.hover()
            expect(alone=True)
            self.assertEqual(page.locator(".ranked tr.chosen td").first.inner_text(), "latte")
            page.mouse.move(5, 5)
            expect(alone=False)
            label.click()
            page.mouse.move(5, 5)
            expect(alone=True)
            label.dblclick()
            page.mouse.move(5, 5)
            expect(alone=False)
            page.locator(".ranked td", has_text=re.compile("^latte$")).first.hover()
            expect(alone=True)

    def test_names_on_a_front_lie_over_no_other_words(self):
        for width in WIDTHS:
            for name in ("recall_accuracy_over_state", "recall_accuracy_over_time"):
                with self.subTest(f"{name} at {width}"), Opened(self, "equal_state", width) as page:
                    figure = page.locator(f'.plot[data-name="{name}"]')
                    figure.scroll_into_view_if_needed()
                    figure.locator("svg.marks").wait_for(timeout=60000)
                    words, over = figure.evaluate(OVERLAPS)
                    self.assertIn("softmax", words)
                    self.assertEqual(over, [])

    def test_a_ring_shows_the_command_that_measures_around_its_crossing(self):
        for width in WIDTHS:
            with self.subTest(width), Opened(self, "quickstart", width) as page:
                page.wait_for_selector(DRAWN, state="attached")
                rings, box = page.locator(".lead .crossing"), page.locator(".around")
                self.assertGreater(rings.count(), 1)
                self.assertEqual(box.count(), 0)
                labels = page.locator(".lead .plot").evaluate(OPACITIES)
                commands = rings.evaluate_all("all => all.map((ring) => ring.__data__.datum.command)")
                self.assertEqual(len(set(commands)), len(commands))
                rings.last.click()  # over others where there are any
                page.mouse.move(5, 5)
                self.assertEqual(page.locator(".lead .plot").evaluate(OPACITIES), labels, "no line is chosen")
                command = box.locator("pre").first.inner_text()
                self.assertEqual(command, commands[-1])
                self.assertRegex(command, r"^attnbench run suites/quickstart.json --profile quick --only .* --length ")
                box.locator(".copy", has_text=re.compile("^Copy$")).first.click()
                self.assertEqual(page.evaluate("navigator.clipboard.readText()"), command)
                place = box.bounding_box()
                self.assertLessEqual(place["x"] + place["width"], width)
                page.keyboard.press("Escape")
                self.assertEqual(box.count(), 0)
                self.assertTrue(rings.last.evaluate("ring => ring === document.activeElement"))
                rings.last.dispatch_event("click")  # as a reader of the screen does, without a pointer's place
                self.assertEqual(box.locator("pre").first.inner_text(), commands[-1])
                page.keyboard.press("Escape")
                for key in ("Enter", " "):
                    rings.first.focus()
                    page.keyboard.press(key)
                    self.assertEqual(box.locator("pre").all_inner_texts(), commands[:1])
                    self.assertEqual(page.evaluate("document.activeElement.textContent"), "Copy")
                    page.keyboard.press("Escape")
                # One that lies below others is shown with them.
                ring = rings.first.bounding_box()
                page.mouse.click(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
                self.assertIn(commands[0], box.locator("pre").all_inner_texts())
                page.locator("h1").first.click()
                self.assertEqual(box.count(), 0)

    def test_each_command_around_a_crossing_plans_its_lines_at_its_lengths(self):
        for suite in HEALTHY:
            with self.subTest(suite), Opened(self, suite) as page:
                page.wait_for_selector(DRAWN, state="attached")
                crossings = page.locator(".lead .crossing").evaluate_all(
                    "all => all.map((ring) => [ring.__data__.datum.series, ring.__data__.datum.x,"
                    " ring.__data__.datum.command])")
                self.assertTrue(crossings or suite != "quickstart")
                for label, length, command in crossings:
                    words = shlex.split(command)
                    self.assertEqual(words[:2] + words[-2:-1], ["attnbench", "run", "--rounds"])
                    self.assertGreaterEqual(int(words[-1]), 10)
                    plan = subprocess.run([PROGRAM, "plan", *words[2:-2], "--json"], cwd=ROOT, check=True,
                                          capture_output=True, text=True).stdout
                    cells = json.loads(plan)[0]["cells"]
                    lengths = [int(one) for one in words[words.index("--length") + 1].split(",")]
                    self.assertTrue(lengths[0] < length < lengths[-1], command)
                    own = [cell["settings"]["length"] for cell in cells if cell["label"] == label]
                    self.assertEqual(own, lengths)
                    others = {cell["mechanism"] for cell in cells if cell["label"] != label}
                    self.assertEqual(others, {"softmax"})
                    self.assertEqual(len({cell["task_label"] for cell in cells}), 1)

    def test_a_line_of_times_is_printed_for_each_page(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            print_times()
        self.assertEqual([line.split(":")[0] for line in printed.getvalue().splitlines()], list(PAGES))

    def test_tables_are_sorted_by_keyboard(self):
        with Opened(self, "quickstart") as page:
            head = page.locator(".ranked th button", has_text="workspace").first
            head.focus()
            page.keyboard.press("Enter")
            self.assertEqual(page.locator(".ranked tr:nth-child(2) td").first.inner_text(), "perceiver")
            page.keyboard.press("Enter")
            self.assertEqual(page.locator(".ranked tr:nth-child(2) td").first.inner_text(), "softmax, naive")
            self.assertEqual(page.locator(".ranked th[aria-sort=descending]").count(), 1)

    def test_tables_and_the_command_are_copied(self):
        with Opened(self, "quickstart") as page:
            forms = {}
            for form in ("Markdown", "LaTeX", "CSV"):
                page.locator(".copy", has_text=f"Copy as {form}").first.click()
                forms[form] = page.evaluate("navigator.clipboard.readText()")
            self.assertRegex(forms["Markdown"], r"^\| mechanism \| time .*\n\|:--\|--:")
            self.assertIn("\n\"softmax, naive\",", forms["CSV"])
            self.assertRegex(forms["LaTeX"], r"rg\\_lru & .*\\\\")
            page.locator(".copy", has_text=re.compile("^Copy$")).first.click()
            self.assertTrue(page.evaluate("navigator.clipboard.readText()").startswith("attnbench run"))

    def test_figures_are_drawn_when_they_come_near(self):
        with Opened(self, "equal_state") as page:
            places = page.locator(".plot").count()
            self.assertLess(page.locator(".plot svg").count(), places)
            page.mouse.move(700, 450)
            drawn = page.locator(".plot svg").count()
            for _ in range(20):
                page.mouse.wheel(0, 900)
                page.wait_for_timeout(100)
                if page.locator(".plot svg").count() > drawn:
                    break
            self.assertGreater(page.locator(".plot svg").count(), drawn)
            page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
            page.wait_for_function(f"document.querySelectorAll('.plot svg').length >= {places}", timeout=120000)

    def test_results_of_failures_and_hostile_labels_have_a_page(self):
        with Opened(self, "odd", waits=".ranked, h1") as page:
            self.assertEqual(page.locator("h1").count(), 3)  # two results on one page, before them side by side
            self.assertEqual(page.locator("b, script[src]").count(), 0)
            self.assertIn('<b>"a|b"</b>', page.locator("body").inner_text())
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 1440)


def print_times():
    """Seconds until the page's text is painted, until its first figure is drawn (where there is one on the first
    screen) and until the page answers."""
    for suite, file in PAGES.items():
        page = BROWSER.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_selector(".plot svg" if suite in HEALTHY else "h1", timeout=120000)
        page.wait_for_load_state("load")
        figure = page.evaluate("performance.now()")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        answers = page.evaluate("new Promise(done => setTimeout(() => done(performance.now()), 0))")
        first = f"first figure {figure:.0f} ms, " if suite in HEALTHY else ""
        print(f"{suite}: {file.stat().st_size / 1e6:.1f} MB, painted after {paint:.0f} ms, "
              f"{first}answers {answers:.0f} ms, {page.locator('.plot').count()} figures")
        page.context.close()


def main():
    global KEPT, BROWSER, PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--times", action="store_true")
    arguments, rest = parser.parse_known_args()
    python, chromium = ENVIRONMENT / "bin/python", shutil.which("chromium")
    why = "there is no chromium (Debian's package of that name)" if chromium is None else prepared(
        ENVIRONMENT, ROOT / "tests/browser_requirements.txt")
    if why:
        print(f"what opens pages is not available: {why}")
        return 1 if os.environ.get("CI") else 77
    if pathlib.Path(sys.prefix) != ENVIRONMENT:
        os.execv(python, [python, __file__, *sys.argv[1:]])
    from playwright.sync_api import sync_playwright
    KEPT, PROGRAM = arguments.keep, arguments.program
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        for suite in ("quickstart", "equal_state", "latte_v1_figure_2"):
            # The path stands on the page: a long one has to break there.
            deep = pathlib.Path(folder) / ("a" * 120)
            deep.mkdir(exist_ok=True)
            result = pathlib.Path(shutil.copy(stored(suite), deep))
            PAGES[suite] = report_of(arguments.program, [result], pathlib.Path(folder) / suite)
        HEALTHY.extend(PAGES)
        PAGES["odd"] = report_of(arguments.program, odd_results(pathlib.Path(folder)), pathlib.Path(folder) / "odd")
        # Only root has to do without the sandbox.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        BROWSER = driver.chromium.launch(executable_path=chromium, args=sandbox)
        if arguments.times:
            print_times()
            return 0
        done = unittest.main(argv=[sys.argv[0], *rest], exit=False)
        BROWSER.close()
        return 0 if done.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
