"""What there is to measure, and what a suite would run: the program's lists as tables."""

from __future__ import annotations

import html
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from attnbench.program import Program, ask, find_program
from attnbench.results import FORMS, SIZES, Object, size_of, typed
from attnbench.running import Suite, words_of_command

_OPTION = ["name", "type", "default", "minimum", "maximum", "choices", "meaning"]
_FORECAST = ["supported", "reason", "estimated_seconds", "peak_bytes"]
_COST = ["workspace_bytes", "state_bytes", "model_flops"]


def mechanisms(*, program: Program = None) -> pandas.DataFrame:
    """The mechanisms, a row each: name, title, and what can be said of them.

    patterns, implementations, options and aliases are names, joined by ", "; origin is "built in"
    or a plugin. Raises ProgramNotFound, ProgramFailed.

    >>> table = attnbench.mechanisms().set_index("name")
    >>> table.implementations["softmax"]
    'composite, chunked, tiled, fused'
    """
    rows = _asked(["list", "mechanisms"], program)
    columns = "name title patterns implementations options aliases origin citation".split()
    return pandas.DataFrame([_named(row, columns) for row in rows], columns=columns)


def tasks(*, program: Program = None) -> pandas.DataFrame:
    """The tasks, a row each: name, title, axis, their settings and those of their data, figures.

    Settings and figures are names, joined by ", ". Raises ProgramNotFound, ProgramFailed.

    >>> {"kernel", "decode", "mqar"} <= set(attnbench.tasks().name)
    True
    """
    columns = "name title axis settings data_settings figures origin".split()
    rows = [_named(row, columns) for row in _asked(["list", "tasks"], program)]
    return pandas.DataFrame(rows, columns=columns)


def suites(*, program: Program = None) -> pandas.DataFrame:
    """The suites that attnbench.run takes by name, a row each: name, title, profiles, source, file.

    profiles are names, joined by ", ". Raises ProgramNotFound, ProgramFailed.

    >>> "quickstart" in set(attnbench.suites().name)
    True
    """
    columns = "name title profiles source file".split()
    rows = []
    for row in _asked(["list", "suites"], program):
        file = Path(row["name"]).absolute()
        rows.append(_named({**row, "name": file.stem, "file": str(file)}, columns))
    return pandas.DataFrame(rows, columns=columns)


def shapes(*, program: Program = None) -> pandas.DataFrame:
    """The known models whose sizes run, plan and ab take as shape="NAME", a row each.

    Columns: name, title, the sizes (missing where they follow from others: kv_heads from heads,
    value_dim from head_dim), notes, and the source of the figures. length is text where there are
    several. Raises ProgramNotFound, ProgramFailed.

    >>> table = attnbench.shapes().set_index("name")
    >>> table.loc["llama3-8b", ["heads", "kv_heads", "head_dim"]].tolist()
    [32, 8, 128]
    """
    columns = (
        "name title heads kv_heads head_dim value_dim layers window length key_length pattern "
        "notes source"
    ).split()
    rows = [_named(row, columns) for row in _asked(["list", "shapes"], program)]
    return pandas.DataFrame(rows, columns=columns, dtype=object)


