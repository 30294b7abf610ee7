"""MkDocs' hook: what of the site is not written by hand. A page for each mechanism (mechanism.md.jinja)
from what the program says of it and from the gallery, the Python API, notebooks, figures below pages
whose headings name suites, documents outside of docs/, and links that hold in all of them."""

import functools
import html
import itertools
import json
import os
import pathlib
import posixpath
import re
import sys

import jinja2
import latex2mathml.converter
import markdown
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "python/src")]
import attnbench  # noqa: E402
import blocks  # noqa: E402

PROGRAM = os.environ.get("ATTNBENCH_PROGRAM", str(ROOT / "build/release/bin/attnbench"))
# Documents that are pages as well, and files that documents link to and show. docs/X is X; the others
# keep their paths, but for the README, which is the first page.
OUTSIDE = ["*.md", *(f"{folder}/**/*.md" for folder in ("attention", "harness", "reports", "suites", "tests"))]
SHOWN = ["CITATION.cff", "suites/*.json", "suites/claims/*.json", "suites/form/*.json", "reports/gallery/*.svg",
         "reports/machines/*.json",
         "harness/program/compare/*.svg"]


def ask(*words):
    return json.loads(blocks.call(PROGRAM, *words, "--json"))


@functools.cache
def mechanisms():
    return ask("list", "mechanisms")


@functools.cache
def index():
    return blocks.Index(PROGRAM)


def planned():
    """{mechanism: cells}, their costs among what is forecast of them; causal, else bidirectional."""
    found = {}
    for pattern in ("causal", "bidirectional"):
        names = [one["name"] for one in mechanisms() if one["name"] not in found]
        for cell in ask("plan", *names, "--length", "1024,16384", "--set", f"pattern={pattern}")[0]["cells"]:
            if cell["forecast"]["supported"]:
                found.setdefault(cell["mechanism"], []).append(cell)
    return found


@functools.cache
def labels(suite):
    """{label: mechanism} of a suite's stored result; nothing where there is none."""
    file = blocks.GALLERY / f"{suite}.json"
    if not file.exists():
        return {}
    cells = json.loads(file.read_text(encoding="utf-8"))["attnbench"]["cells"]
    return {cell["label"]: cell["mechanism"] for cell in cells}


def labels_in(predicate):
    """The labels that a claim's predicate names."""
    return set(re.findall(r'"label": "(.*?)"', json.dumps(predicate, ensure_ascii=False)))


def pictures(fits):
    """The gallery's pictures of the suites that fit, each with its caption below."""
    return "".join(
        f"![{one['alt']}](/reports/gallery/{one['file']}.svg)\n\n*{index().titled(one['suite'], one['caption'])}*: "
        f"[`{one['suite']}`](/suites/{one['suite']}.json)\n\n"
        for one in index().pictures
        if fits(one["suite"]) and (blocks.GALLERY / f"{one['file']}.svg").exists())


