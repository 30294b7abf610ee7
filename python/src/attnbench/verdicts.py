"""The verdict of a result, and the few columns of its table that say something."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas

from attnbench.errors import BadResult
from attnbench.program import Program, ask, find_program
from attnbench.results import FORMS, SIZES, Object, Result, files_of

if TYPE_CHECKING:
    from attnbench.charts import Chart

# Shown wherever there is a value, whether they vary or not.
_MEASURED = (
    "median_seconds low_seconds high_seconds workspace_bytes peak_bytes state_bytes accuracy loss"
).split()
# Never shown: what the others follow from, or what says how sure they are.
_DETAILS = {
    *("id", "options", "minimum_seconds", "calibrated_median_seconds", "rounds", "input_bytes"),
    *("output_bytes", "saved_bytes", "model_flops", "floor_seconds", "share", "bound", "interval"),
    *("crossover_length", "crossover_length_low", "crossover_length_high", "efficiency_length"),
    *("verdict", "against", "primary"),
}


@dataclass(frozen=True)
class Verdict:
    """What a result says in sentences: who is fastest, from which length on, and what cannot be told.

    text: as the program prints it. verdicts: of each result what `attnbench report --json` prints:
    `text`, `headline`, `sentence`, `rankings` with a row for each mechanism, `exceptions` and `tasks`,
    each with its `lines` and the numbers that they are of: `fastest` in seconds, `crossings` in tokens,
    `workspaces` and `states` in bytes, `accuracies`.
    """

    text: str
    verdicts: tuple[Object, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def verdict(result: Result, *, program: Program = None) -> Verdict:
    """The verdict of a result, as the program prints it after a run.

    result: a table of attnbench.read or attnbench.run, a run's folder, a result.json, or a list of
    these files: of several, one after the other. Raises BadResult, ProgramNotFound, ProgramFailed.

    >>> attnbench.verdict("runs/monday").verdicts[0]["tasks"][0]["fastest"][1]["labels"]
    ['window']
    """
    words = ["report", *map(str, files_of(result)), "--json"]
    verdicts: list[Object] = json.loads(ask(find_program(program), words))["verdicts"]
    text = "\n".join(one["text"] for one in verdicts if one["text"])
    return Verdict(text.rstrip(), tuple(verdicts))


def view(table: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of a table of attnbench.read with the columns that say something, for the eye.

    They are `result`, `label`, `status`, `reason` where there is one, the columns that vary and do not follow
    from label or task, and what was measured, in seconds and bytes. No row is left out.

    >>> table = attnbench.read("runs/monday")
    >>> len(table.columns), list(attnbench.view(table).columns)[:6]
    (59, ['label', 'task', 'length', 'status', 'reason', 'timing'])
    """
    return table[[name for name in table.columns if _says_something(table, str(name))]]


def ranked(table: pandas.DataFrame) -> pandas.DataFrame:
    """The view of the primary timings, the best first: for each task and size by accuracy, else by time.

    What is not ok comes last. Neighbours whose intervals overlap may be in either order: which of
    them is faster is what attnbench.verdict says.

    >>> rows = attnbench.read("runs/monday").attnbench.ranked
    >>> rows[rows.length == 256].label.head(2).tolist()
    ['window', 'flash']
    """
    rows = table[table.primary.fillna(True)] if "primary" in table.columns else table
    shown = view(rows)
    keys = pandas.DataFrame(index=rows.index)
    for name in ("result", "task"):  # as they come
        if name in rows.columns:
            keys[name] = pandas.factorize(rows[name])[0]
    for name in (*SIZES, *FORMS):
        if name in shown.columns:
            keys[name] = rows[name]
    keys["not_ok"] = rows["status"] != "ok"
    if "accuracy" in rows.columns:
        keys["accuracy"] = -rows["accuracy"]
    if "median_seconds" in rows.columns:
        keys["median_seconds"] = rows["median_seconds"]
    places = keys.reset_index(drop=True).sort_values(list(keys.columns), kind="stable").index
    return shown.iloc[places]


def _says_something(table: pandas.DataFrame, name: str) -> bool:
    if name in ("label", "status", "result"):
        return True
    if name in _MEASURED or name == "reason":
        return bool(table[name].notna().any())
    if name in _DETAILS or table[name].nunique() <= 1:
        return False
    if name == "key_length":  # 0: as many as there are queries
        return bool(((table[name] != table["length"]) & (table[name] != 0)).any())
    if table[name].dtype == "float64":  # a further number that was measured
        return True
    return not any(_follows_from(table, name, other) for other in ("label", "task"))


def _follows_from(table: pandas.DataFrame, name: str, other: str) -> bool:
    """Whether each value of the other column has one value there."""
    if name == other or other not in table.columns or table[other].nunique() <= 1:
        return False
    return bool((table.groupby(other)[name].nunique(dropna=False) <= 1).all())


@pandas.api.extensions.register_dataframe_accessor("attnbench")
class Accessor:
    """`table.attnbench`: the verdict, the view and the figures of a table of results."""

    def __init__(self, table: pandas.DataFrame) -> None:
        if "attnbench_result" not in table.attrs and not {"label", "status"} <= set(table.columns):
            raise AttributeError("no table of attnbench.read: it has no label and no status")
        self._table = table

    @property
    def verdict(self) -> Verdict:
        """attnbench.verdict of the table."""
        return verdict(self._table)

    @property
    def view(self) -> pandas.DataFrame:
        """attnbench.view of the table."""
        return view(self._table)

    @property
    def ranked(self) -> pandas.DataFrame:
        """attnbench.view of the primary timings, the best first: for each task and size by accuracy,
        else by time. What is not ok comes last; whose intervals overlap may be in either order."""
        return ranked(self._table)

    def figure(self, name: str) -> Chart:
        """attnbench.figure of the table."""
        from attnbench.charts import figure

        return figure(self._table, name)

    def __repr__(self) -> str:
        return repr(self.view)

    def _repr_html_(self) -> str:
        """The ranked table, and the first task's figure of accuracy or time where the run stored it."""
        return self.ranked.to_html(notebook=True, index=False) + self._picture()

    def _picture(self) -> str:
        if self._table.empty or "attnbench_result" not in self._table.attrs:
            return ""
        from attnbench.charts import opening, picture

        try:
            name = opening(self._table, str(self._table["task"].iloc[0]))
            return picture(self._table, name) if name else ""
        except (BadResult, OSError) as error:  # a table is shown all the same
            return f"<p>{html.escape(str(error))}</p>"
