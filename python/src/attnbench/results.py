"""Results as tables: the columns of docs/results.md, from a result.json alone."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pandas

from attnbench.errors import BadResult

Object = dict[str, Any]

# Columns of every table, in order, by kind.
SIZES = (
    "batch heads kv_heads length key_length head_dim value_dim latents_total latents_per_head"
).split()
FORMS = ["pattern", "scope", "dtype", "autocast"]
_TIMES = (
    "median_seconds low_seconds high_seconds interval minimum_seconds calibrated_median_seconds"
).split()
_OF_PARTS = {
    "input_bytes": "memory",
    "output_bytes": "memory",
    "saved_bytes": "memory",
    "workspace_bytes": "memory",
    "peak_bytes": "memory",
    "state_bytes": "metrics",
    "crossover_length": "metrics",
    "crossover_length_low": "metrics",
    "crossover_length_high": "metrics",
    "efficiency_length": "metrics",
    "verdict": "crossover",
    "against": "crossover",
    "model_flops": "cost",
    "floor_seconds": "roofline",
    "share": "roofline",
    "bound": "roofline",
}
_FIXED = [
    *("id", "label", "task", "mechanism", "implementation", "device"),
    *SIZES,
    *FORMS,
    *("options", "status", "reason", "timing"),
    *_TIMES,
    "rounds",
    *_OF_PARTS,
    "primary",
]
_OF_CELL = ["id", "label", "mechanism", "status", "reason", "result"]
_OF_TRAININGS = (
    "converged disturbed stopped steps epochs chance guess reach examples_unique"
).split()

_TEXTS = {
    *("id", "label", "task", "mechanism", "implementation", "device", "options", "status"),
    *("reason", "timing", "interval", "verdict", "against", "bound", "result"),
    *FORMS,
}
_COUNTS = {*SIZES, "rounds", "round", "sample"}
_FLAGS = {"primary", "preempted", "round_disturbed"}

_OF_SAMPLES = ("samples_seconds", "samples_cpu_share", "preempted")
_SAMPLES = ("id label task timing round sample seconds cpu_share preempted round_disturbed").split()


Stored = str | os.PathLike[str]
Result = pandas.DataFrame | Stored | Sequence[Stored]


def read(path: Stored | Sequence[Stored], *, samples: bool = False) -> pandas.DataFrame:
    """The tidy table of a result, or of several: a row for each cell and each of its timings.

    path: a run's folder or a result.json, or a list of them, whose tables are joined; the column
    `result`, the first one, then says which of them a row is of, as it was named. Columns, with
    their units in their names, are those of docs/results.md; a cell without a timing has one row.
    Times are in seconds, sizes in bytes; what was not measured is missing. Whole numbers are
    Int64, truths boolean, others float64; `options` is JSON. With samples=True: the table of
    attnbench.samples. attnbench.view leaves out the columns that say nothing.

    The table's attrs["attnbench_result"] is the file, or the list of files, which attnbench.figure
    and attnbench.verdict read. Raises BadResult, ValueError for an empty list and a result that is
    named twice; warns where no cell of a result is ok, for then there is nothing to compare.

    >>> table = attnbench.read(["runs/monday", "runs/tuesday"])
    >>> table.groupby("result").size()
    result
    runs/monday     42
    runs/tuesday    42
    dtype: int64
    """
    several = not isinstance(path, (str, os.PathLike))
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = [result_file(one) for one in given]
    if not files or len({file.resolve() for file in files}) < len(files):
        raise ValueError(f"{path!r}: expected one result or more, each named once")
    cells: list[Object] = []
    for name, file in zip(given, files, strict=True):
        own: Object = load(file)["attnbench"]
        of_file: list[Object] = own["cells"]
        _warn_of_none(file, of_file)
        if samples and "samples" in own.get("run", {}):
            _add_samples(of_file, file, own["run"]["samples"])
        cells += [{**cell, "result": os.fspath(name)} for cell in of_file]
    rows, columns = (_sample_rows(cells), _SAMPLES) if samples else _cell_rows(cells)
    timed = any(one["rounds"] for cell in cells for one in (cell.get("timing") or {}).values())
    if samples and timed and not rows:
        raise BadResult(f"{', '.join(map(str, files))}: no samples; name the folder of a run")
    table = typed(rows, ["result", *columns] if several else columns)
    table.attrs["attnbench_result"] = [str(file) for file in files] if several else str(files[0])
    return table


def _warn_of_none(file: Path, cells: list[Object]) -> None:
    statuses = Counter(cell["status"] for cell in cells)
    if "ok" in statuses:
        return
    counts = ", ".join(f"{count} {status}" for status, count in statuses.items()) or "it has none"
    words = f'{file}: no cell is ok ({counts}): of the table, rows with status "ok" are none'
    if "disturbed" in statuses and file.name == "result.json":
        folder = shlex.quote(str(file.parent))
        words += f"; measure again: attnbench run --resume {folder} --retry disturbed"
    warnings.warn(words, stacklevel=3)


def samples(path: Stored | Sequence[Stored]) -> pandas.DataFrame:
    """A row for each sample of each timing of a result, or of several; `seconds` is its time.

    preempted ones are left out of medians, round_disturbed says that the whole round is.
    path and errors are those of attnbench.read.

    >>> attnbench.samples("runs/monday")[["label", "timing", "round", "sample"]].head(2)
         label   timing  round  sample
    0  softmax  forward      0       0
    1  softmax  forward      0       1
    """
    return read(path, samples=True)


def result_file(path: Stored) -> Path:
    """The absolute path of a result.json; `path` may be a run's folder."""
    given = Path(path)
    file = given / "result.json" if given.is_dir() else given
    if not file.is_file():
        if given.is_dir() and (given / "journal.jsonl").exists():
            raise BadResult(
                f"{given}: the run is not finished; go on with: attnbench run --resume {given}"
            )
        raise BadResult(f"{file}: no such file; expected a run's folder or a result.json")
    return file.absolute()