def comment_of(path):
    """The comment that a source begins with."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return "\n".join(line[3:] for line in itertools.takewhile(lambda line: line.startswith("//"), lines))


def growth(claimed, what):
    """`T L` of the exponents that an implementation claims."""
    sizes = {"T": "length", "L": "latents", "D": "head_dim"}
    powers = {letter: claimed.get(f"{what}_in_{size}", 0) for letter, size in sizes.items()}
    return " ".join(f"{letter}^{power:g}".removesuffix("^1") for letter, power in powers.items() if power) or "1"


def mechanism_pages():
    """{page: its Markdown}: one of all mechanisms, one of each."""
    loader = jinja2.Environment(loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), trim_blocks=True,
                                lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    properties = re.findall(r"^  bool (\w+) = true; *///< (.*)$", (ROOT / "core/claims.hpp").read_text(), re.MULTILINE)
    # A table's cell: one line, its bars escaped.
    loader.filters["cell"] = lambda value: str(value).replace("|", "\\|") or "–"
    pages = {"mechanisms/index.md": loader.get_template("mechanisms.md.jinja").render(mechanisms=mechanisms())}
    claims, cells = ask("figures", "--claims"), planned()
    for one in mechanisms():
        name = one["name"]
        sources = [f"attention/{folder}/{name}.cpp" for folder in ("mechanisms", "reference")]
        said = [claim for claim in claims if not claim.get("not_run") and name in map(
            labels(claim["suite"]).get, labels_in(claim["predicate"]))]
        pages[f"mechanisms/{name}.md"] = loader.get_template("mechanism.md.jinja").render(
            one=one, growth=growth, properties=dict(properties), cells=cells.get(name, []),
            definitions={path: comment_of(path) for path in sources if (ROOT / path).exists()},
            figures=pictures(lambda suite: name in labels(suite).values()),
            claims="".join(blocks.claim_row(claim, ROOT / "docs/mechanisms/x.md") for claim in said))
    return pages


def api_page():
    text = "# Python API\n\nThe public names of the package `attnbench`. [A guide with examples](python_package.md).\n\n"
    for home, names in attnbench._HOMES.items():
        text += f"## {home}\n\n" + "".join(f"::: attnbench.{home}.{name}\n\n" for name in names)
    return text


def notebook_page(file):
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) if cell["cell_type"] == "markdown"
                       else "```python\n" + "".join(cell["source"]) + "\n```" for cell in cells)


class Ours(markdown.Extension):
    """Fences the examples of docstrings; leads links to where the site has what they name, else to the
    repository, else nowhere."""

    def __init__(self):
        super().__init__()
        self.repository, self.page, self.site = "", "", {}  # the page that is read, and all, by their sources

    def extendMarkdown(self, md):
        examples, links = markdown.preprocessors.Preprocessor(md), markdown.treeprocessors.Treeprocessor(md)
        examples.run = lambda lines: re.sub(r"(?m)^>>> (?:.*\S.*\n?)+", lambda found: f"```pycon\n{found.group()}\n```\n",
                                            "\n".join(lines)).split("\n")
        links.run = self.run
        md.preprocessors.register(examples, "examples", 40)
        md.treeprocessors.register(links, "links", 5)

    def run(self, root):
        for element in root.iter():
            attribute = {"a": "href", "img": "src"}.get(element.tag)
            target, mark, anchor = element.get(attribute or "", "").partition("#")
            if not target or re.match(r"[a-z]+:", target):
                continue
            folder = "/" if target.startswith("/") else posixpath.dirname(self.page)
            path = posixpath.normpath(posixpath.join(folder, target)).lstrip("/")
            to = self.site.get(path) or self.site.get(f"{path}/README.md")
            if to:
                here = posixpath.dirname(self.site[self.page])
                element.set(attribute, posixpath.relpath(to, here or ".") + mark + anchor)
            elif element.tag == "a" and (ROOT / path).exists():  # the others are left, for MkDocs to say
                if self.repository:
                    element.set("href", f"{self.repository}/blob/main/{path}")
                else:
                    element.tag, element.attrib = "span", {}


OURS = Ours()


def on_config(config):
    OURS.repository = config.extra["repository"]
    config.markdown_extensions.append(OURS)
    pages = ["mechanisms/index.md", *({one["name"]: f"mechanisms/{one['name']}.md"} for one in mechanisms())]
    config.nav = [{"Mechanisms": pages} if "Mechanisms" in part else part for part in config.nav]


def on_files(files, config):
    found = {path.relative_to(ROOT).as_posix() for pattern in OUTSIDE + SHOWN for path in ROOT.glob(pattern)}
    for path in sorted(one for one in found if "templates/" not in one):
        files.append(File.generated(config, "index.md" if path == "README.md" else path, abs_src_path=str(ROOT / path)))
    notebooks = {f"{file.stem}.md": file for file in (ROOT / "docs").glob("*.ipynb")}
    made = {**mechanism_pages(), "python_api.md": api_page(), **{name: notebook_page(file) for name, file in notebooks.items()}}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    OURS.site = {one.src_uri if one.src_uri in found else f"docs/{one.src_uri}": one.src_uri for one in files}
    del OURS.site["docs/index.md"]
    OURS.site.update({"README.md": "index.md", **{f"docs/{file.name}": name for name, file in notebooks.items()}})


def on_page_markdown(text, page, config, files):
    OURS.page = next(path for path, name in OURS.site.items() if name == page.file.src_uri)
    shown = pictures(lambda suite: index().page_of.get(suite) == ROOT / OURS.page)
    return f"{text}\n\n## Figures of these suites\n\n{shown}" if shown else text


def on_page_content(content, page, config, files):
    """Formulas as MathML, which browsers draw themselves."""
    def drawn(found):
        return latex2mathml.converter.convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline")

    return re.sub(r'<(div|span) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', drawn, content, flags=re.DOTALL)
