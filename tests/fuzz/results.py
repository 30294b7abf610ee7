"""Results, journals, and what other programs measured."""

import json

import mutate
from kind import BRIEF, FIXTURE, SOURCES, Kind, copy_run
from oracle import Case

# With vl-convert; the launcher makes it. Without it no case draws.
RENDERER = SOURCES / "build/venv/bin/python"
UNDRAWABLE = ["so\x1bft", "\x00", "\x07", "\x9b31m", "a" * 350, "\u202eabc", "<b>", "a\nb", "",
              "\ufffe", "../x"]


def fewer_cells(result, random):
    """The fixture has 88 cells: with a few of them each change weighs more."""
    cells = result["attnbench"]["cells"]
    result["attnbench"]["cells"] = random.sample(cells, min(len(cells), random.choice([3, 8])))
    return result


def drawn_wrong(folder):
    """Pictures' specifications and the page that are not what a browser can read."""
    found = []
    for file in list(folder.rglob("*.vl.json")):
        try:
            json.loads(file.read_text())
        except ValueError as error:
            found.append(("a figure that is no JSON", f"{file.name}: {error}"))
    for page in folder.rglob("index.html"):
        if any(byte < 32 and byte not in b"\n\t\r" for byte in page.read_bytes()):
            found.append(("control character", "in index.html"))
    return found


class Results(Kind):
    """result.json, read by `report`, `compare` and `import`."""

    def prepare(self):
        fixture = json.loads(FIXTURE.read_text())
        run = json.loads((self.tiny_run() / "result.json").read_text())
        self.bases = [fixture, fixture, run]

    def case(self, random, folder):
        base = random.choice(self.bases)
        if random.random() < 0.8:
            base = fewer_cells(json.loads(json.dumps(base)), random)
        (folder / "result.json").write_bytes(mutate.changed_json(random, base))
        kind = random.random()
        if kind < 0.02 and RENDERER.exists():
            return self.with_pictures(random, folder)
        if kind < 0.6:
            return Case(["report", "result.json", "--no-render", "--out", "out"],
                        files=["result.json"],
                        check=lambda outcome: drawn_wrong(folder) if outcome.exit_code == 0 else [])
        if kind < 0.9:
            sides = ["result.json", str(FIXTURE)]
            random.shuffle(sides)
            flags = random.choice([[], ["--json"], ["--margin", "0"]])
            return Case(["compare", *sides, *flags], files=["result.json"],
                        json_output="--json" in flags)
        (folder / "foreign.json").write_text(json.dumps(foreign(self.bases[0])))
        return Case(["import", "foreign.json", "--beside", "result.json", "--out", "out"],
                    files=["result.json", "foreign.json"])

    def with_pictures(self, random, folder):
        """Every figure has its picture: odd labels and names must not cost it."""
        text = json.dumps(random.choice(self.bases))
        for _ in range(random.choice([1, 2])):
            # A name that many cells share is changed in all of them.
            cell = random.choice(json.loads(text)["attnbench"]["cells"])
            name = cell[random.choice(["label", "task_label", "mechanism"])]
            text = text.replace(json.dumps(name), json.dumps(random.choice(UNDRAWABLE)))
        (folder / "result.json").write_text(text)

        def check(outcome):
            if outcome.exit_code != 0:
                return []
            missing = [file.name
                       for file in folder.rglob("*.vl.json")
                       if not file.with_name(file.name.replace(".vl.json", ".svg")).exists()]
            return [("figures without a picture", ", ".join(missing))] if missing else []

        return Case(["report", "result.json", "--format", "svg", "--out", "out"],
                    environment={"ATTNBENCH_PYTHON": str(RENDERER)}, files=["result.json"],
                    check=check)


def foreign(result):
    cell = next(
        cell for cell in result["attnbench"]["cells"] if "forward" in cell.get("timing", {})
    )
    return {"schema": 1,
            "program": {"name": "Other", "version": "2.0", "blas": "mkl"},
            "threads": 2,
            "command": "other.py",
            "records": [{"beside": cell["id"], "label": "flash", "implementation": "sdpa",
                         "seconds": {"forward": [[0.3, 0.1, 0.2], [0.4, 0.4, 0.4]]}},
                        {"beside": cell["id"], "label": "other", "status": "unsupported",
                         "reason": "no such thing", "memory": {"peak_bytes": 1000}}]}


class Imports(Kind):
    """Files of foreign records."""

    def prepare(self):
        self.base = foreign(json.loads(FIXTURE.read_text()))

    def case(self, random, folder):
        (folder / "peers.json").write_bytes(mutate.changed_json(random, self.base))
        return Case(["import", "peers.json", "--beside", str(FIXTURE), "--out", "out"],
                    files=["peers.json"])


def changed_journal(random, lines):
    """The lines of a journal after some changes: to a line as JSON, to their order, to bytes."""
    lines = list(lines)
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(lines))
        kind = random.randrange(8)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(random.randrange(len(lines) + 1), lines[at])
        elif kind == 2:
            random.shuffle(lines)
        elif kind == 3:
            lines[at] = mutate.change_text(random, lines[at].decode("latin-1"))
        elif kind == 4 and random.random() < 0.3:
            depth = random.choice([1000, 50000])
            lines[at] = random.choice(
                [b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth]
            )
        else:
            try:
                tree = json.loads(lines[at])
            except (ValueError, RecursionError):  # an earlier change may have nested it deep
                continue
            if not isinstance(tree, (dict, list)) or not tree:
                continue
            mutate.change_tree(random, tree)
            lines[at] = mutate.text_of(tree).replace("\n", " ").encode()
    return lines


class Journals(Kind):
    """journal.jsonl of a whole run, gone on with: what does not hold is measured again."""

    def prepare(self):
        self.base = self.tiny_run()
        self.lines = (self.base / "journal.jsonl").read_bytes().splitlines()

    def case(self, random, folder):
        copy_run(self.base, folder / "run")
        lines = changed_journal(random, self.lines)
        ending = b"\n" if random.random() < 0.8 else b""
        (folder / "run" / "journal.jsonl").write_bytes(b"\n".join(lines) + ending)
        if random.random() < 0.5:
            (folder / "run" / "result.json").unlink()
        return Case(["run", "--resume", "run", *BRIEF], files=["journal.jsonl"], interrupt_after=8,
                    check=lambda outcome: untrue(folder / "run" / "result.json", outcome))


def untrue(file, outcome):
    """Numbers that two rounds of this run cannot have given."""
    if outcome.exit_code != 0 or not file.exists():
        return []
    found = []
    cells = json.loads(file.read_text())["attnbench"]["cells"]
    ids = [cell["id"] for cell in cells]
    if len(ids) != len(set(ids)):
        found.append(("a cell twice", ", ".join(ids)))
    for cell in cells:
        for timing in cell.get("timing", {}).values():
            rounds = timing.get("rounds", [])
            numbers = [one.get("round") for one in rounds if isinstance(one, dict)]
            if None not in numbers and len(numbers) != len(set(numbers)):
                found.append(("a round twice", f"{cell.get('label')}: {numbers}"))
            if not 0 < timing.get("median_seconds", 1) < 60:
                found.append(("a time that was not measured", f"{timing.get('median_seconds')} s"))
    return found
