"""Figures of a result as Altair charts, from the Vega-Lite specifications of the program."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import altair
import jsonschema

from attnbench.errors import BadResult
from attnbench.program import Program, ask, find_program
from attnbench.results import Result, files_of

Chart = (
    altair.Chart
    | altair.LayerChart
    | altair.HConcatChart
    | altair.VConcatChart
    | altair.ConcatChart
    | altair.FacetChart
    | altair.RepeatChart
)
_ENDING = ".vl.json"


def figures(result: Result, *, program: Program = None) -> list[str]:
    """Names of the figures of a result, as attnbench.figure takes them.

    result, program and errors are those of attnbench.figure. Of several results each name begins
    with that of its suite.

    >>> attnbench.figures("runs/monday")[:2]
    ['decode_state', 'decode_step_time']
    """
    return sorted(_specifications(result, program))


def figure(result: Result, name: str, *, program: Program = None) -> Chart:
    """The figure `name` of a result as an Altair chart, its numbers inside, to be restyled.

    result: a table of attnbench.read or attnbench.run, a run's folder, a result.json, or a list of
    these files. Figures that a run has stored (figures/*.vl.json) are read; else, and for several
    results, the program draws them. Raises BadResult, ProgramNotFound, ProgramFailed, and
    ValueError for a name that is no figure.

    >>> chart = attnbench.figure("runs/monday", "forward_time").properties(title="Ours")
    >>> chart.save("time.svg")
    """
    found = _specifications(result, program)
    if name not in found:
        near = get_close_matches(name, found, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        there = ", ".join(sorted(found)) or "none"
        raise ValueError(f"no figure {name!r}; there are: {there}.{meant}")
    specification = _with_lifted_params(found[name])
    specification.pop("$schema", None)  # Altair names the version of Vega-Lite that it shows
    try:
        chart: Chart = altair.Chart.from_dict(specification)
    except jsonschema.ValidationError as error:
        raise BadResult(
            f"figure {name!r} is none for Altair {altair.__version__} (Vega-Lite "
            f"{altair.VEGALITE_VERSION}): {error.message}; `attnbench report` draws it anew"
        ) from error
    return chart


def opening(result: Result, task: str) -> str:
    """The stored figure that says most of a task: its accuracy, else its time; "" where there is none.

    No program is started for it.
    """
    files = files_of(result)
    if len(files) != 1:
        return ""
    names = sorted(file.name[: -len(_ENDING)] for file in _files(files[0].parent / "figures"))
    own = [name for name in names if name.startswith(f"{task}_")]
    for ending in ("_accuracy", "_time"):
        for name in own:
            if name.endswith(ending):
                return name
    return own[0] if own else ""


def picture(result: Result, name: str) -> str:
    """The figure as an HTML image, without a script; "" where vl-convert-python is not installed."""
    if find_spec("vl_convert") is None:
        return ""
    text = io.StringIO()
    figure(result, name).save(text, format="svg")
    data = base64.b64encode(text.getvalue().encode()).decode()
    return f'<img alt="{name}" src="data:image/svg+xml;base64,{data}">'


def _with_lifted_params(specification: dict[str, Any]) -> dict[str, Any]:
    """The same with the parameters of layers at the top, selections by their layer's name.

    Altair lifts them without a name, which is a selection in every layer: Vega refuses that.
    """
    params, layers = list(specification.get("params", [])), []
    for index, layer in enumerate(specification.get("layer", [])):
        name = layer.get("name", f"layer_{index}")
        for one in layer.get("params", []):
            params.append({**one, "views": [name]} if "select" in one else one)
        layers.append({**{key: layer[key] for key in layer if key != "params"}, "name": name})
    return {**specification, "params": params, "layer": layers} if layers else specification


def _specifications(result: Result, program: Program) -> dict[str, Any]:
    files = files_of(result)
    if len(files) == 1 and files[0].name == "result.json":
        stored = _stored(files[0].parent / "figures")
        if stored:
            return stored
    with tempfile.TemporaryDirectory(prefix="attnbench-") as folder:
        words = ["report", *map(str, files), "--no-render", "--out", folder]
        ask(find_program(program), words)
        return _stored(Path(folder) / "figures")


def _files(folder: Path) -> list[Path]:
    return list(folder.glob("*" + _ENDING))


def _stored(folder: Path) -> dict[str, Any]:
    found = {}
    for file in _files(folder):
        try:
            found[file.name[: -len(_ENDING)]] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadResult(
                f"{file}: no JSON: {error}; `attnbench report` writes it anew"
            ) from error
    return found
