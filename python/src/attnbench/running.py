"""Runs the program on a suite and returns its table."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from attnbench.callables import Mechanism, words_of
from attnbench.errors import Interrupted, ProgramFailed
from attnbench.process import follow
from attnbench.program import Program, ask, find_program
from attnbench.progress import Event, Progress, choose
from attnbench.results import read
from attnbench.verdicts import verdict

# Flags that are said once for each of several values; settings have theirs in one list.
REPEATED = {"--data", "--fail-on", "--only", "--plugin", "--retry", "--shape", "--skip", "--with"}

Suite = Mapping[str, Any] | str | os.PathLike[str] | Sequence[Mechanism] | Callable[..., Any] | None


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
    a list of mechanisms, or None with resume=FOLDER. Mechanisms are names, words such as
    "python:near.py:Near", and functions and classes as docs/python.md of attnbench has them: those
    of a file are measured from there; the source of others, as of a notebook's cell, is written
    beside the run with what it uses, to a file that is named by its content. program: see
    find_program. progress: "auto", "text", "notebook", "none", or a function that takes each event;
    the verdict is shown at the end of it. Further options are flags of `attnbench run --help` and
    settings: profile="quick", out="runs/mine", only=["latte", "flash"], rounds=3, now=True,
    shape="llama3-8b" (attnbench.shapes), set={"length": range(256, 1024, 256)},
    dtype=torch.bfloat16, with_="latte"; None and False leave one out.

    Ctrl-C reaches the program, which ends cleanly; then Interrupted is raised. Raises ProgramFailed
    (with the program's message, exit code and result, if there is one), ProgramNotFound, and
    ValueError for a suite or option that cannot be passed on, or a callable that cannot be carried.

    >>> table = attnbench.run(["softmax"], length=[16, 32], rounds=1, now=True, progress="none",
    ...                       no_ceilings=True, no_report=True)
    >>> table.length.tolist()
    [16, 32]
    """
    shown = choose(progress)
    found = find_program(program)
    result = measured(suite, found, shown, options)
    said = verdict(result, program=found).text
    if said:
        shown.text(said)
        shown.close()
    return read(result, samples=samples)


def measured(suite: Suite, program: str, shown: Progress, options: Mapping[str, Any]) -> Path:
    """The result.json of a run. Arguments and errors are those of attnbench.run."""
    out = options.get("out")
    words: list[str] = []
    if suite is None:
        if not options.get("resume"):
            raise ValueError(
                "no suite: pass a dict, a path, a list of mechanisms, or resume=FOLDER"
            )
        words = flags_of(options)
    else:
        words = words_of_command(program, suite, options, Path(out).parent if out else Path("runs"))
    ended = follow(program, ["run", *words, "--progress", "json"], shown)
    result = _stored_result(ended.output)
    if ended.interrupted:
        raise Interrupted(ended.message, result)
    if ended.exit_code != 0 or result is None:
        message = ended.message or "the program named no result"
        raise ProgramFailed(ended.exit_code, message, result)
    return result


def words_of_command(
    program: str, suite: Suite, options: Mapping[str, Any], folder: Path
) -> list[str]:
    """The program's words for a suite, or a list of mechanisms, and options.

    A dict and the source of callables are written to `folder`. Raises ValueError.
    """
    given, more = plain(suite), dict(options)
    beside = more.get("with_")
    beside = list(beside) if isinstance(beside, (list, tuple)) else [beside]
    listed = given.get("mechanisms") if isinstance(given, dict) else given
    entries = list(listed.values()) if isinstance(listed, dict) else listed
    entries = entries if isinstance(entries, list) else [entries]
    taken: list[str] = []
    if any(callable(_thing(one)) for one in [*entries, *beside]):
        known = json.loads(ask(program, ["list", "--json"]))
        taken = [one["name"] for part in ("mechanisms", "aliases") for one in known[part]]
    if any(callable(one) for one in beside):
        more["with_"] = words_of(beside, folder, taken)
    return [*_suite_words(given, folder, taken), *flags_of(more)]


def _thing(entry: Any) -> Any:
    """What a suite's entry measures."""
    return entry.get("use") if isinstance(entry, dict) else entry


def flag_of(name: str) -> str:
    """The program's flag of a keyword: fail_on is --fail-on, with_ is --with."""
    return "--" + name.rstrip("_").replace("_", "-")


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """`--flag=value` of keyword options, as the command line takes them."""
    words: list[str] = []
    for name, given in options.items():
        flag, value = flag_of(name), plain(given)
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


def plain(value: Any) -> Any:
    """Values of NumPy, pandas and PyTorch, ranges and paths as those of JSON, in dicts, too."""
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return str(value).removeprefix("torch.")
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, type):  # a mechanism
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(one) for one in value]
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


def _suite_words(suite: Any, folder: Path, taken: Sequence[str]) -> list[str]:
    if isinstance(suite, dict):
        return [str(_written(_with_words(suite, folder, taken), folder))]
    if isinstance(suite, str):
        return [suite]
    listed = suite if isinstance(suite, list) else [suite]
    if listed and all(isinstance(word, str) or callable(word) for word in listed):
        return words_of(listed, folder, taken)
    raise ValueError(f"suite {suite!r}: expected a dict, a path, or a list of mechanisms")


def _with_words(suite: dict[str, Any], folder: Path, taken: Sequence[str]) -> dict[str, Any]:
    """The same with words for callables. It is written beside their files, and names these alone."""
    listed = suite.get("mechanisms")
    if isinstance(listed, list) and any(callable(one) for one in listed):
        names = words_of([one for one in listed if not isinstance(one, dict)], folder, taken)
        listed = {word.partition("=")[0]: _entry({"use": word}, folder, []) for word in names}
    elif isinstance(listed, dict):
        names = list(taken)
        listed = {label: _entry(entry, folder, names) for label, entry in listed.items()}
    return {**suite, "mechanisms": listed} if listed else suite


def _entry(entry: Any, folder: Path, names: list[str]) -> Any:
    """An entry of a suite with the word of its callable, whose name is added to `names`."""
    if callable(entry):
        entry = {"use": entry}
    used = _thing(entry)
    word = words_of([used], folder, names)[0] if callable(used) else used
    if not isinstance(entry, dict) or not isinstance(word, str) or "=python:" not in word:
        return entry
    name, _, word = word.partition("=")
    names.append(name)
    home = f"python:{folder}/"
    beside = "python:" + word.removeprefix(home) if word.startswith(home) else word
    return {"as": name, **entry, "use": beside}


def _written(suite: Mapping[str, Any], folder: Path) -> Path:
    """The suite as a file beside the run's folder, named after its content: reruns find it."""
    try:
        text = json.dumps(suite, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"the suite is no JSON: {error}") from error
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", str(suite.get("name", "suite")))[:80].lstrip(".-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name or 'suite'}-{digest}.suite.json"
    file.write_text(text, encoding="utf-8")
    return file


def _stored_result(output: str) -> Path | None:
    """The result.json that the program's last line `result  PATH` names."""
    for line in reversed(output.splitlines()):
        found = re.fullmatch(r"result  (.*result\.json)", line)
        if found and Path(found[1]).is_file():
            return Path(found[1])
    return None
