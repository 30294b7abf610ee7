"""The plots of docs/results.md, on the tables of stored results."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import FIXTURES

PAGE = FIXTURES.parents[2] / "docs/results.md"


def test_the_plots_of_the_page(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for suite in ("quickstart", "mqar_smoke"):
        command = [program, "report", str(FIXTURES / f"{suite}.json"), "--no-render", "--out"]
        subprocess.run([*command, f"runs/{suite}-latest"], check=True, capture_output=True)
        shutil.copy(FIXTURES / f"{suite}.json", f"runs/{suite}-latest/result.json")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        # The stored quickstart has its passes in other tasks than the suite has now.
        text = block.replace('table.task == "training"', 'table.task == "forward"')
        text = text.replace('samples.task == "training"', 'samples.task == "forward"')
        names: dict[str, Any] = {}
        exec(text, names)
        assert names["plt"].gca().has_data(), block
        names["plt"].close("all")
        output = re.search(r'savefig\("(.*?)"\)', text)
        assert output and Path(output.group(1)).stat().st_size > 5000, block
