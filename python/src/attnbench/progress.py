"""What a run shows while it measures: a line that is rewritten, or one in a notebook."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TextIO

Event = dict[str, Any]

_BAR = 16


class Display(Protocol):
    """Shows one line of progress in place of the last, and sentences that stay."""

    def show(self, line: str) -> None: ...

    def say(self, sentence: str) -> None: ...

    def close(self) -> None: ...


class TextDisplay:
    """On a terminal the line is rewritten; elsewhere one is written every 20 seconds."""

    def __init__(self, stream: TextIO | None = None, most_silent_seconds: float = 20) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._silent = most_silent_seconds
        self._said = time.monotonic()
        self._drawn = False

    def show(self, line: str) -> None:
        if self._terminal:
            self._write("\r\x1b[K" + line[:100])
            self._drawn = True
        elif time.monotonic() - self._said >= self._silent:
            self.say(line)

    def say(self, sentence: str) -> None:
        self.close()
        self._write(sentence + "\n")
        self._said = time.monotonic()

    def close(self) -> None:
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class NotebookDisplay:
    """One output of the cell, which is updated; sentences stand above the line."""

    def __init__(self) -> None:
        # Untyped, and only there in notebooks.
        self._shows: Any = importlib.import_module("IPython.display")
        self._said: list[str] = []
        self._shown = 0.0
        self._line = ""
        self._handle = self._shows.display(self._content(), display_id=True)

    def show(self, line: str) -> None:
        self._line = line
        if time.monotonic() - self._shown >= 0.2:  # a browser draws each of them
            self._update()

    def say(self, sentence: str) -> None:
        self._said.append(sentence)
        self._update()

    def close(self) -> None:
        self._line = ""
        self._update()

    def _update(self) -> None:
        self._shown = time.monotonic()
        self._handle.update(self._content())

    def _content(self) -> Any:
        return self._shows.Pretty("\n".join([*self._said[-20:], self._line]).strip())


class Silence:
    """Shows nothing."""

    def show(self, line: str) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass

    def close(self) -> None:
        pass


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """Events of `--progress json`, shown on a display and handed to whoever asked for them."""

    def __init__(self, display: Display, listener: Callable[[Event], None] | None = None) -> None:
        self._display = display
        self._listener = listener
        self._names: dict[str, str] = {}
        self._begun = time.monotonic()
        self._done = 0
        self._total = 0

    def event(self, event: Event) -> None:
        kind, cell = event.get("type"), str(event.get("cell", ""))
        if kind == "begin":
            self._names[cell] = str(event.get("what", cell))
        self._done = int(event.get("done", self._done)) if kind in ("begin", "end") else self._done
        self._total = int(event.get("total", 0)) if kind in ("begin", "end") else self._total
        if kind == "note":
            self._display.say(str(event.get("text", "")))
        elif kind == "end" and event.get("status") != "ok":
            reason = f": {event['reason']}" if event.get("reason") else ""
            self._display.say(f"{self._names.get(cell, cell)}  {event.get('status')}{reason}")
        else:
            self._display.show(self._line(cell, event))
        if self._listener is not None:
            self._listener(event)

    def text(self, text: str) -> None:
        self._display.say(text)

    def close(self) -> None:
        self._display.close()

    def _line(self, cell: str, event: Event) -> str:
        step = min(self._done + 1, self._total)
        full = _BAR * self._done // self._total if self._total else 0
        line = f"[{step}/{self._total}] {'█' * full}{'░' * (_BAR - full)}"
        if self._done:
            each = (time.monotonic() - self._begun) / self._done
            line += f"  {_clock(each * (self._total - self._done))} left"
        line += f"  {self._names.get(cell, cell)}"
        if event.get("type") == "progress" and event.get("total"):
            line += (
                f"  {event.get('what', '')} {100 * event.get('done', 0) // event['total']:.0f} %"
            )
        return line


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def choose(progress: str | bool | Callable[[Event], None]) -> Progress:
    """ "auto", "text", "notebook", "none" (or False), or a function that takes each event."""
    if callable(progress):
        return Progress(Silence(), progress)
    if progress in ("auto", True):
        progress = "notebook" if in_notebook() else "text"
    if progress == "notebook":
        return Progress(NotebookDisplay())
    if progress == "text":
        return Progress(TextDisplay())
    if progress in ("none", False):
        return Progress(Silence())
    raise ValueError(
        f'progress={progress!r}: expected "auto", "text", "notebook", "none" or a function'
    )
