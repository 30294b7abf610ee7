"""Google Benchmark's own compare.py on results."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import FIXTURES

COMPARE = Path("/usr/share/benchmark/compare.py")
# Its test of significance is not asked for, and a mean is no reason to install SciPy.
SCIPY = """
import numpy
mannwhitneyu = None
def gmean(values): return numpy.exp(numpy.log(values).mean(axis=0))
"""


def written(program: str, folder: Path, cells: list[Any]) -> Path:
    """What the program writes for these cells of the stored result: it merges two halves of them."""
    document = json.loads((FIXTURES / "decode.json").read_text())
    folder.mkdir()
    halves = [folder / "one.json", folder / "two.json"]
    for first, file in enumerate(halves):
        document["attnbench"]["cells"] = cells[first::2]
        file.write_text(json.dumps(document))
    command = [program, "merge", *map(str, halves), "--out", str(folder / "both"), "--no-report"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "both/result.json"


@pytest.mark.skipif(not COMPARE.exists(), reason="needs Debian's libbenchmark-tools")
def test_compare_sees_no_disturbed_round(program: str, tmp_path: Path) -> None:
    loud = json.loads((FIXTURES / "decode.json").read_text())["attnbench"]["cells"]
    quiet = copy.deepcopy(loud)
    for cell, same in zip(loud, quiet, strict=True):
        for name, timing in cell.get("timing", {}).items():
            timing["rounds"][1]["median_seconds"] *= 500
            timing["rounds"][1]["disturbed"] = True
            del same["timing"][name]["rounds"][1]
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy/__init__.py").touch()
    (tmp_path / "scipy/stats.py").write_text(SCIPY)
    cells = {"quiet": quiet, "loud": loud}
    results = [written(program, tmp_path / name, cells[name]) for name in cells]
    seen = tmp_path / "seen.json"
    options = ["--no-utest", "--dump_to_json", str(seen)]
    command = [sys.executable, str(COMPARE), *options, "benchmarks", *map(str, results)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    rows = json.loads(seen.read_text())
    changes = [one["time"] for row in rows for one in row["measurements"]]
    assert len(changes) > 60
    assert set(changes) == {0}
