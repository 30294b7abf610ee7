"""Figures as charts: stored ones, and those that the program draws when asked."""

from __future__ import annotations

import json
from pathlib import Path

import altair
import attnbench
import pytest
from conftest import FIXTURES


def test_every_figure_becomes_a_chart(stored: Path, program: str) -> None:
    names = attnbench.figures(stored)
    assert names
    for name in names:
        chart = attnbench.figure(stored, name)
        assert isinstance(chart, altair.TopLevelMixin)
        drawn = chart.to_dict(validate=False)
        assert "vega-lite" in drawn["$schema"]
        assert any(drawn.get(part) for part in ("data", "datasets", "layer"))


def test_stored_figures_need_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNBENCH_PROGRAM", "/nowhere/attnbench")
    (tmp_path / "result.json").write_bytes((FIXTURES / "decode.json").read_bytes())
    with pytest.raises(attnbench.ProgramNotFound, match="ATTNBENCH_PROGRAM '/nowhere/attnbench'"):
        attnbench.figures(tmp_path)
    chart = altair.Chart(altair.InlineData([{"x": 1}])).mark_point().encode(x="x:Q")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/points.vl.json").write_text(json.dumps(chart.to_dict()))
    table = attnbench.read(tmp_path)
    assert attnbench.figures(table) == ["points"]
    restyled = attnbench.figure(table, "points").properties(width=123)
    assert restyled.to_dict()["width"] == 123
    assert '[{"x": 1}]' in json.dumps(restyled.to_dict())
    with pytest.raises(ValueError, match="no figure 'point'; there are: points. Did you mean"):
        attnbench.figure(table, "point")
    table.attrs.clear()
    with pytest.raises(attnbench.BadResult, match="pass the run's folder"):
        attnbench.figures(table)
    (tmp_path / "figures/points.vl.json").write_text("{")
    with pytest.raises(attnbench.BadResult, match="points.vl.json: no JSON"):
        attnbench.figures(tmp_path)
