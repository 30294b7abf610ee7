"""Runs the program on a suite and returns its table."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pandas

from attnbench.errors import Interrupted, ProgramFailed
from attnbench.program import Program, find_program
from attnbench.progress import Event, Progress, choose
from attnbench.results import read

# It may build first, which takes minutes.
_OF_THE_LAUNCHER = ("· ", "  building ")

# Flags that are said once for each of several values; settings have theirs in one list.
REPEATED = {"--data", "--fail-on", "--only", "--plugin", "--retry", "--skip", "--with"}

Suite = Mapping[str, Any] | str | os.PathLike[str] | Sequence[str] | None


def run(
    suite: Suite = None,
    *,
    program: Program = None,
    progress: str | bool | Callable[[Event], None] = "auto",
    samples: bool = False,
    **options: Any,
) -> pandas.DataFrame:
    """Measures a suite with the program and returns attnbench.read of its result.

    suite: a dict (written beside the run, so that it can be run again), the name or path of a suite,
    a list of mechanisms, or None with resume=FOLDER. program: see find_program. progress: "auto",
    "text", "notebook", "none", or a function that takes each event. Further options are flags of
    `attnbench run --help`: profile="quick", out="runs/mine", only=["latte", "flash"], rounds=3,
    now=True, set={"length": range(256, 1024, 256)}, with_="latte"; None and False leave one out.

    Ctrl-C reaches the program, which ends cleanly; then Interrupted is raised. Raises ProgramFailed
    (with the program's message, exit code and result, if there is one), ProgramNotFound, and
    ValueError for a suite or option that cannot be passed on.
    """
    flags = flags_of(options)
    shown = choose(progress)
    found = find_program(program)
    words = [*_suite_words(suite, options), *flags]
    exit_code, interrupted, output, message = _run(found, ["run", *words], shown)
    result = _stored_result(output)
    if interrupted:
        raise Interrupted(message, result)
    if exit_code != 0 or result is None:
        raise ProgramFailed(exit_code, message or "the program named no result", result)
    return read(result, samples=samples)


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """`--flag=value` of keyword options, as the command line takes them."""
    words: list[str] = []
    for name, given in options.items():
        flag, value = "--" + name.rstrip("_").replace("_", "-"), _plain(given)
        if name == "set":
            if not isinstance(value, dict):
                raise ValueError(f'set={given!r}: expected a dict such as {{"length": [256, 512]}}')
            words += [f"{flag}={key}={_word(key, one)}" for key, one in value.items()]
        elif value is None or value is False:
            continue
        elif value is True:
            words.append(flag)
        elif flag in REPEATED and isinstance(value, list) and value:
            words += [f"{flag}={_word(name, one)}" for one in value]
        else:
            words.append(f"{flag}={_word(name, value)}")
    return words


def _plain(value: Any) -> Any:
    """Values of NumPy and pandas, ranges and paths as those of JSON, in dicts and lists, too."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_plain(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _word(name: str, value: Any) -> str:
    """A value: text, a number, a list of them, or what else JSON has."""
    if (
        isinstance(value, list)
        and value
        and not any(isinstance(one, (dict, list)) for one in value)
    ):
        return ",".join(_word(name, one) for one in value)
    if isinstance(value, str):
        return value
    try:
        if value is not None and value != []:
            return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name}={value!r}: expected text, a path, a finite number, or a list of them")


def _suite_words(suite: Suite, options: Mapping[str, Any]) -> list[str]:
    given = _plain(suite)
    if given is None:
        if not options.get("resume"):
            raise ValueError(
                "no suite: pass a dict, a path, a list of mechanisms, or resume=FOLDER"
            )
        return []
    if isinstance(given, dict):
        return [str(_written(given, options.get("out")))]
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        return given
    raise ValueError(f"suite {suite!r}: expected a dict, a path, or a list of mechanisms")


def _written(suite: Mapping[str, Any], out: str | os.PathLike[str] | None) -> Path:
    """The suite as a file beside the run's folder, named after its content: reruns find it."""
    try:
        text = json.dumps(suite, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"the suite is no JSON: {error}") from error
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", str(suite.get("name", "suite")))[:80].lstrip(".-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    folder = Path(out).parent if out else Path("runs")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name or 'suite'}-{digest}.suite.json"
    file.write_text(text, encoding="utf-8")
    return file


def _run(program: str, words: list[str], shown: Progress) -> tuple[int, bool, str, str]:
    """Exit code, whether Ctrl-C was pressed, standard output, and messages."""
    messages: list[str] = []
    interrupted = False
    with tempfile.TemporaryFile() as output:
        # A process group of its own: Ctrl-C comes once, from here, whoever was signalled.
        process = subprocess.Popen(
            [program, *words, "--progress", "json"],
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
    return process.returncode, interrupted or process.returncode == 130, text, message


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
        elif text.startswith(_OF_THE_LAUNCHER):
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


def _stored_result(output: str) -> Path | None:
    """The result.json that the program's last line `result  PATH` names."""
    for line in reversed(output.splitlines()):
        found = re.fullmatch(r"result  (.*result\.json)", line)
        if found and Path(found[1]).is_file():
            return Path(found[1])
    return None
