"""attnbench from Python: runs suites, reads results as pandas tables and Altair charts, and calls the
kernels on tensors of PyTorch.

table = attnbench.run("quickstart", profile="quick")
table = attnbench.read("runs/quickstart-latest")
chart = attnbench.figure(table, "training_time")
y = attnbench.attention(query, key, value, mechanism="linear")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnbench.errors import AttnbenchError as AttnbenchError
    from attnbench.errors import BadResult as BadResult
    from attnbench.errors import Interrupted as Interrupted
    from attnbench.errors import OperatorsMissing as OperatorsMissing
    from attnbench.errors import ProgramFailed as ProgramFailed
    from attnbench.errors import ProgramNotFound as ProgramNotFound
    from attnbench.figures import figure as figure
    from attnbench.figures import figures as figures
    from attnbench.kernels import Mechanism as Mechanism
    from attnbench.kernels import attention as attention
    from attnbench.kernels import scaled_dot_product_attention as scaled_dot_product_attention
    from attnbench.results import read as read
    from attnbench.results import samples as samples
    from attnbench.running import run as run

# Where each public name is defined. A name is imported when it is first used: reading results needs
# no PyTorch, calling kernels no pandas, and the command line neither.
_HOMES = {
    "errors": (
        "AttnbenchError",
        "BadResult",
        "Interrupted",
        "OperatorsMissing",
        "ProgramFailed",
        "ProgramNotFound",
    ),
    "figures": ("figure", "figures"),
    "kernels": ("Mechanism", "attention", "scaled_dot_product_attention"),
    "results": ("read", "samples"),
    "running": ("run",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"attnbench.{_HOME[name]}"), name)
    elif name in ("kernels", "progress", "results", "running", "program", "errors"):
        value = import_module(f"attnbench.{name}")
    else:
        raise AttributeError(f"module 'attnbench' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