def claims(*names: str, program: Program = None) -> pandas.DataFrame:
    """What the papers claim, and whether results show it: a row for each statement.

    names: papers, figures, suites, claims ("latte_v1.scan_overtakes") or folders of runs, which are
    then read in place of the stored results; none for all. Columns: id, claim, place, published,
    outcome ("seen", "opposite seen", "cannot tell", "not run"), leaning (of what is undecided),
    found, reason, size, suite, measured, command, hours. Needs the repository's stored results or
    runs. Raises ProgramFailed, ProgramNotFound.

    >>> attnbench.claims("latte_v1.scan_overtakes").outcome.tolist()
    ['seen']
    """
    columns = (
        "id claim place published outcome leaning found reason size suite measured command hours"
    ).split()
    rows = []
    for row in _asked(["figures", "--claims", *names], program):
        published = row.pop("published", {})
        rows.append(
            {
                **row,
                **row["evidence"],
                "id": f"{row['paper']}.{row['name']}",
                "published": published and f"{published['value']} ({published['source']})",
            }
        )
    return pandas.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class Description:
    """What is said of a mechanism, an alias, a task, a preset or a shape.

    name: that of the mechanism, for an alias. text: as the program prints it. options: the options
    of a mechanism, or the settings of a task and its data: name, type, default, minimum, maximum,
    choices, meaning. document: everything, as JSON has it.
    """

    name: str
    title: str
    text: str
    options: pandas.DataFrame
    document: dict[str, Any]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def describe(name: str, *, program: Program = None) -> Description:
    """What there is to know of a mechanism, an alias, a task, a preset or a shape.

    Raises ProgramFailed for a name that is none, with those there are, and ProgramNotFound.

    >>> attnbench.describe("flash").options[["name", "default"]]
              name default
    0        scale     0.0
    1  query_chunk    1024
    2    key_chunk    4096
    """
    found = find_program(program)
    document: Object = json.loads(ask(found, ["describe", name, "--json"]))
    options = [
        option
        for part in ("options", "settings", "data_settings")
        for option in document.get(part, [])
    ]
    return Description(
        name=document.get("name", name),
        title=document.get("title", ""),
        text=ask(found, ["describe", name]).rstrip(),
        options=pandas.DataFrame(options, columns=_OPTION, dtype=object),
        document=document,
    )


def plan(suite: Suite, *, program: Program = None, **options: Any) -> pandas.DataFrame:
    """What attnbench.run would measure, without measuring: a row for each cell.

    suite and options are those of attnbench.run, as far as `attnbench plan --help` has them.
    Columns: id, label, task, mechanism, implementation, device, the sizes, whether it is
    `supported` and else the `reason`, `estimated_seconds` of measuring it, the bytes and the
    floating-point operations of one call. attrs["attnbench_totals"] has the sums of each suite, in
    `without_data` those of cells that their data alone keep from running,
    attrs["attnbench_shapes"] what is taken of a shape="NAME".
    Raises ValueError, ProgramNotFound, ProgramFailed.

    >>> cells = attnbench.plan(["flash", "latte"], length=[256, 512], pattern="causal")
    >>> cells[["label", "length", "supported"]]
       label  length  supported
    0  flash     256       True
    1  flash     512       True
    2  latte     256       True
    3  latte     512       True
    """
    with tempfile.TemporaryDirectory(prefix="attnbench-") as folder:
        found = find_program(program)
        words = words_of_command(found, suite, options, Path(folder))
        documents: list[Object] = json.loads(ask(found, ["plan", *words, "--json"]))
    rows = [_planned(cell) for document in documents for cell in document["cells"]]
    columns = ["id", "label", "task", "mechanism", "implementation", "device", *SIZES, *FORMS]
    table = typed(rows, [*columns, *_FORECAST, *_COST])
    table.attrs["attnbench_totals"] = [document["totals"] for document in documents]
    table.attrs["attnbench_shapes"] = [document["suite"].get("shapes", []) for document in documents]
    return table


def _planned(cell: Object) -> Object:
    forecast: Object = cell["forecast"]
    whole = {**cell, "problem": forecast.get("problem")}
    row = {name: size_of(whole, name) for name in [*SIZES, *FORMS]}
    row.update({name: cell.get(name) for name in ("id", "label", "mechanism", "device")})
    row["task"] = cell.get("task_label") or cell["task"]
    row["implementation"] = forecast.get("implementation") or cell.get("implementation")
    row.update({name: forecast.get(name) for name in _FORECAST})
    row.update({name: forecast.get("cost", {}).get(name) for name in _COST})
    return row


def _asked(words: list[str], program: Program) -> list[Object]:
    answer: list[Object] = json.loads(ask(find_program(program), [*words, "--json"]))
    return answer


def _named(row: Object, columns: list[str]) -> Object:
    """These fields, lists as the names of what they hold."""
    return {key: _joined(row.get(key)) for key in columns}


def _joined(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return ", ".join(one["name"] if isinstance(one, dict) else str(one) for one in value)
