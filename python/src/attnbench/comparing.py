"""Two sides compared: results measured apart, or sides measured in turns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from attnbench.errors import Interrupted, ProgramFailed
from attnbench.process import follow
from attnbench.program import Program, find_program
from attnbench.progress import Event, choose
from attnbench.results import Object, Stored, result_file
from attnbench.running import Suite, flags_of, words_of_command

# Exit codes that are an answer: each has a verdict, one is SLOW (with gate), one is UNCLEAR.
_ANSWERS = (0, 1, 4)
_COLUMNS = (
    "name timing verdict ratio ratio_low ratio_high base_seconds new_seconds rounds "
    "rounds_left_out reason id"
).split()


@dataclass(frozen=True)
class Comparison:
    """What differs between a base and something new.

    table: a row for each timing that both have. `ratio` is new / base, with its bounds: below 1 the
    new one is faster; `verdict` is SAME, SLOW, FAST or UNCLEAR, for the `reason` beside it.
    notes: on what machines, and what differs beside the times. exit_code: the program's: 0, 1 where
    a gate was asked for and a cell is SLOW, 4 where it cannot tell. document: everything, as JSON.
    folders: of attnbench.ab, the runs that were measured, as attnbench.read and `resume` take them.
    """

    table: pandas.DataFrame
    notes: tuple[str, ...]
    exit_code: int
    document: Any
    folders: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        shown = self.table.drop(columns=["id", "rounds", "rounds_left_out", "reason"])
        counts = Counter(self.table.verdict)
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return "\n".join([*self.notes, shown.to_string(index=False), said or "nothing in both"])

    def _repr_html_(self) -> str:
        return self.table.drop(columns="id").to_html(notebook=True)


def compare(
    base: Stored, new: Stored, *, margin: float | None = None, program: Program = None
) -> Comparison:
    """Describes what differs between two results that were measured apart.

    base, new: a run's folder or a result.json. margin: relative change below which nothing is SLOW
    or FAST, 0.03 unless said. For a decision measure both in turns: attnbench.ab.
    Raises BadResult, ProgramNotFound, ProgramFailed.

    >>> found = attnbench.compare("runs/monday", "runs/tuesday")
    >>> set(found.table.verdict)
    {'UNCLEAR'}
    """
    words = ["compare", str(result_file(base)), str(result_file(new))]
    return _answer([*words, *flags_of({"margin": margin})], "none", program)


def ab(
    *sides: Suite,
    program: Program = None,
    progress: str | bool | Callable[[Event], None] = "auto",
    **options: Any,
) -> Comparison:
    """Measures a base and something new in turns, each in fresh processes, for a verdict.

    sides: two mechanisms, by name or as callables that attnbench.run takes; or a suite, with
    base=… and new=…, or base_set=… and new_set=…. Further options are flags of `attnbench ab
    --help` and settings: length=1024, shape="llama3-8b", rounds=24, gate=True, out="runs/mine". program and progress
    are those of attnbench.run. Times in seconds.

    SLOW and UNCLEAR are answers, and no errors. Raises Interrupted, ProgramFailed, ProgramNotFound,
    and ValueError for what cannot be passed on.

    >>> found = attnbench.ab("softmax/composite", "flash", length=64, rounds=2, rounds_most=2,
    ...                      confirm=0, no_ceilings=True, no_report=True, now=True, progress=False)
    >>> list(found.table.timing)
    ['forward']
    """
    out = options.get("out")
    found, folder = find_program(program), Path(out).parent if out else Path("runs")
    words: list[str] = []
    if sides:
        suite: Any = sides[0] if len(sides) == 1 else list(sides)
        words = words_of_command(found, suite, options, folder)
    else:
        words = flags_of(options)
    return _answer(["ab", *words, "--progress=json"], progress, found)


def _answer(
    words: list[str], progress: str | bool | Callable[[Event], None], program: Program
) -> Comparison:
    shown = choose(progress)
    ended = follow(find_program(program), [*words, "--json"], shown)
    if ended.interrupted:
        raise Interrupted(ended.message)
    try:
        document = json.loads(ended.output) if ended.exit_code in _ANSWERS else None
    except ValueError:
        document = None
    if document is None:
        raise ProgramFailed(ended.exit_code, ended.message)
    documents: list[Object] = document if isinstance(document, list) else [document]
    rows = [_row(pair) for one in documents for pair in one["pairs"]]
    notes: list[str] = []
    for one in documents:
        notes += [one["basis"]] if one.get("basis") else []
        notes += [str(difference) for difference in one.get("differences", [])]
    table = pandas.DataFrame(rows, columns=_COLUMNS)
    folders = tuple(Path(one["folder"]) for one in documents if "folder" in one)
    return Comparison(table, tuple(notes), ended.exit_code, document, folders)


def _row(pair: Object) -> Object:
    sides = {
        side + "_seconds": pair.get(side, {}).get("median_seconds") for side in ("base", "new")
    }
    return {**pair, **sides}