def files_of(result: Result) -> list[Path]:
    """The files of a result, of several, or of a table of them. Raises BadResult."""
    if not isinstance(result, pandas.DataFrame):
        if isinstance(result, (str, os.PathLike)):
            return [result_file(result)]
        return [result_file(one) for one in result]
    source = result.attrs.get("attnbench_result")
    if not source:
        raise BadResult(
            "this table does not say which result it is of (attrs were lost, as pandas.concat does "
            "of tables of several): pass the run's folder, or join results with "
            "attnbench.read([A, B])"
        )
    return [result_file(one) for one in ([source] if isinstance(source, str) else source)]


def load(file: Path) -> Object:
    """A result.json that keeps to the published schema."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadResult(f"{file}: no JSON: {error}") from error
    if not isinstance(document, dict) or "attnbench" not in document:
        raise BadResult(f'{file}: no result of attnbench: expected an object with "attnbench"')
    broken = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if broken is not None:
        place = "".join(f"/{part}" for part in broken.absolute_path) or "/"
        raise BadResult(
            f"{file}: {place}: {_complaint(broken)}; `attnbench schema result` is the schema"
        )
    return document


@functools.cache
def _validator() -> jsonschema.Draft7Validator:
    text = (importlib.resources.files("attnbench") / "result.schema.json").read_text("utf-8")
    return jsonschema.Draft7Validator(json.loads(text))


def _complaint(error: jsonschema.ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    words = error.message if len(error.message) <= 200 else error.message[:200] + " …"
    expected = schema.get("title") or schema.get("description")
    return f"{words} (expected {expected})" if expected else words


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _object(cell: Object, part: str) -> Object:
    found = cell.get(part)
    return found if isinstance(found, dict) else {}


def _flat(value: Any) -> Any:
    """A field: lists and objects as JSON."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return value


def size_of(cell: Object, name: str) -> Any:
    """A size or setting of a cell, as worked out or as it was said."""
    for part in ("problem", "settings", "options"):
        value = _object(cell, part).get(name)
        if value is not None:
            return value
    return None


def _keys(cells: list[Object], part: str) -> list[str]:
    """Names of the plain values that any cell has there."""
    return sorted(
        {
            key
            for cell in cells
            for key, value in _object(cell, part).items()
            if not isinstance(value, (dict, list))
        }
    )


def _found_columns(cells: list[Object]) -> dict[str, tuple[str, str]]:
    """What some cells have: part and key, by the name of the column."""
    found: dict[str, tuple[str, str]] = {}
    for key in _keys(cells, "metrics"):
        if key not in _FIXED:
            found[key] = ("metrics", key)
    for key in _OF_TRAININGS:
        if any(key in _object(cell, "training") for cell in cells):
            found[f"training_{key}"] = ("training", key)
    for key in _keys(cells, "settings"):
        if key not in SIZES and key not in FORMS:
            taken = key in _FIXED or key in found
            found[f"setting_{key}" if taken else key] = ("settings", key)
    return found


