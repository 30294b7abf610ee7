"""Where the program attnbench is, and how it is asked for something short."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

from attnbench.errors import ProgramFailed, ProgramNotFound

Program = str | os.PathLike[str] | None


def find_program(program: Program = None) -> str:
    """The path of the program: the argument, ATTNBENCH_PROGRAM, the one inside this package (a wheel
    has it), PATH, or a checkout's launcher.

    A checkout is one that this package is installed from in place, or that holds the working
    folder. Raises ProgramNotFound, naming where it was looked for.
    """
    if program is not None:
        return _named(os.fspath(program), "program")
    variable = os.environ.get("ATTNBENCH_PROGRAM")
    if variable:
        return _named(variable, "ATTNBENCH_PROGRAM")
    inside = Path(__file__).parent / "native/bin/attnbench"
    if inside.is_file():
        hand_over_this_python(os.environ)
        return str(inside)
    found = shutil.which("attnbench")
    if found:
        return found
    for checkout in _checkouts():
        launcher = checkout / "attnbench"
        if launcher.is_file() and (checkout / "core/protocol.hpp").is_file():
            return str(launcher)
    raise ProgramNotFound(
        "no program attnbench: not in PATH, and neither the working folder nor this package is in a "
        "checkout; pass program=…, or set ATTNBENCH_PROGRAM to the launcher of a checkout or to "
        "build/release/bin/attnbench"
    )


def hand_over_this_python(environment: MutableMapping[str, str]) -> None:
    """Names this Python to the program of a wheel: its worker and its pictures are made by it."""
    environment["ATTNBENCH_HOST_PYTHON"] = sys.executable
    environment.setdefault("ATTNBENCH_PYTHON", sys.executable)


def _named(word: str, source: str) -> str:
    path = shutil.which(word)
    if path is None:
        raise ProgramNotFound(f"{source} {word!r}: no program that can be started; expected a path")
    return os.path.abspath(path)


def _checkouts() -> Iterator[Path]:
    here = Path(__file__).resolve()
    if len(here.parents) > 3:
        yield here.parents[3]
    working = Path.cwd()
    yield from (working, *working.parents)


def ask(program: str, words: Sequence[str]) -> str:
    """What the program prints for a command that answers at once. Raises ProgramFailed."""
    done = subprocess.run(
        [program, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        raise ProgramFailed(done.returncode, done.stderr.strip())
    return done.stdout
