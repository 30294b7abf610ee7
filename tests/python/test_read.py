"""Tables against those that the program writes, and results that are none."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import attnbench
import pandas
import pytest
from conftest import FIXTURES


def same(text: str, value: Any) -> bool:
    """Whether a field of the program's CSV says what the table has."""
    if text == "" or pandas.isna(value):
        return text == "" and pandas.isna(value)
    if text in ("true", "false"):
        return bool(value) == (text == "true")
    if isinstance(value, str):
        is_json = text.startswith("{")
        return json.loads(value) == json.loads(text) if is_json else value == text
    return float(text) == float(value)


def expect_same(table: pandas.DataFrame, text: str) -> None:
    lines = list(csv.reader(text.splitlines()))
    assert list(table.columns) == lines[0], "results.py names other columns than reports/tables/csv.cpp"
    assert len(table) == len(lines) - 1 > 0
    for row, line in zip(table.itertuples(index=False), lines[1:], strict=True):
        for name, value, field in zip(lines[0], row, line, strict=True):
            assert same(field, value), (row[0], name, field, value)


def test_read_is_the_programs_tidy_table(stored: Path, program: str) -> None:
    done = subprocess.run(
        [program, "report", stored, "--csv", "-"], check=True, capture_output=True, text=True
    )
    expect_same(attnbench.read(stored), done.stdout)


def test_samples_are_the_programs(stored: Path, program: str, tmp_path: Path) -> None:
    command = [program, "report", str(stored), "--samples", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    table = attnbench.samples(stored)
    if len(text.splitlines()) == 1:
        assert list(table.columns) == text.strip().split(",")
        assert table.empty
    else:
        expect_same(table, text)
        assert attnbench.read(stored, samples=True).equals(table)


def test_samples_of_a_run_are_in_its_journal(program: str, tmp_path: Path) -> None:
    stored = FIXTURES / "quickstart.json"
    result = json.loads(stored.read_text(encoding="utf-8"))
    of_samples = ("samples_seconds", "samples_cpu_share", "samples_switches", "preempted")
    records: dict[tuple[str, int], Any] = {}
    for cell in result["attnbench"]["cells"]:
        for what, timing in cell.get("timing", {}).items():
            for one in timing["rounds"]:
                whole = {key: one.pop(key) for key in of_samples if key in one}
                records.setdefault((cell["id"], one["round"]), {})[what] = whole
    journal = [
        json.dumps({"type": "record", "cell": cell, "round": number, "status": "ok"}
                   | {"measured": {"timing": timing}})
        for (cell, number), timing in records.items()
    ]
    result["attnbench"]["run"]["samples"] = "journal.jsonl"
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (tmp_path / "journal.jsonl").write_text("\n".join([*journal, '{"type": "rec']), encoding="utf-8")
    columns = ["id", "timing", "round", "sample", "seconds"]
    assert attnbench.samples(tmp_path)[columns].equals(attnbench.samples(stored)[columns])
    (tmp_path / "journal.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(attnbench.BadResult, match="no samples; name the folder of a run"):
        attnbench.samples(tmp_path)
    (tmp_path / "journal.jsonl").unlink()
    with pytest.raises(attnbench.BadResult, match="journal.jsonl, beside it"):
        attnbench.samples(tmp_path)


def test_columns_have_their_kinds() -> None:
    table = attnbench.read(FIXTURES / "quickstart.json")
    assert str(table.length.dtype) == "Int64"
    assert str(table.primary.dtype) == "boolean"
    assert table.median_seconds.dtype == "float64"
    assert (table[(table.status == "ok") & table.primary].median_seconds > 0).all()
    trained = attnbench.read(FIXTURES / "mqar_smoke.json")
    assert trained.primary.isna().all()
    assert trained[(trained.status == "ok") & trained.primary].empty
    assert (trained.accuracy > 0).all()
    assert str(trained.training_converged.dtype) == "boolean"


def test_a_folder_is_read_by_its_result(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes((FIXTURES / "decode.json").read_bytes())
    table = attnbench.read(tmp_path)
    assert table.equals(attnbench.read(FIXTURES / "decode.json"))
    assert table.attrs["attnbench_result"] == str(tmp_path / "result.json")


def test_a_table_without_a_cell_that_is_ok_warns(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "decode.json").read_text())
    for cell in document["attnbench"]["cells"]:
        cell["status"] = "disturbed"
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document))
    count = len(document["attnbench"]["cells"])
    words = rf"no cell is ok \({count} disturbed\).* --resume {tmp_path} --retry disturbed"
    with pytest.warns(UserWarning, match=words):
        attnbench.read(file)


def refused(path: Path) -> str:
    with pytest.raises(attnbench.BadResult) as caught:
        attnbench.read(path)
    return str(caught.value)


def changed(folder: Path, place: list[Any], value: Any) -> Path:
    document = json.loads((FIXTURES / "decode.json").read_text())
    part = document
    for key in place[:-1]:
        part = part[key]
    if value is None:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    file = folder / "changed.json"
    file.write_text(json.dumps(document))
    return file


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "nothing.json: no such file; expected a run's folder" in refused(
        tmp_path / "nothing.json"
    )
    assert "no such file" in refused(tmp_path)
    (tmp_path / "journal.jsonl").touch()
    assert "attnbench run --resume" in refused(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[1, NaN]", b"[" * 100000],
    ids=["empty", "half", "no UTF-8", "NaN", "deep"],
)
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    assert "bad.json: no JSON: " in refused(file)


def test_other_json_is_refused(tmp_path: Path) -> None:
    for text in ("3", "[]", '{"benchmarks": []}'):
        file = tmp_path / "other.json"
        file.write_text(text)
        assert 'other.json: no result of attnbench: expected an object with "attnbench"' in refused(
            file
        )


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (["attnbench", "schema"], 2, "/attnbench/schema: "),
        (["attnbench", "cells"], {}, "/attnbench/cells: "),
        (["attnbench", "cells", 3, "status"], "fine", "/attnbench/cells/3/status: "),
        (["attnbench", "cells", 3, "options"], None, "/attnbench/cells/3: 'options'"),
        (
            ["attnbench", "cells", 0, "timing", "step", "median_seconds"],
            "1",
            "/attnbench/cells/0/timing/step/median_seconds: ",
        ),
        (["attnbench", "cells", 0, "timing", "step", "rounds"], 3, "/timing/step/rounds: "),
    ],
)
def test_what_breaks_the_schema_is_refused_with_its_place(
    tmp_path: Path, place: list[Any], value: Any, words: str
) -> None:
    message = refused(changed(tmp_path, place, value))
    assert "changed.json: " in message
    assert words in message
    assert "attnbench schema result" in message
