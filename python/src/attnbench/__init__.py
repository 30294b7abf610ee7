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
    from attnbench.catalogue import Description as Description
    from attnbench.catalogue import claims as claims
    from attnbench.catalogue import describe as describe
    from attnbench.catalogue import mechanisms as mechanisms
    from attnbench.catalogue import plan as plan
    from attnbench.catalogue import shapes as shapes
    from attnbench.catalogue import suites as suites
    from attnbench.catalogue import tasks as tasks
    from attnbench.charts import figure as figure
    from attnbench.charts import figures as figures
    from attnbench.checking import Findings as Findings
    from attnbench.checking import check as check
    from attnbench.comparing import Comparison as Comparison
    from attnbench.comparing import ab as ab
    from attnbench.comparing import compare as compare
    from attnbench.errors import AttnbenchError as AttnbenchError
    from attnbench.errors import BadData as BadData
    from attnbench.errors import BadResult as BadResult
    from attnbench.errors import Interrupted as Interrupted
    from attnbench.errors import OperatorsMissing as OperatorsMissing
    from attnbench.errors import ProgramFailed as ProgramFailed
    from attnbench.errors import ProgramNotFound as ProgramNotFound
    from attnbench.kernels import Mechanism as Mechanism
    from attnbench.kernels import attention as attention
    from attnbench.kernels import scaled_dot_product_attention as scaled_dot_product_attention
    from attnbench.measuring import Measurement as Measurement
    from attnbench.measuring import measure as measure
    from attnbench.prepared import PreparedData as PreparedData
    from attnbench.prepared import PreparedSplit as PreparedSplit
    from attnbench.prepared import data as data
    from attnbench.results import read as read
    from attnbench.results import samples as samples
    from attnbench.running import run as run
    from attnbench.verdicts import Verdict as Verdict
    from attnbench.verdicts import verdict as verdict
    from attnbench.verdicts import view as view

    __version__: str

# Where each public name is defined. A name is imported when it is first used: reading results needs
# no PyTorch, calling kernels no pandas, and the command line neither.
_HOMES = {
    "catalogue": ("Description", "claims", "describe", "mechanisms", "plan", "shapes", "suites", "tasks"),
    "charts": ("figure", "figures"),
    "checking": ("Findings", "check"),
    "comparing": ("Comparison", "ab", "compare"),
    "errors": (
        "AttnbenchError",
        "BadData",
        "BadResult",
        "Interrupted",
        "OperatorsMissing",
        "ProgramFailed",
        "ProgramNotFound",
    ),
    "kernels": ("Mechanism", "attention", "scaled_dot_product_attention"),
    "measuring": ("Measurement", "measure"),
    "prepared": ("PreparedData", "PreparedSplit", "data"),
    "results": ("read", "samples"),
    "running": ("run",),
    "verdicts": ("Verdict", "verdict", "view"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, "__version__"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("attnbench")
    except PackageNotFoundError:  # the folder src in PYTHONPATH, not installed
        return "unknown"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME:
        value = getattr(import_module(f"attnbench.{_HOME[name]}"), name)
        if name in ("read", "run"):
            import_module("attnbench.verdicts")  # which gives their tables .attnbench
    elif name in _HOMES or name in ("callables", "process", "program", "progress"):
        value = import_module(f"attnbench.{name}")
    else:
        raise AttributeError(f"module 'attnbench' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
