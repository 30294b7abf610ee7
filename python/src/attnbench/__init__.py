"""attnbench from Python: runs suites, and reads results as pandas tables and Altair charts.

table = attnbench.run("quickstart", profile="quick")
table = attnbench.read("runs/quickstart-latest")
chart = attnbench.figure(table, "training_time")
"""

from importlib.metadata import PackageNotFoundError, version

from attnbench.catalogue import Description, describe, mechanisms, plan, suites, tasks
from attnbench.checking import Findings, check
from attnbench.comparing import Comparison, ab, compare
from attnbench.errors import (
    AttnbenchError,
    BadResult,
    Interrupted,
    ProgramFailed,
    ProgramNotFound,
)
from attnbench.figures import figure, figures
from attnbench.results import read, samples
from attnbench.running import run
from attnbench.verdicts import Verdict, verdict, view

try:
    __version__ = version("attnbench")
except PackageNotFoundError:  # the folder src in PYTHONPATH, not installed
    __version__ = "unknown"

__all__ = [
    "AttnbenchError",
    "BadResult",
    "Comparison",
    "Description",
    "Findings",
    "Interrupted",
    "ProgramFailed",
    "ProgramNotFound",
    "Verdict",
    "__version__",
    "ab",
    "check",
    "compare",
    "describe",
    "figure",
    "figures",
    "mechanisms",
    "plan",
    "read",
    "run",
    "samples",
    "suites",
    "tasks",
    "verdict",
    "view",
]


def __dir__() -> list[str]:
    return sorted(__all__)
