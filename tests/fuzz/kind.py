"""What the kinds of input have in common."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
FIXTURE = SOURCES / "tests" / "reports" / "fixture.json"

# Measuring, as little of it as there can be.
BRIEF = ["--no-ceilings", "--no-report", "--progress", "plain", "--cell-timeout", "3",
         "--memory-limit", "256M", "--threads", "1"]
TINY_SUITE = {
    "name": "tiny",
    "task": "kernel",
    "set": {"length": [4, 8], "heads": 1, "head_dim": 8},
    "mechanisms": {"softmax": {"implementation": "composite"}, "linear": {}},
    "measure": {"rounds": 2, "max_samples": 10, "max_seconds": 0.01, "cell_timeout_seconds": 30},
}


class Kind:
    """A source of cases. `prepare` makes what they start from, once; `case` writes the files of one
    into `folder`, where it is then run."""

    def __init__(self, program, scratch):
        self.program = program
        self.scratch = Path(scratch)

    def prepare(self):
        pass

    def case(self, random, folder):
        raise NotImplementedError

    def start(self, *arguments, folder=None, limit=120):
        """A run that must do well, since cases start from what it leaves."""
        done = subprocess.run([self.program, *arguments], cwd=folder or self.scratch,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=limit, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.program} {' '.join(arguments)}: exit code {done.returncode}\n"
                             f"{done.stderr}")
        return done

    def tiny_run(self):
        """The folder of a small whole run, the same for all that ask."""
        folder = self.scratch / "tiny_run"
        if not folder.exists():
            (self.scratch / "tiny.json").write_text(json.dumps(TINY_SUITE))
            self.start("run", "tiny.json", "--out", str(folder), *BRIEF)
        return folder


def ended_in_the_middle(folder, outcome, signals=(signal.SIGINT,)):
    """Signals may end a command as they end any program until there is something to keep, and once
    it is kept."""
    out = folder / "out"
    begun = (out / "journal.jsonl").exists() and not (out / "result.json").exists()
    if begun and -outcome.exit_code in signals:
        return [("signal", f"{signal.Signals(-outcome.exit_code).name} ended a run in the middle")]
    return []


def copy_run(run, folder):
    shutil.copytree(run, folder, symlinks=True)


def link_everything(source, folder):
    """Files beside a suite that it may name."""
    for file in Path(source).iterdir():
        if file.suffix == ".csv" and not (folder / file.name).exists():
            os.symlink(file, folder / file.name)
