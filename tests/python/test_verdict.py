"""The verdict of results, joined tables, and the columns that say something."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import altair
import attnbench
import pandas
import pytest
from conftest import FIXTURES
from test_run import SHORT, TINY


def test_a_verdict_is_what_the_program_says(program: str) -> None:
    table = attnbench.read(FIXTURES / "quickstart.json")
    said = attnbench.verdict(table)
    assert str(said).startswith("Verdict\n" + said.verdicts[0]["headline"][:40])
    assert repr(said) == said.text == table.attnbench.verdict.text
    both = attnbench.verdict([FIXTURES / "quickstart.json", FIXTURES / "mqar_smoke.json"])
    assert both.text.count("Verdict\n") == 2
    quick, learned = both.verdicts
    assert quick["text"].rstrip() == said.text
    assert quick["rankings"][0]["rows"][0]["label"] in said.text
    assert quick["tasks"][0]["fastest"][1]["labels"] == ["window"]
    assert quick["tasks"][0]["fastest"][1]["length"] == 512
    assert {"topic", "text"} == set(quick["tasks"][0]["lines"][0])
    assert learned["tasks"][0]["accuracies"][0]["label"] == "softmax"


def test_a_run_ends_with_its_verdict(
    program: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    table = attnbench.run({**TINY, "mechanisms": ["softmax", "linear"]}, progress="text", **SHORT)
    shown = capsys.readouterr().err
    assert shown.rstrip().endswith(attnbench.verdict(table).text)
    attnbench.run(TINY, progress="none", **SHORT)
    assert capsys.readouterr().err == ""


def test_results_are_joined_and_say_where_they_are_from(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        shutil.copy(FIXTURES / "quickstart.json", f"{name}/result.json")
    single = attnbench.read("a")
    table = attnbench.read(["a", Path("b"), FIXTURES / "mqar_smoke.json"])
    assert list(table.columns[:2]) == ["result", "id"]
    sizes = table.groupby("result").size()
    assert sizes["a"] == sizes["b"] == len(single)
    first = table[table.result == "a"][single.columns]
    pandas.testing.assert_frame_equal(first, single, check_dtype=False)
    assert str(table.length.dtype) == "Int64"
    assert "result" in attnbench.view(table).columns
    names = attnbench.figures(table[table.status == "ok"])
    assert "mqar_smoke_mqar_accuracy" in names
    assert attnbench.figure(table, "mqar_smoke_mqar_accuracy").to_dict()["layer"]
    samples = attnbench.samples(["a", "b"])
    assert list(samples.result.unique()) == ["a", "b"]
    by_hand = pandas.concat([single, attnbench.read(FIXTURES / "decode.json")])
    with pytest.raises(attnbench.BadResult, match=r"join results with attnbench.read"):
        attnbench.figures(by_hand)
    for bad in ([], ["a", "./a"]):
        with pytest.raises(ValueError, match="expected one result or more, each named once"):
            attnbench.read(bad)


def test_the_view_has_the_columns_that_say_something(stored: Path) -> None:
    table = attnbench.read(stored)
    seen = attnbench.view(table)
    assert len(seen) == len(table)
    assert {"label", "status"} <= set(seen.columns)
    assert len(seen.columns) <= 22 < len(table.columns)
    assert not {"id", "batch", "head_dim", "key_length"} & set(seen.columns)
    assert {"median_seconds", "accuracy"} & set(seen.columns)
    assert "<table" in table.attnbench._repr_html_()
    assert repr(table.attnbench) == repr(seen)
    one = attnbench.view(table.head(1))
    assert {"label", "status"} <= set(one.columns)
    with pytest.raises(AttributeError, match="no table of attnbench.read"):
        pandas.DataFrame({"a": [1]}).attnbench.verdict


def test_a_table_is_shown_ranked_with_its_chart(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(FIXTURES / "quickstart.json", tmp_path / "result.json")
    table = attnbench.read(tmp_path)
    rows = table.attnbench.ranked
    assert len(rows) == table.primary.fillna(True).sum()
    for _, same in rows[rows.status == "ok"].groupby(["task", "length"]):
        assert same.median_seconds.is_monotonic_increasing
    for _, same in rows.groupby(["task", "length"]):
        assert (same.status != "ok").is_monotonic_increasing
    assert list(rows.task.unique()) == list(table.task.unique())
    learned = attnbench.read(FIXTURES / "mqar_smoke.json").attnbench.ranked
    assert learned.accuracy.is_monotonic_decreasing
    assert learned.label.iloc[0] == "softmax"

    # A table that is shown starts no program: there is a picture where the run has stored one.
    monkeypatch.setenv("ATTNBENCH_PROGRAM", "/nowhere/attnbench")
    assert "<img" not in table.attnbench._repr_html_()
    (tmp_path / "figures").mkdir()
    chart = altair.Chart(altair.InlineData([{"x": 1}])).mark_point().encode(x="x:Q")
    for name in ("decode_step_time", "forward_roofline", "forward_time"):
        titled = chart.properties(title=name).to_json()
        (tmp_path / f"figures/{name}.vl.json").write_text(titled)
    shown = table.attnbench._repr_html_()
    assert shown.count("<img") == 1
    encoded = shown.split("base64,")[1].split('"')[0]
    assert "forward_time" in base64.b64decode(encoded).decode()
    assert shown.index("<table") < shown.index("<img")
    (tmp_path / "figures/forward_time.vl.json").write_text("{")
    assert "forward_time.vl.json: no JSON" in table.attnbench._repr_html_()
    monkeypatch.setattr("attnbench.charts.find_spec", lambda name: None)
    assert "<img" not in table.attnbench._repr_html_()
