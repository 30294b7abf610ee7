"""What a wheel needs, for the pyproject.toml beside this folder: PyTorch only where it is built with one.

Called by scikit-build-core. A wheel that is built without PyTorch holds the program without the worker,
which needs none. With one it needs the minor version that it was built with, as [build-system] pins it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

ALWAYS = ["numpy", "pandas>=2", "altair>=5.2", "jsonschema>=4"]


def pinned_torch(text: str) -> str:
    """The requirement of torch to build with, in the text of pyproject.toml."""
    return next(part for part in text.split('"') if part.startswith("torch>="))


def dynamic_metadata(field: str, settings: dict[str, Any] | None = None) -> list[str]:
    if field != "dependencies" or settings:
        raise ValueError(f"{field!r} with {settings!r}: expected dependencies, without settings")
    if importlib.util.find_spec("torch") is None:
        return ALWAYS
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    return [*ALWAYS, pinned_torch(text)]
