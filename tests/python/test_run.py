"""Runs of the built program from Python: tables, errors, Ctrl-C, and where it is looked for."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import attnbench
import numpy as np
import pandas
import pytest
from attnbench.process import follow
from attnbench.program import find_program
from attnbench.progress import Progress, TextDisplay
from attnbench.running import REPEATED, flags_of

TINY: dict[str, Any] = {
    "name": "tiny",
    "task": "kernel",
    "set": {
        "batch": 1, "heads": 1, "head_dim": 8, "length": [16, 32], "scope": "mix",
        "pattern": "causal", "pass": "forward",
    },
    "mechanisms": ["softmax"],
    "measure": {"rounds": 1, "max_seconds": 0.02},
}  # fmt: skip
SHORT: dict[str, Any] = {"no_ceilings": True, "now": True, "threads": 1, "no_report": True}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_suite_that_is_a_dict_is_measured(program: str, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    table = attnbench.run(TINY, progress=events.append, out="kept/run", **SHORT)
    assert sorted(table.length) == [16, 32]
    assert set(table.status) <= {"ok", "disturbed"}
    assert (table.median_seconds > 0).all()
    assert {event["type"] for event in events} >= {"begin", "end"}
    assert events[-1]["done"] == events[-1]["total"] == 2
    assert table.attrs["attnbench_result"] == str(tmp_path / "kept/run/result.json")
    [written] = Path("kept").glob("tiny-*.suite.json")
    assert json.loads(written.read_text()) == TINY
    samples = attnbench.samples("kept/run")
    assert samples.groupby("id").size().min() > 1


def test_options_are_flags_of_the_program(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    choices: dict[str, Any] = {
        "set": {"length": [16, 64]},
        "only": ["length=64"],
        "rounds": 2,
        "progress": "text",
    }
    table = attnbench.run(TINY, **choices, **SHORT)
    assert list(table.length) == [64]
    assert list(table.rounds) == [2]
    named = attnbench.run(["softmax"], length=16, rounds=1, samples=True, progress="none", **SHORT)
    assert (named.seconds > 0).all()
    with pytest.raises(attnbench.BadResult):
        attnbench.read("runs")


def test_what_the_program_refuses_is_an_exception(program: str) -> None:
    with pytest.raises(attnbench.ProgramFailed) as caught:
        attnbench.run({**TINY, "mechanisms": ["sofmax"]}, progress="none")
    assert caught.value.exit_code == 2
    assert "softmax" in caught.value.message
    assert "/mechanisms" in caught.value.message
    assert caught.value.result is None
    with pytest.raises(attnbench.ProgramFailed, match="no_such_flag"):
        attnbench.run(TINY, no_such_flag=3)
    with pytest.raises(attnbench.ProgramFailed, match="exit code 2"):
        attnbench.run("no_such_suite.json")


def test_a_failure_after_measuring_names_the_result(program: str) -> None:
    causal = {**TINY, "mechanisms": ["softmax", "linformer"]}
    with pytest.raises(attnbench.ProgramFailed) as caught:
        attnbench.run(causal, fail_on="unsupported", progress="none", **SHORT)
    assert caught.value.exit_code == 5
    assert caught.value.result is not None
    table = attnbench.read(caught.value.result)
    assert list(table[table.mechanism == "linformer"].status) == ["unsupported"] * 2
    assert table[table.mechanism == "linformer"].reason.str.len().min() > 10


def test_ctrl_c_reaches_the_program(program: str) -> None:
    slow = {**TINY, "measure": {"rounds": 500, "max_seconds": 0.1, "relative_interval": 1e-9}}

    def interrupt(event: dict[str, Any]) -> None:
        if event["type"] == "begin" and event["done"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    begun = time.monotonic()
    with pytest.raises(attnbench.Interrupted) as caught:
        attnbench.run(slow, out="stopped", progress=interrupt, **SHORT)
    assert time.monotonic() - begun < 60
    assert "--resume" in caught.value.message
    assert caught.value.exit_code == 130
    assert caught.value.result == Path("stopped/result.json")
    state = json.loads(Path("stopped/result.json").read_text())["attnbench"]["run"]["state"]
    assert state == "interrupted"
    assert len(attnbench.read("stopped")) == 2


def test_the_program_is_looked_for_in_order(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_program() == program
    with pytest.raises(attnbench.ProgramNotFound, match="program 'nowhere': no program"):
        find_program("nowhere")
    monkeypatch.delenv("ATTNBENCH_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(attnbench.ProgramNotFound, match="not in PATH"):
        find_program()
    checkout = tmp_path / "checkout"
    (checkout / "core").mkdir(parents=True)
    (checkout / "core/protocol.hpp").touch()
    for file in (checkout / "attnbench", tmp_path / "bin/attnbench"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    assert find_program() == str(tmp_path / "bin/attnbench")
    (tmp_path / "bin/attnbench").unlink()
    monkeypatch.chdir(checkout / "core")
    assert find_program() == str(checkout / "attnbench")


def test_what_cannot_be_passed_on_is_refused(program: str) -> None:
    bad_suites: list[tuple[Any, str]] = [
        (None, "resume=FOLDER"),
        ([], "a list of mechanisms"),
        (3, "expected a dict, a path"),
        ({"name": object()}, "no JSON"),
        ({"set": {"length": float("nan")}}, "no JSON"),
    ]
    for bad, words in bad_suites:
        with pytest.raises(ValueError, match=words):
            attnbench.run(bad)
    with pytest.raises(ValueError, match="set='length=3': expected a dict"):
        attnbench.run(TINY, set="length=3")
    with pytest.raises(ValueError, match="rounds=<object"):
        attnbench.run(TINY, rounds=object())
    with pytest.raises(ValueError, match="progress='loud': expected \"auto\""):
        attnbench.run(TINY, progress="loud")


def test_flags_are_written_as_the_command_line_has_them() -> None:
    window = {"window": {"left": 3, "right": 0}, "length": [16, 32], "causal": True}
    assert flags_of({"with_": "latte", "no_report": True, "seed": None, "now": False}) == [
        "--with=latte",
        "--no-report",
    ]
    assert flags_of({"only": ["a b", "c"], "cell_timeout": 2.5, "set": window}) == [
        "--only=a b",
        "--only=c",
        "--cell-timeout=2.5",
        '--set=window={"left": 3, "right": 0}',
        "--set=length=16,32",
        "--set=causal=true",
    ]


def test_lists_of_numpy_pandas_and_ranges_are_those_of_python(program: str) -> None:
    lengths = [16, 32, 48]
    for same in (
        range(16, 64, 16), np.arange(16, 64, 16), pandas.Series(lengths), tuple(np.array(lengths))
    ):  # fmt: skip
        assert flags_of({"length": same, "set": {"length": same}}) == [
            "--length=16,32,48",
            "--set=length=16,32,48",
        ]
    scalars = {"rounds": np.int64(3), "wait": np.float32(0.5), "now": np.True_}
    assert flags_of(scalars) == ["--rounds=3", "--wait=0.5", "--now"]
    assert flags_of({"window": ({"left": np.int8(3)}, {"left": 7})}) == [
        '--window=[{"left": 3}, {"left": 7}]'
    ]
    suite = {**TINY, "set": {**TINY["set"], "heads": np.int32(1), "length": np.array([16, 32])}}
    table = attnbench.run(suite, rounds=np.int64(1), set={"length": range(16, 17)}, **SHORT)
    assert list(table.length) == [16]
    [written] = Path("runs").glob("tiny-*.suite.json")
    assert json.loads(written.read_text()) == TINY
    nothings: list[Any] = [[], range(0), np.array([]), {"length": []}, np.nan, [None], {1, 2}]
    for nothing in nothings:
        with pytest.raises(ValueError, match="expected text, a path, a finite number, or a list"):
            flags_of({"set" if isinstance(nothing, dict) else "length": nothing})


def test_flags_that_are_repeated_are_those_of_the_program(program: str) -> None:
    done = subprocess.run([program, "run", "--help"], check=True, capture_output=True, text=True)
    assert set(re.findall(r"(--\S+) TEXT \.\.\.", done.stdout)) - {"--set"} == REPEATED


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_line_on_a_terminal_and_sentences_elsewhere() -> None:
    events: list[dict[str, Any]] = [
        {"type": "begin", "cell": "a", "what": "latte 512", "round": 0, "done": 0, "total": 4},
        {"type": "note", "text": "a note"},
        {"type": "end", "cell": "a", "round": 0, "status": "ok", "done": 1, "total": 4},
        {"type": "begin", "cell": "a", "what": "latte 512", "round": 1, "done": 1, "total": 4},
        {"type": "progress", "cell": "a", "what": "epoch 1", "done": 1, "total": 2},
        {
            "type": "end",
            "cell": "a",
            "status": "crashed",
            "reason": "it fell",
            "done": 2,
            "total": 4,
        },
    ]
    for stream in (Terminal(), io.StringIO()):
        progress = Progress(TextDisplay(stream))
        for event in events:
            progress.event(event)
        progress.close()
        text = stream.getvalue()
        assert "a note\n" in text
        assert "latte 512  crashed: it fell\n" in text
        assert ("[1/4] ░░░░░░░░░░░░░░░░  latte 512" in text) == stream.isatty()
        assert ("[2/4] ████░░░░░░░░░░░░" in text) == stream.isatty()
        assert ("epoch 1 50 %" in text) == stream.isatty()
        assert ("\r\x1b[K" in text) == stream.isatty()


def test_lines_before_a_run_are_shown_and_no_part_of_its_message(tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text(
        "#!/bin/sh\necho '  importing near.py: 2 s' >&2\necho 'attnbench: no such file' >&2\nexit 2\n"
    )
    script.chmod(0o755)
    shown = io.StringIO()
    ended = follow(str(script), [], Progress(TextDisplay(shown)))
    assert (ended.exit_code, ended.message) == (2, "no such file")
    assert shown.getvalue() == "  importing near.py: 2 s\n"
