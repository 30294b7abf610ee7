#!/usr/bin/env python3
"""Kills of attnbench's processes at any moment of a run, and what is left of the run.

  kills.py [--kernel N] [--training N] [--seed S] [--program PATH] [--keep DIR]

N kills of child, worker and supervisor in turn, at moments that the seed says, in runs of a kernel
suite and in trainings. After each the run is gone on with, perhaps to be killed once more, until it
is whole: then every cell is in result.json once, ok, with each of its rounds once; a training has
the weights and the curve of an undisturbed one; no process has outlived its run.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import checkpoints
import oracle
from kind import SOURCES

FLAGS = ["--no-ceilings", "--no-report", "--progress", "plain", "--threads", "1"]
ROUNDS = 3
KERNEL = {"name": "kernels", "task": "kernel",
          "set": {"length": [64, 256], "heads": 2, "head_dim": 16},
          "mechanisms": {"softmax": {"implementation": "composite"}, "linear": {}, "latte": {}},
          "measure": {"rounds": ROUNDS, "max_samples": 20, "max_seconds": 0.03}}
TRAINING = json.loads(json.dumps(checkpoints.SCHOOL))
TRAINING["set"].update(train_examples=240)
TRAINING["mechanisms"] = {"latte": {}, "linear": {}}
# What a kill of child or worker costs its cell; it is measured again on demand.
COSTS = "crashed,error,timeout,out_of_memory"
TARGETS = ("child", "worker", "supervisor")


def parents():
    """Parent of each process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                    found[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found


def process_of(target, supervisor):
    """The process to kill; None where there is none of its kind now."""
    if target == "supervisor":
        return supervisor
    all_parents = parents()
    workers = [process for process, parent in all_parents.items() if parent == supervisor]
    if target == "worker":
        return workers[0] if workers else None
    children = [process for process, parent in all_parents.items() if parent in workers]
    return children[0] if children else None


class Trial:
    """One run, killed once or more, and gone on with until it is whole."""

    def __init__(self, program, folder, suite):
        self.program, self.folder = program, folder
        self.out = folder / "run"
        (folder / "suite.json").write_text(json.dumps(suite))
        self.complaints = []
        self.log = folder / "output"

    def start(self):
        if (self.out / "journal.jsonl").exists():
            words = ["run", "--resume", "run", "--retry", COSTS, *FLAGS]
        else:
            words = ["run", "suite.json", "--out", "run", *FLAGS]
        with open(self.log, "ab") as output:
            return subprocess.Popen([self.program, *words], cwd=self.folder, stdout=output,
                                    stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)

    def killed(self, target, seconds):
        """Whether there was something to kill after so many seconds."""
        process = self.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        victim = None
        until = time.monotonic() + 60
        while process.poll() is None and victim is None and time.monotonic() < until:
            victim = process_of(target, process.pid)
            time.sleep(0.002)
        if process.poll() is None and victim is not None:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                victim = None
        self.end(process, target)
        return victim is not None

    def end(self, process, what):
        """Waits for the run's own end; none of its processes may be there after it."""
        try:
            code = process.wait(300)
        except subprocess.TimeoutExpired:
            self.complaints.append(f"still at work 300 s after the kill of {what}")
            process.kill()
            code = process.wait()
        left = oracle.end_session(process.pid, 30)
        if left:
            self.complaints.append(f"{len(left)} processes outlive the run ({what})")
        if code not in oracle.EXIT_CODES and (what != "supervisor" or code != -signal.SIGKILL):
            self.complaints.append(f"exit code {code} after the kill of {what}")
        return code

    def finish(self):
        """Goes on until the run is whole: at once, unless it was killed while it began."""
        for _ in range(3):
            code = self.end(self.start(), "nobody")
            if code == 0:
                return self.check()
        self.complaints.append(f"not to be gone on with: exit code {code}; "
                               f"{self.log.read_text(errors='replace')[-300:]}")
        return None

    def check(self):
        result = json.loads((self.out / "result.json").read_text())["attnbench"]
        if result["run"]["state"] != "complete":
            self.complaints.append(f"state {result['run']['state']}")
        cells = collections.Counter(cell["id"] for cell in result["cells"])
        asked = json.loads((self.out / "journal.jsonl").read_text().splitlines()[0])["cells"]
        if set(cells) != {cell["id"] for cell in asked} or max(cells.values()) > 1:
            self.complaints.append(f"cells {dict(cells)}, asked for {len(asked)}")
        for cell in result["cells"]:
            # What another program takes from a round is no loss.
            if cell["status"] not in ("ok", "disturbed"):
                self.complaints.append(f"{cell['label']}: {cell['status']}: {cell.get('reason')}")
            for timing in cell.get("timing", {}).values():
                if cell["task"] == "kernel":
                    self.check_rounds(cell, timing)
        return {cell["label"]: (cell["training"]["weights_hash"], cell["training"]["curve"])
                for cell in result["cells"]
                if "training" in cell}

    def check_rounds(self, cell, timing):
        numbers = [one.get("round", i) for i, one in enumerate(timing.get("rounds", []))]
        if len(numbers) != ROUNDS or len(set(numbers)) != ROUNDS:
            self.complaints.append(
                f"{cell['label']}: rounds {numbers} where {ROUNDS} were asked for"
            )


class Kills:
    def __init__(self, arguments, scratch):
        self.arguments, self.scratch = arguments, Path(scratch)
        self.failed = 0

    def trial(self, name, suite):
        folder = self.scratch / name
        folder.mkdir()
        return Trial(self.arguments.program, folder, suite)

    def all(self, what, suite, count):
        if count == 0:
            return
        subprocess.run([self.arguments.program, "list"], stdout=subprocess.DEVNULL, check=True)
        whole = self.trial(f"{what}-whole", suite)
        started = time.monotonic()
        want = whole.finish()
        seconds = time.monotonic() - started
        if whole.complaints:
            raise SystemExit(f"the undisturbed run: {whole.complaints}")
        generator = random.Random(f"{what} {self.arguments.seed}")
        done, runs, by_target = 0, 0, collections.Counter()
        while done < count:
            trial = self.trial(f"{what}-{runs}", suite)
            said = []
            for _ in range(min(generator.choice([1, 1, 2, 3]), count - done)):
                target, moment = TARGETS[done % 3], generator.random() * seconds
                said.append(f"{target} at {moment:.2f} s")
                if trial.killed(target, moment):
                    done += 1
                    by_target[target] += 1
            got = trial.finish()
            if got is not None and got != want:
                trial.complaints.append("other weights or curves than without kills")
            self.tell(what, runs, said, trial)
            runs += 1
        kinds = ", ".join(f"{by_target[target]} of {target}" for target in TARGETS)
        print(f"{what}: {done} kills ({kinds}) in {runs} runs, {self.failed} runs failed, seed "
              f"{self.arguments.seed}",
              flush=True)

    def tell(self, what, number, said, trial):
        if not trial.complaints:
            shutil.rmtree(trial.folder)
            return
        self.failed += 1
        print(f"not ok: {what} run {number}: killed {', '.join(said)}: "
              + "; ".join(trial.complaints),
              flush=True)
        if self.arguments.keep:
            kept = Path(self.arguments.keep) / f"kills-{what}-{self.arguments.seed}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(trial.folder, kept, symlinks=True)
            print(f"  files in {kept}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", type=int, default=40)
    parser.add_argument("--training", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=str(SOURCES / "build/release/bin/attnbench"))
    parser.add_argument("--keep", help="folder for runs that failed")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with tempfile.TemporaryDirectory(prefix="attnbench-kills-") as scratch:
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")
        kills = Kills(arguments, scratch)
        kills.all("kernel", KERNEL, arguments.kernel)
        kills.all("training", TRAINING, arguments.training)
    return 1 if kills.failed else 0


if __name__ == "__main__":
    sys.exit(main())
