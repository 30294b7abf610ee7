"""attnbench from Python: runs suites, and reads results as pandas tables and Altair charts.

table = attnbench.run("quickstart", profile="quick")
table = attnbench.read("runs/quickstart-latest")
chart = attnbench.figure(table, "training_time")
"""

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

__all__ = [
    "AttnbenchError",
    "BadResult",
    "Interrupted",
    "ProgramFailed",
    "ProgramNotFound",
    "figure",
    "figures",
    "read",
    "run",
    "samples",
]
