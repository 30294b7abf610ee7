"""What the tests of the package share: the built program, and stored results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

Tensor = Any
FIXTURES = Path(__file__).resolve().parent.parent / "reports/fixtures"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> str:
    """The built program, found as a user's is: by ATTNBENCH_PROGRAM."""
    path = os.environ["ATTNBENCH_TEST_PROGRAM"]
    monkeypatch.setenv("ATTNBENCH_PROGRAM", path)
    return path


@pytest.fixture(params=["quickstart", "decode", "mqar_smoke"])
def stored(request: pytest.FixtureRequest) -> Path:
    """Each of the stored results."""
    return FIXTURES / f"{request.param}.json"