def _cell_rows(cells: list[Object]) -> tuple[list[Object], list[str]]:
    found = _found_columns(cells)
    rows: list[Object] = []
    for cell in cells:
        whole = _of_cell(cell, found)
        timings = cell.get("timing") or {}
        for name, timing in sorted(timings.items()):
            times = {key: timing.get(key) for key in _TIMES}
            primary = name == cell.get("primary")
            rounds = len(timing["rounds"])
            rows.append({**whole, "timing": name, **times, "rounds": rounds, "primary": primary})
        if not timings:
            rows.append(whole)
    return rows, [*_FIXED, *found]


def _of_cell(cell: Object, found: dict[str, tuple[str, str]]) -> Object:
    row: Object = {key: cell.get(key) for key in _OF_CELL}
    row["task"] = cell.get("task_label") or cell["task"]
    row["implementation"] = _object(cell, "chosen").get("implementation") or cell.get(
        "implementation"
    )
    row["device"] = cell.get("device", "cpu")
    row["options"] = _flat(cell["options"])
    row.update({key: _flat(size_of(cell, key)) for key in [*SIZES, *FORMS]})
    row.update({key: _flat(_object(cell, part).get(key)) for key, part in _OF_PARTS.items()})
    row.update({name: _flat(_object(cell, part).get(key)) for name, (part, key) in found.items()})
    return row


def _add_samples(cells: list[Object], file: Path, name: str) -> None:
    """Puts the samples into the rounds of the cells: a run keeps them in its journal."""
    try:
        lines = (file.parent / name).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadResult(f"{file}: its samples are in {name}, beside it: {error.strerror}") from None
    measured: dict[tuple[str, int], Object] = {}
    for line in lines:
        try:
            record = json.loads(line)
            if record["type"] == "record" and record["status"] == "ok":
                measured[record["cell"], record["round"]] = record["measured"]["timing"]
        except (ValueError, KeyError, TypeError):
            continue  # the last line, where the run was killed
    for cell in cells:
        for what, timing in (cell.get("timing") or {}).items():
            for one in timing["rounds"]:
                whole = measured.get((cell["id"], one.get("round")), {}).get(what, {})
                one.update({key: whole[key] for key in _OF_SAMPLES if key in whole})


def _sample_rows(cells: list[Object]) -> list[Object]:
    rows: list[Object] = []
    for cell in cells:
        own = {
            "result": cell["result"],
            "id": cell["id"],
            "label": cell["label"],
            "task": cell.get("task_label") or cell["task"],
        }
        for name, timing in sorted((cell.get("timing") or {}).items()):
            for one in timing["rounds"]:
                shares = one.get("samples_cpu_share", [])
                preempted = set(one.get("preempted", []))
                for index, seconds in enumerate(one.get("samples_seconds", [])):
                    rows.append(
                        {
                            **own,
                            "timing": name,
                            "round": one.get("round"),
                            "sample": index,
                            "seconds": seconds,
                            "cpu_share": shares[index] if index < len(shares) else None,
                            "preempted": index in preempted,
                            "round_disturbed": one.get("disturbed", False),
                        }
                    )
    return rows


def typed(rows: list[Object], columns: Iterable[str]) -> pandas.DataFrame:
    """Rows as a table whose columns have the kinds that attnbench.read says."""
    return pandas.DataFrame(
        {name: _series(name, [row.get(name) for row in rows]) for name in columns}
    )


def _series(name: str, values: list[Any]) -> pandas.Series[Any]:
    present = [value for value in values if value is not None]
    if name in _TEXTS:
        return pandas.Series(values, dtype=object)
    if name in _FLAGS or (present and all(isinstance(value, bool) for value in present)):
        return pandas.Series(values, dtype="boolean")
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in present):
        return pandas.Series(values, dtype=object)
    whole = all(float(value).is_integer() and abs(value) < 2**63 for value in present)
    counted = name in _COUNTS or (name not in _FIXED and all(type(v) is int for v in present))
    if whole and counted:
        return pandas.Series([None if v is None else int(v) for v in values], dtype="Int64")
    return pandas.Series(values, dtype="float64")
