"""What there is and what a suite would run, as tables; checks and comparisons; the package's names."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attnbench
import numpy as np
import pandas
import pytest
from attnbench.running import flags_of
from conftest import FIXTURES, Stand, at_night
from test_prepared import prepare_listops
from test_run import TINY


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_public_names_alone_are_shown() -> None:
    assert dir(attnbench) == sorted(attnbench.__all__)
    kernels = attnbench._HOMES["kernels"]  # tests/kernels_from_python_test.py: they need PyTorch
    for name in set(attnbench.__all__) - set(kernels):
        assert getattr(attnbench, name).__doc__, name
    if importlib.util.find_spec("torch") is None:
        for name in kernels:
            with pytest.raises(attnbench.OperatorsMissing, match="pip install torch"):
                getattr(attnbench, name)
    with pytest.raises(AttributeError, match="no attribute 'figrue'"):
        attnbench.figrue  # noqa: B018
    assert attnbench.__version__.count(".") == 2


@at_night
def test_examples_of_the_docstrings(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("monday", "tuesday"):
        Path("runs", name).mkdir(parents=True)
        shutil.copy(FIXTURES / "quickstart.json", f"runs/{name}/result.json")
    prepare_listops(program, Path("data"))
    Path("near.py").write_text("def near(query, key, value, causal: bool):\n    return value * 2\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "near", raising=False)
    tensors = [Stand((1, 2, 128, 16))] * 3
    torch = SimpleNamespace(randn=lambda *sizes: SimpleNamespace(unbind=lambda axis: tensors))
    there = {"attnbench": attnbench, "near": importlib.import_module("near").near, "torch": torch}
    tried = 0
    with warnings.catch_warnings(), pandas.option_context("display.width", 200):
        warnings.simplefilter("ignore")  # cells that are disturbed
        for module in pkgutil.iter_modules(attnbench.__path__):
            if module.name == "kernels":
                continue  # they are tried where there is PyTorch
            found = importlib.import_module(f"attnbench.{module.name}")
            result = doctest.testmod(
                found, extraglobs=there, optionflags=doctest.NORMALIZE_WHITESPACE
            )
            assert result.failed == 0, module.name
            tried += result.attempted
    assert tried > 20


def test_tables_of_what_there_is(program: str) -> None:
    done = subprocess.run([program, "list"], check=True, capture_output=True, text=True)
    for table in (
        attnbench.mechanisms(),
        attnbench.tasks(),
        attnbench.suites(),
        attnbench.shapes(),
    ):
        assert len(table) > 5
        assert all(name in done.stdout for name in table.name)
        assert table.title.str.len().min() > 5
    described = attnbench.describe("flash")
    assert described.name == "softmax"
    assert repr(described).startswith("flash stands for softmax/tiled")
    assert list(described.options.columns)[:3] == ["name", "type", "default"]
    assert "train_examples" in set(attnbench.describe("copy").options.name)
    assert attnbench.describe("latte_v1.figure_2").document["set"]["heads"] == 4
    with pytest.raises(attnbench.ProgramFailed, match='nothing is called "nothing"'):
        attnbench.describe("nothing")


def test_the_shape_of_a_known_model(program: str) -> None:
    described = attnbench.describe("gemma2-9b").document
    assert (described["heads"], described["kv_heads"], described["window"]) == (16, 8, 4096)
    cells = attnbench.plan(["flash", "window"], shape="gemma2-9b", length=[256, 512])
    assert list(cells.length) == [256, 512] * 2
    assert (set(cells.heads), set(cells.kv_heads), set(cells.head_dim)) == ({16}, {8}, {256})
    used = cells.attrs["attnbench_shapes"][0][0]
    assert used["not_taken"] == ["layers", "window by flash"]
    by_hand = attnbench.plan(["flash"], heads=16, kv_heads=8, head_dim=256, length=[256, 512])
    assert list(by_hand.id) == list(cells.id[:2])
    assert by_hand.attrs["attnbench_shapes"] == [[]]
    with pytest.raises(attnbench.ProgramFailed, match='did you mean "gemma2-9b"'):
        attnbench.plan(["flash"], shape="gemma2-9")


def test_a_plan_is_a_table_of_cells(program: str) -> None:
    cells = attnbench.plan({**TINY, "mechanisms": ["softmax", "linformer"]}, set={"batch": 2})
    assert list(cells.length) == [16, 32] * 2
    assert set(cells.batch) == {2}
    assert list(cells.supported) == [True, True, False, False]
    assert cells.reason.iloc[2].startswith("linformer: causal is undefined")
    assert (cells.model_flops[cells.supported] > 0).all()
    assert cells.attrs["attnbench_totals"][0]["unsupported"] == 2
    assert not Path("runs").exists()
    with pytest.raises(ValueError, match="expected a dict, a path"):
        attnbench.plan([])


def test_what_a_check_finds_is_a_table(program: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "def wrong(query, key, value, causal: bool):\n    return value * 2\n"
        "wrong.patterns = ['causal']\nwrong.reference = 'softmax'\n"
    )
    options: dict[str, Any] = {
        "pattern": "causal",
        "dtype": "float32",
        "no_growth": True,
        "progress": False,
    }
    found = attnbench.check("python:wrong.py:wrong", **options)
    assert not found.holds
    assert "value_equals_reference" in set(found.broken.property)
    assert (found.broken.error > found.broken.tolerance).any()
    assert "value_equals_reference" in repr(found)
    assert "failed" in found.verdict
    with pytest.raises(attnbench.ProgramFailed, match='there is no mechanism "nothing"'):
        attnbench.check("nothing", **options)


def test_differences_are_a_table(program: str, tmp_path: Path) -> None:
    changed = (
        (FIXTURES / "decode.json").read_text().replace('"median_seconds":', '"median_seconds":1')
    )
    (tmp_path / "changed.json").write_text(changed)
    found = attnbench.compare(FIXTURES / "decode.json", tmp_path / "changed.json")
    assert found.exit_code == 0
    assert (found.table.ratio > 0).all()
    assert (found.table.new_seconds != found.table.base_seconds).any()
    assert "UNCLEAR" in repr(found)
    other = attnbench.compare(FIXTURES / "decode.json", FIXTURES / "mqar_smoke.json")
    assert other.exit_code == 4
    assert other.table.ratio.isna().all()
    assert other.folders == ()
    with pytest.raises(attnbench.ProgramFailed, match="exit code 2"):
        attnbench.ab("flash", progress="none")


def test_sides_in_turns_name_their_folder(program: str, tmp_path: Path) -> None:
    found = attnbench.ab(
        "softmax/composite",
        "flash",
        length=16,
        rounds=2,
        rounds_most=2,
        confirm=0,
        no_ceilings=True,
        no_report=True,
        now=True,
        progress="none",
        out=tmp_path / "run",
    )
    assert found.folders == (tmp_path / "run",)
    assert {"softmax/composite", "flash"} <= set(attnbench.read(found.folders[0]).label)


def test_dtypes_of_libraries_are_words() -> None:
    class dtype:
        def __repr__(self) -> str:
            return "torch.bfloat16"

    dtype.__module__ = "torch"
    assert flags_of({"dtype": dtype()}) == ["--dtype=bfloat16"]
    assert flags_of({"dtype": [np.float32, np.dtype("float64")], "set": {"dtype": np.float16}}) == [
        "--dtype=float32,float64",
        "--set=dtype=float16",
    ]
