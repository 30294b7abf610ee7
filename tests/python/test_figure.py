"""Figures as charts: stored ones, and those that the program draws when asked."""

from __future__ import annotations

import json
from pathlib import Path

import altair
import attnbench
import pytest
from conftest import FIXTURES


@pytest.mark.parametrize("suite", ["quickstart", "mqar_smoke"])
def test_every_figure_is_shown_checked_and_saved(suite: str, program: str, tmp_path: Path) -> None:
    stored = FIXTURES / f"{suite}.json"
    names = attnbench.figures(stored)
    assert names
    for name in names:
        chart = attnbench.figure(stored, name)
        drawn = chart.to_dict()
        kind = altair.FacetChart if "facet" in drawn else altair.LayerChart
        assert type(chart) is kind, name
        assert drawn["$schema"] == altair.SCHEMA_URL
        assert altair.SCHEMA_URL in str(chart._repr_mimebundle_())
        # Vega itself finds more than the schema does.
        chart.save(tmp_path / "figure.svg")
        assert "graphics-symbol" in (tmp_path / "figure.svg").read_text(), name
        restyled = chart.properties(title="ours").configure_axis(labelFontSize=9)
        assert restyled.to_dict()["title"] == "ours"


@pytest.mark.parametrize(
    "kind", ["Chart", "LayerChart", "VConcatChart", "HConcatChart", "RepeatChart"]
)
def test_a_figure_is_of_its_kind(kind: str, tmp_path: Path) -> None:
    chart = altair.Chart(altair.InlineData([{"x": 1}])).mark_point().encode(x="x:Q")
    made = {
        "Chart": chart,
        "LayerChart": chart + chart.mark_line().add_params(altair.selection_point(name="shown")),
        "VConcatChart": chart & chart,
        "HConcatChart": chart | chart,
        "RepeatChart": chart.encode(x=altair.X(altair.repeat(), type="quantitative")).repeat(["x"]),
    }[kind]
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/it.vl.json").write_text(made.to_json())
    (tmp_path / "result.json").write_bytes((FIXTURES / "decode.json").read_bytes())
    read = attnbench.figure(tmp_path, "it")
    assert type(read).__name__ == kind
    read.save(tmp_path / "it.svg")
    assert "<svg" in (tmp_path / "it.svg").read_text()


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
    (tmp_path / "figures/points.vl.json").write_text(json.dumps({**chart.to_dict(), "mark": None}))
    with pytest.raises(attnbench.BadResult, match="figure 'points' is none for Altair"):
        attnbench.figure(tmp_path, "points")
    (tmp_path / "figures/points.vl.json").write_text("{")
    with pytest.raises(attnbench.BadResult, match="points.vl.json: no JSON"):
        attnbench.figures(tmp_path)
