#!/usr/bin/env python3
"""Writes what documents repeat from results, suites and the program: the blocks between the lines
"NAME: begin" and "NAME: end", in a comment of the document's language.

    blocks.py               writes the blocks, and draws pictures of the gallery that are not there
    blocks.py --check       writes nothing; ends with 1 where something is not as it would be written
    blocks.py --draw [SUITE …]   draws the pictures of these stored results anew (of all for none)
    blocks.py --estimate [SUITE …]   estimates these suites (all for none) anew in suites/form/estimates.json,
                            as `attnbench plan` does on a machine where nothing was run yet
    --program FILE          the built attnbench; build/release/bin/attnbench by default

Pictures need the Python that draws figures (build/venv, which the launcher makes); the rest needs
none but this one.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ROOT / "reports/gallery"
MACHINES = ROOT / "reports/machines"
ESTIMATES = ROOT / "suites/form/estimates.json"
MEND = "python3 docs/blocks.py"
OUTCOMES = ["seen", "opposite seen", "cannot tell", "not run"]
# What of them can be forecast depends on the libraries that are installed.
NOT_ESTIMATED = {"peers"}


class Wrong(Exception):
    """Something that no writing mends, in words."""


def call(program, *arguments, **environment):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        raise Wrong(f"attnbench {' '.join(map(str, arguments))}: exit code {done.returncode}")
    return done.stdout


def link(path, document):
    return os.path.relpath(ROOT / path, document.parent)


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") or "–" for cell in cells) + " |\n"


class Index:
    """What `attnbench figures --json` says, and the list of figures and pictures."""

    def __init__(self, program):
        said = json.loads(call(program, "figures", "--json"))
        listed = json.loads((ROOT / "suites/form/figures.json").read_text(encoding="utf-8"))
        self.papers, self.pictures = listed["papers"], listed["pictures"]
        self.figures = said["figures"]
        self.suites, self.label_of, self.page_of = {}, {}, pages()
        for figure in self.figures:
            for suite in figure["suites"]:
                self.suites[suite["name"]] = suite
                self.label_of[suite["name"]] = figure["label"]
                self.page_of[suite["name"]] = ROOT / paper_page(figure["name"].split(".")[0])
        for suite in said["others"] + said["not_kept"]:
            self.suites[suite["name"]] = suite

    def titled(self, suite, text):
        """`text`, after the figure that the suite follows."""
        return f"{self.label_of[suite]}: {text}" if suite in self.label_of else text


class Claims:
    """What `attnbench figures --claims --json` says, by paper."""

    def __init__(self, program, titles):
        self.titles, self.by_paper = titles, {}
        for claim in json.loads(call(program, "figures", "--claims", "--json")):
            self.by_paper.setdefault(claim["paper"], []).append(claim)

    def counts(self, papers):
        outcomes = [one["evidence"]["outcome"] for paper in papers for one in self.by_paper[paper]]
        return f"{len(outcomes)} claims: " + ", ".join(
            f"{outcomes.count(word)} {word}" for word in OUTCOMES)

    def anchor(self, paper):
        return f"claims.md#{self.titles[paper].lower().replace(' ', '-')}"


def hours(claim):
    return f" (`{claim['command']}`: {claim['hours']})" if claim["command"] else ""


def claim_row(claim, document):
    evidence = claim["evidence"]
    verdict = evidence["outcome"]
    verdict = f"**{verdict}**" if verdict in OUTCOMES[:2] else verdict
    verdict += f"; {evidence['leaning']}" if evidence["leaning"] else ""
    published = claim.get("published")
    source = f" ({published['source']})" if published else ""
    found = "; ".join(filter(None, [evidence["reason"], evidence["found"], evidence["size"]]))
    if claim["measured"]:
        found += f"; {suite_link(claim['suite'], document)}, {claim['measured']}"
    found += hours(claim)
    return row([f"{claim['claim']} ({claim['place']})",
                published["value"] + source if published else "", verdict, found])


def claims_block(claims):
    def block(_, document):
        text = claims.counts(claims.by_paper) + ".\n"
        for paper, all_of_it in claims.by_paper.items():
            text += f"\n## {claims.titles[paper]}\n\n{claims.counts([paper])}: "
            page = "docs/suites.md" if paper == "ours" else paper_page(paper)
            text += f"[its figures and suites]({link(page, document)}).\n\n"
            text += row(["claim", "published", "verdict", "found"]) + "|---|---|---|---|\n"
            text += "".join(claim_row(claim, document) for claim in all_of_it
                            if not claim.get("not_run"))
            text += "\nNot run:\n\n" + "".join(
                f"- {claim['claim']} ({claim['place']}): {claim['not_run']}{hours(claim)}\n"
                for claim in all_of_it if claim.get("not_run"))
        return text

    return block


def suite_link(name, document):
    return f"[`{name}`]({link(f'suites/{name}.json', document)})"


def paper_page(paper):
    return f"docs/papers/{'latte_blog' if paper == 'blog' else paper}.md"


def pages():
    """{suite: the page of docs/ that has a heading with its name}, for those that follow no paper."""
    found = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for heading in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            for name in re.findall(r"`(\w+)`", heading):
                found.setdefault(name, page)
    return found


def suites_block(index, document):
    text = row(["suite", "what it is", "page", "in full", "quick"]) + "|---|---|---|---|---|\n"
    for name, suite in sorted(index.suites.items()):
        if name not in index.page_of:
            raise Wrong(f"{name}: no page of docs/ has a heading with `{name}`")
        page = index.page_of[name]
        text += row([suite_link(name, document), index.titled(name, suite["title"]),
                     f"[{page.stem}]({link(page, document)})", suite["words"]["paper"],
                     suite["words"]["quick"]])
    return text


def paper_block(paper, claims):
    def block(index, document):
        text = row(["figure or table", "what it shows", "suite", "what is missing", "what differs"])
        text += "|---|---|---|---|---|\n"
        for figure in index.figures:
            if figure["name"].split(".")[0] == paper:
                suites = ", ".join(suite_link(one["name"], document) for one in figure["suites"])
                text += row([figure["label"].split(", ")[1], figure["title"], suites,
                             figure["missing"], figure["differs"]])
        if paper in claims.by_paper:
            text += f"\nWhat it claims, and what was found: {claims.counts([paper])}, "
            text += f"[one by one](../{claims.anchor(paper)}).\n"
        return text

    return block


def gallery_block(index, document):
    cells = []
    for picture in index.pictures:
        file = GALLERY / f"{picture['file']}.svg"
        if file.exists():
            caption = index.titled(picture["suite"], picture["caption"]).replace("|", "\\|")
            cells.append(f"![{picture['alt']}]({link(file, document)}) {caption} ")
    cells += [""] * (len(cells) % 2)
    pairs = zip(cells[::2], cells[1::2])
    return "| | |\n|---|---|\n" + "".join(f"| {a}| {b}|\n" for a, b in pairs)


def verdict_block(program):
    """What a run of quickstart ends with, of the stored result."""
    with tempfile.TemporaryDirectory() as folder:
        said = call(program, "report", GALLERY / "quickstart.json", "--no-render", "--out", folder)
    return "```\n" + said[said.index("Verdict\n"):].rstrip() + "\n```\n"


def machines_block(program):
    """A table for each suite and profile of reports/machines/, a line for each machine."""
    def cell(row):
        if not row or "speedup" not in row:
            return ""
        times = "{median:.2g}× ({low:.2g} to {high:.2g})".format(**row["speedup"])
        at = row.get("faster_from", "")
        at = at if not at or at.startswith(("not ", "cannot ")) else f"from {at}".replace("<=", "≤")
        return (f"**{times}**" if row["fastest"] else times) + (f"<br>{at}" if at else "")

    def block(_, document):
        files = sorted(MACHINES.glob("*.json"))
        if not files:
            return "None yet.\n"
        tables = {}
        for file, verdict in zip(files, json.loads(call(program, "report", *files, "--json"))["verdicts"]):
            result = json.loads(file.read_text(encoding="utf-8"))["attnbench"]
            machine, built, name = result["machine"], result["provenance"], result["suite"]["name"]
            timed = [one for one in verdict["rankings"] if "against" in one]
            if not timed:
                continue  # nothing of it is ranked: exact attention was disturbed, say
            rows = {row["label"]: row for row in timed[0]["rows"]}
            labels = [label for label in result["suite"]["labels"] if not rows.get(label, {}).get("exact")]
            cards = "".join(f", {card['name']}" for card in machine.get("devices", {}).values())
            head = (f"{suite_link(name, document)}, "
                    + (f"profile {result['suite']['profile']}" if "profile" in result["suite"] else "in full")
                    + f": {timed[0]['timed']} at {timed[0]['axis']} {timed[0]['at']:g}; {timed[0]['conditions']}")
            key = head, *labels
            table = tables.setdefault(key, row(["machine", "measured", "exact attention", *labels])
                                      + "|---" * (3 + len(labels)) + "|\n")
            tables[key] = table + row([
                f"[{machine.get('cpu_model') or machine['architecture']}{cards}, {result['run']['threads']} threads]({link(file, document)})",
                f"{result['run']['finished_at'][:10]}, {built['commit'][:8]}"
                + (", changed" if built.get("dirty") else ""),
                timed[0]["against"], *(cell(rows.get(label)) for label in labels)])
        return "\n".join(f"{head}\n\n{table}" for (head, *_), table in tables.items())

    return block


def exit_codes(program):
    """[(code, meaning), …], as every help ends."""
    _, _, text = call(program, "--help").partition("Exit codes:\n")
    found = re.findall(r"^ *(\d+)  (.*)$", text, re.MULTILINE)
    if len(found) < 2:
        raise Wrong("attnbench --help: expected the exit codes at its end")
    return found


def marks(file, name):
    form = "# {}\n" if file.suffix == ".py" else "<!-- {} -->\n"
    return [form.format(f"{name}: {end}") for end in ("begin", "end")]


def with_block(text, block, file, name):
    """`text` with `block` between the two marks, which must be there once each, in this order."""
    begin, end = marks(file, name)
    before, *rest = text.split(begin)
    if len(rest) != 1 or rest[0].count(end) != 1 or end in before:
        raise Wrong(f"{file}: expected the lines {begin.strip()} and {end.strip()}, once each and in "
                    "this order")
    return before + begin + block + end + rest[0].split(end)[1]


def wanted(program, index):
    """[(file, its text with all of its blocks)]."""
    claims = Claims(program, {**index.papers, "ours": "Questions of our own"})
    blocks = [("docs/gallery.md", "figures", gallery_block), ("suites/README.md", "suites", suites_block),
              ("docs/claims.md", "claims", claims_block(claims)),
              ("docs/measured.md", "machines", machines_block(program))]
    blocks += [(paper_page(paper), "figures", paper_block(paper, claims)) for paper in index.papers]
    texts = []
    for name, mark, block in blocks:
        file = ROOT / name
        texts.append((file, with_block(file.read_text(encoding="utf-8"), block(index, file), file,
                                       mark)))
    codes = exit_codes(program)
    table = "| exit code | meaning |\n|---|---|\n" + "".join(row(code) for code in codes)
    words = "".join(f"    {code}: {json.dumps(meaning)},\n" for code, meaning in codes)
    for name, mark, block in (
            ("README.md", "verdict", verdict_block(program)), ("docs/results.md", "exit codes", table),
            ("python/src/attnbench/errors.py", "exit codes", f"EXIT_CODES = {{\n{words}}}\n")):
        file = ROOT / name
        texts.append((file, with_block(file.read_text(encoding="utf-8"), block, file, mark)))
    return texts


def self_test():
    """Blocks without their marks must be refused, and the others replaced."""
    file, (begin, end) = pathlib.Path("R.md"), marks(pathlib.Path("R.md"), "x")
    assert with_block(f"a\n{begin}old\n{end}b\n", "new\n", file, "x") == f"a\n{begin}new\n{end}b\n"
    for text in ("a\n", begin, end, end + begin, begin + begin + end, begin + end + end):
        try:
            with_block(text, "", file, "x")
        except Wrong:
            continue
        raise Wrong(f"not refused: {text!r}")
    assert row(["Time | length", ""]) == "| Time \\| length | – |\n"


def lacking(index):
    """Suites with a stored result of which a picture is not there."""
    return {picture["suite"] for picture in index.pictures
            if "stored" in index.suites[picture["suite"]]
            and not (GALLERY / f"{picture['file']}.svg").exists()}


def draw(program, index, suites):
    for name in sorted(suites):
        suite = index.suites.get(name)
        if suite is None or "stored" not in suite:
            raise Wrong(f"{name}: no stored result that can be read; attnbench figures --run {name}")
        if suite["state"] == "stale":
            print(f"{name}: drawn from a stale result: {suite['state_reason']}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            call(program, "report", suite["stored"]["file"], "--format", "svg", "--out", folder)
            for picture in index.pictures:
                drawn = pathlib.Path(folder) / "figures" / f"{picture['figure']}.svg"
                if picture["suite"] != name:
                    continue
                if not drawn.exists():
                    raise Wrong(f"{name}: {picture['figure']}.svg was not drawn")
                shutil.copyfile(drawn, GALLERY / f"{picture['file']}.svg")
                print(f"reports/gallery/{picture['file']}.svg: drawn")


def estimates(program, index, names):
    """The text of suites/form/estimates.json with those suites estimated anew, at the rates that `plan` assumes where
    it knows none, and without prepared data, so that it says which suites need some first."""
    said, machine = json.loads(ESTIMATES.read_text(encoding="utf-8"))["suites"], ""
    said = {name: estimate for name, estimate in said.items() if name in index.suites}
    for name in set(names) - set(index.suites):
        raise Wrong(f"--estimate {name}: there is no such suite")
    with tempfile.TemporaryDirectory() as cache:
        def planned(name, profile):
            nonlocal machine
            words = ["--profile", profile] if profile else []
            plan = json.loads(call(program, "plan", f"suites/{name}.json", *words, "--json",
                                   XDG_CACHE_HOME=cache, ATTNBENCH_DATA=""))[0]
            rates = plan["assumed"]
            machine = (f"an assumed machine of {rates['flops_per_second'] / 1e9:.3g} GFLOP/s and "
                       f"{rates['bytes_per_second'] / 1e9:.1f} GB/s")
            totals, unprepared = plan["totals"], plan["totals"]["without_data"]
            estimate = {"seconds": totals["estimated_seconds"] + unprepared["estimated_seconds"],
                        "peak_bytes": max(totals["peak_bytes"], unprepared["peak_bytes"]),
                        "cells": totals["cells"]}
            if unprepared["cells"]:
                estimate["without_data"] = unprepared["cells"]
            return estimate

        for name in names:
            suite = json.loads((ROOT / f"suites/{name}.json").read_text(encoding="utf-8"))
            profiles = suite.get("profiles", {})
            said[name] = {"quick": planned(name, "quick")} if "quick" in profiles else {}
            said[name]["full"] = planned(name, "paper" if "paper" in profiles else "")
    return json.dumps({"machine": machine, "suites": dict(sorted(said.items()))}, indent=1) + "\n"


def not_estimated(index):
    return [name for name, suite in index.suites.items()
            if name not in NOT_ESTIMATED and not (suite["quick"] and suite["paper"])]


def check(program, index):
    self_test()
    faults = [f"{file.relative_to(ROOT)}: a block is not as it would be written"
              for file, text in wanted(program, index)
              if file.read_text(encoding="utf-8") != text]
    faults += [f"{name}: a picture of its stored result is not there" for name in lacking(index)]
    without = not_estimated(index)
    for fault in faults + [f"{name}: no estimate of its time" for name in without]:
        print(fault)
    if faults or without:
        print(f"mended by: {MEND}{' --estimate ' + ' '.join(without) if without else ''}")
    return 1 if faults or without else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--draw", nargs="*", metavar="SUITE")
    parser.add_argument("--estimate", nargs="*", metavar="SUITE")
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/attnbench")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    if not program.exists():
        raise Wrong(f"{program}: is not there; ./attnbench build makes it")
    index = Index(program)
    if arguments.check:
        return check(program, index)
    if arguments.estimate is not None:
        names = arguments.estimate or sorted(index.suites)
        ESTIMATES.write_text(estimates(program, index, names), encoding="utf-8")
        index = Index(program)
    stored = {picture["suite"] for picture in index.pictures
              if "stored" in index.suites[picture["suite"]]}
    draw(program, index, lacking(index) if arguments.draw is None else arguments.draw or stored)
    for file, text in wanted(program, index):
        if file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"{file.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(1)
