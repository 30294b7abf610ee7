"""What goes wrong, as exceptions."""

from __future__ import annotations

from pathlib import Path

# exit codes: begin
EXIT_CODES = {
    0: "done; disturbed, out of memory, timeout and unsupported are findings, unless --fail-on names them",
    1: "a check failed, a cell is wrong, or what a gate holds got worse",
    2: "bad command line, suite or file; nothing matched; all that was asked for is unsupported",
    3: "the machine cannot do it, or nothing could be measured",
    4: "the measurement cannot tell",
    5: "cells crashed, or ended as --fail-on names",
    130: "interrupted; what was measured is kept",
}
# exit codes: end


class AttnbenchError(Exception):
    """Of every error of this package but Interrupted."""


class BadResult(AttnbenchError, ValueError):
    """A file is no result of attnbench. The message names file, place and what was expected."""


class BadData(AttnbenchError, ValueError):
    """Prepared data are not there, or damaged. The message names them and the command to prepare them."""


class ProgramNotFound(AttnbenchError, FileNotFoundError):
    """There is no program attnbench where it was looked for."""


class OperatorsMissing(AttnbenchError, ImportError):
    """The kernels cannot be called here. The message says what is missing, and what to install."""


class ProgramFailed(AttnbenchError):
    """The program ended with an exit code other than 0.

    exit_code: the program's; negative: the signal that ended it.
    message: what it wrote to standard error.
    result: the result.json that it wrote all the same, for attnbench.read; or None.
    """

    def __init__(self, exit_code: int, message: str, result: Path | None = None) -> None:
        if exit_code < 0:
            meaning = f"ended by signal {-exit_code}"
        else:
            meaning = f"exit code {exit_code}: {EXIT_CODES.get(exit_code, 'unknown')}"
        stored = f"\nwhat was measured: {result}" if result else ""
        super().__init__(f"{message or 'no message'}\n({meaning}){stored}")
        self.exit_code = exit_code
        self.message = message
        self.result = result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after the program ended cleanly. What was measured is kept.

    message: how to go on, as the program says it. result: as of ProgramFailed.
    """

    def __init__(self, message: str, result: Path | None = None) -> None:
        super().__init__(message)
        self.exit_code = 130
        self.message = message
        self.result = result
