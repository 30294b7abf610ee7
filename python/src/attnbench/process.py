"""How the program is started, followed while it works, and stopped: no program is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from attnbench.progress import Progress

# The launcher may build first, which takes minutes, and a file in Python may import much.
_BEFORE_THE_RUN = ("· ", "  building ", "  importing ", "  loading ")


class Ended(NamedTuple):
    """How the program ended.

    exit_code: the program's; negative: the signal that ended it. interrupted: by Ctrl-C.
    output: all of standard output. message: of standard error what is no event.
    """

    exit_code: int
    interrupted: bool
    output: str
    message: str


def follow(program: str, words: Sequence[str], shown: Progress) -> Ended:
    """Runs the program to its end, shows its events, and hands Ctrl-C on to it."""
    messages: list[str] = []
    interrupted = False
    with tempfile.TemporaryFile() as output:
        # A process group of its own: Ctrl-C comes once, from here, whoever was signalled.
        process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            **_own_group(),
        )
        try:
            assert process.stderr is not None
            while True:
                try:
                    _follow(process.stderr, messages, shown)
                    if process.wait() == 0 and messages:
                        shown.text("\n".join(messages))  # such as: no pictures, and why
                    break
                except KeyboardInterrupt:
                    interrupted = True
                    _signal(process, signal.SIGINT)
        finally:
            _end(process)
            shown.close()
        output.seek(0)
        text = output.read().decode("utf-8", errors="replace")
    message = "\n".join(messages).strip().removeprefix("attnbench: ")
    return Ended(process.returncode, interrupted or process.returncode == 130, text, message)


def _own_group() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        return {"process_group": 0}
    return {"preexec_fn": os.setpgrp}


def _follow(stream: IO[bytes], messages: list[str], shown: Progress) -> None:
    """Shows events and keeps everything else, to the end of the stream."""
    for line in iter(stream.readline, b""):
        text = line.decode("utf-8", errors="replace").rstrip("\n")
        try:
            event = json.loads(text)
        except ValueError:
            event = None
        if isinstance(event, dict) and "type" in event:
            shown.event(event)
        elif text.startswith(_BEFORE_THE_RUN):
            shown.text(text)
        else:
            messages.append(text)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leaves no program behind, whatever went wrong here: first as Ctrl-C would, then at once."""
    if process.poll() is None:
        _signal(process, signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
    if process.stderr is not None:
        process.stderr.close()
