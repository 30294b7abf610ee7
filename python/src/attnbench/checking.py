"""Mechanisms held to their definitions, claims and growth."""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from attnbench.callables import Mechanism
from attnbench.errors import Interrupted, ProgramFailed
from attnbench.process import follow
from attnbench.program import Program, find_program
from attnbench.progress import Event, choose
from attnbench.results import Object
from attnbench.running import flags_of, words_of_command

_CHECK = ["mechanism", "implementation", "pattern", "dtype"]
_COLUMNS = [*_CHECK, "property", "status", "error", "tolerance", "reason"]


@dataclass(frozen=True)
class Findings:
    """What a check found.

    holds: whether everything that could be checked holds. verdict: that in a sentence, and what it
    was held to. table: a row for each property of each check: `status` is "held", "broken" or
    "not_applicable" and the `reason` why; `error` is compared with `tolerance`, both relative. A
    check that could not be made at all is one row, its property missing. growth: exponents that
    were claimed and measured. document: everything, as JSON has it.
    """

    holds: bool
    verdict: str
    table: pandas.DataFrame
    growth: pandas.DataFrame
    text: str
    document: dict[str, Any]

    @property
    def broken(self) -> pandas.DataFrame:
        """The rows of the table that do not hold."""
        return self.table[~self.table.status.isin(["held", "not_applicable", "unsupported"])]

    def __repr__(self) -> str:
        if self.broken.empty:
            return self.text
        columns = ["implementation", "pattern", "dtype", "property", "error", "tolerance", "reason"]
        broken = self.broken[columns].fillna("").to_string(index=False, max_colwidth=60)
        return f"{self.text}\n\nbroken:\n{broken}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def check(
    *mechanisms: Mechanism,
    program: Program = None,
    progress: str | bool | Callable[[Event], None] = "auto",
    **options: Any,
) -> Findings:
    """Checks mechanisms against their definitions, their claims and the growth of time and memory.

    mechanisms: names, words such as "python:near.py:Near", or callables as attnbench.run takes
    them; none: all that are built in. Further options are flags of `attnbench check --help`:
    pattern="causal", dtype=["float64", "float32"], implementation="tiled", no_growth=True,
    device="cuda". program and progress are those of attnbench.run. Growth takes minutes, the rest
    seconds for each mechanism.

    Something that does not hold is a finding, and no error. Raises Interrupted, ProgramFailed
    (a name that is none), ProgramNotFound, and ValueError for a callable that cannot be carried.

    >>> found = attnbench.check("latte", implementation="chunked", pattern="causal",
    ...                         dtype="float32", no_growth=True, progress="none")
    >>> found.holds, found.verdict
    (True, 'all properties hold')
    """
    found, shown = find_program(program), choose(progress)
    with tempfile.TemporaryDirectory(prefix="attnbench-") as folder:
        file = Path(folder) / "findings.json"
        words = flags_of(options)
        if mechanisms:
            words = words_of_command(found, list(mechanisms), options, Path(folder))
        ended = follow(found, ["check", *words, f"--out={file}"], shown)
        if ended.interrupted:
            raise Interrupted(ended.message)
        if ended.exit_code not in (0, 1) or not file.is_file():
            raise ProgramFailed(ended.exit_code, ended.message)
        document: Object = json.loads(file.read_text(encoding="utf-8"))
    rows = [row for one in document["checks"] for row in _rows(one)]
    return Findings(
        holds=ended.exit_code == 0,
        verdict=document["verdict"],
        table=pandas.DataFrame(rows, columns=_COLUMNS),
        growth=pandas.DataFrame(document["growth"]),
        text=ended.output.strip(),
        document=document,
    )


def _rows(one: Object) -> list[Object]:
    own = {name: one.get(name) for name in _CHECK}
    properties = one.get("properties", [])
    if not properties:
        return [{**own, "status": one.get("status"), "reason": one.get("reason")}]
    return [{**own, "property": found["name"], **found} for found in properties]
