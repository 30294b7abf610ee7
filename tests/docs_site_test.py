#!/usr/bin/env python3
"""Builds the site of docs/ and reads it: each mechanism has its page, each link and anchor leads
somewhere, and nothing is loaded from another host.

    docs_site_test.py PROGRAM      PROGRAM: the built attnbench

What it needs comes from PyPI. Where that cannot be had it ends with 77, after a line with the
reason; with CI set that is a failure.
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/site"))
import build  # noqa: E402

PROGRAM, SITE = pathlib.Path(), pathlib.Path()


class Page(html.parser.HTMLParser):
    """What a page loads, where its links lead, its anchors and its text."""

    LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors, self.text = [], [], set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id") or attributes.get("name"))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(attributes["href"])
        elif attributes.get(self.LOADED.get(tag)):
            self.loads.append(attributes[self.LOADED[tag]])
        self.loads += re.findall(r"url\((.*?)\)", attributes.get("style") or "")

    def handle_data(self, data):
        self.text += data


def elsewhere(address):
    return re.match(r"(?!data:)\w+:|//", address.strip("'\" ")) is not None


def nowhere(pages, folder):
    """["PAGE: LINK", …] of the links within the site that lead to no file or no anchor; `pages` by path."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            to = pathlib.Path(os.path.normpath(path.parent / target)) if target else path
            there = anchor in pages[to].anchors | {""} if to in pages else to.is_relative_to(folder) and to.exists()
            if not elsewhere(link) and not there:
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


class Site(unittest.TestCase):
    def setUp(self):
        self.pages = {file: Page(file.read_text(encoding="utf-8")) for file in SITE.rglob("*.html")
                      if file.name != "404.html"}  # which is shown at any address

    def test_every_mechanism_has_a_page_with_all_that_is_said_of_it(self):
        said = json.loads(subprocess.run([PROGRAM, "list", "mechanisms", "--json"], check=True, cwd=ROOT,
                                         capture_output=True, text=True).stdout)
        self.assertGreater(len(said), 10)
        for one in said:
            text = self.pages[SITE / f"mechanisms/{one['name']}.html"].text
            names = [each["name"] for part in ("options", "implementations", "roles", "aliases") for each in one[part]]
            departures = [each["what"].replace("`", "") for each in one["differs_from"]]
            definition = (ROOT / f"attention/mechanisms/{one['name']}.cpp").read_text().splitlines()[0][3:]
            for word in [one["citation"], *one["formula"].splitlines(), definition, *names, *one["claims"], *departures]:
                self.assertTrue(word in text, f"{one['name']}: {word}")
        latte = self.pages[SITE / "mechanisms/latte.html"]
        self.assertIn("../reports/gallery/latte_v1_figure_2.svg", latte.loads)
        self.assertTrue("Latte produces the next token faster than standard attention" in latte.text)

    def test_every_public_name_of_the_package_is_there(self):
        sys.path.insert(0, str(ROOT / "python/src"))
        import attnbench

        anchors = self.pages[SITE / "python_api.html"].anchors
        for home, names in attnbench._HOMES.items():
            self.assertLessEqual({f"attnbench.{home}.{name}" for name in names}, anchors)

    def test_every_link_leads_somewhere(self):
        self.assertEqual(nowhere(self.pages, SITE), [])
        self.assertGreater(sum(len(page.links) for page in self.pages.values()), 1000)

    def test_links_that_lead_nowhere_are_seen(self):
        one, other = SITE / "one.html", SITE / "suites.html"
        links = "".join(f'<a href="{link}">' for link in (
            "suites.html", "suites.html#here", "#mine", "https://example.org/x", "suites.html#gone", "gone.html", "#gone", "../gone"))
        pages = {one: Page(f'<p id="mine">{links}'), other: Page('<p id="here">')}
        self.assertEqual([line.split()[1] for line in nowhere(pages, SITE)],
                         ["suites.html#gone", "gone.html", "#gone", "../gone"])

    def test_a_page_and_links_that_lead_nowhere_end_the_build(self):
        copy = SITE.parent / "copy"
        for name in ("attention", "docs", "harness", "python", "reports", "suites", "tasks", "tests", "core/claims.hpp",
                     "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "README.md"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, copy / name)
        (copy / "build").mkdir()
        (copy / "build/docs_venv").symlink_to(build.ENVIRONMENT)
        with (copy / "docs/cuda.md").open("a") as file:
            file.write("[a](gone.md) [b](glossary.md#gone) [c](../attention/gone.hpp)\n")
        (copy / "docs/nowhere_named.md").write_text("# A page\n")
        done = subprocess.run([sys.executable, copy / "docs/site/build.py", "--program", PROGRAM, "--build", copy / "site"],
                              cwd=copy, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        for word in ("gone.md", "glossary.md#gone", "../attention/gone.hpp", "nowhere_named.md"):
            self.assertTrue(word in done.stderr, f"{word}: {done.stderr}")
        self.assertEqual(done.stderr.count("WARNING"), 4, done.stderr)

    def test_nothing_is_loaded_from_another_host(self):
        self.assertEqual(Page('<script src="https://a/b.js"></script><img src="c.svg"><link rel="stylesheet" href="//d">').loads,
                         ["https://a/b.js", "c.svg", "//d"])
        for path, page in self.pages.items():
            self.assertEqual([address for address in page.loads if elsewhere(address)], [], path)
            self.assertNotIn("mermaid", page.text)  # whose script the theme would load
            for address in page.loads:
                file = path.parent / address.split("?")[0]
                self.assertTrue(address.startswith("data:") or file.exists(), f"{path}: {address}")
        for file in SITE.rglob("*.css"):
            self.assertNotRegex(file.read_text(encoding="utf-8"), r"(url\(|@import )['\"]?(https?:)?//")
        self.assertTrue(elsewhere("https://a/b.js") and elsewhere("//a/b.js") and not elsewhere("a/b.js"))

    def test_the_search_needs_no_server(self):
        index = (SITE / "search/search_index.js").read_text(encoding="utf-8")
        self.assertIn("mechanisms/latte.html", index)
        self.assertIn("site/iframe-worker.js", self.pages[SITE / "index.html"].loads)


def main():
    global PROGRAM, SITE
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    why = build.prepared()
    if why:
        print(f"the packages of docs/site/requirements.txt are not available: {why}")
        return 1 if os.environ.get("CI") else 77
    with tempfile.TemporaryDirectory() as folder:
        SITE = pathlib.Path(folder).resolve() / "site"
        why = build.build(PROGRAM, SITE)
        if why:
            print(why)
            return 1
        return 0 if unittest.main(exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
