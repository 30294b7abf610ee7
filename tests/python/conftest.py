"""What the tests of the package share: the built program, and stored results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Tensor = Any
FIXTURES = Path(__file__).resolve().parent.parent / "reports/fixtures"

# Examples of documents, which measure for longer than the rest.
at_night = pytest.mark.skipif(os.environ.get("ATTNBENCH_TEST_TIER") != "full", reason="at night")


@dataclass(frozen=True)
class Stand:
    """What is asked of a tensor of PyTorch, which is not in the environment of these tests."""

    shape: tuple[int, ...] = (1, 2, 16, 8)
    dtype: str = "torch.float32"
    device: str = "cpu"
    requires_grad: bool = False


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
