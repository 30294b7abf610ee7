"""Checkpoints of a training that was ended in the middle, changed before it is gone on with."""

import json
import os
import re
import signal
import subprocess
import time

import mutate
from kind import Kind, copy_run
from oracle import Case, end_session

FLAGS = ["--no-ceilings", "--no-report", "--progress", "plain", "--threads", "1"]
SCHOOL = {
    "name": "school",
    "task": "mqar",
    "set": {"width": 16, "heads": 1, "batch": 8, "layout": "convolution_first", "mlp": "identity",
            "vocabulary": 64, "length": 16, "pairs": 2, "train_examples": 160,
            "validation_examples": 16, "test_examples": 16, "epochs": 4, "embedding_dropout": 0.1,
            "learning_rate": 0.01, "checkpoint_seconds": 0},
    "mechanisms": {"latte": {}},
}


def bytes_of(file):
    """What stands there now: nothing, perhaps, for a save renames two files."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def trainings_of(folder):
    result = json.loads((folder / "result.json").read_text())["attnbench"]
    return {cell["label"]: cell.get("training", {}) for cell in result["cells"]}


def start_training(program, folder, suite="school.json", out="run", flags=tuple(FLAGS)):
    with open(folder / "output", "ab") as output:
        return subprocess.Popen([program, "run", suite, "--out", out, *flags], cwd=folder,
                                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                start_new_session=True)


class Checkpoints(Kind):
    """`run --resume` comes to the same weights and curve, whatever was done to its checkpoints:
    those that are no good are told of, and what is begun anew comes to the same as what goes on."""

    def prepare(self):
        (self.scratch / "school.json").write_text(json.dumps(SCHOOL))
        self.start("run", "school.json", "--out", "whole", *FLAGS)
        self.want = trainings_of(self.scratch / "whole")["latte"]
        self.base = self.scratch / "run"
        while not self.leave_in_the_middle():
            copy = self.scratch / f"run.{time.time_ns()}"
            self.base.rename(copy)

    def leave_in_the_middle(self):
        """A run folder that holds two whole checkpoints; False where it was over too soon."""
        process = start_training(self.program, self.scratch)
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            if any(b'"curve":[{' in bytes_of(file)
                   for file in self.base.glob("checkpoints/*/checkpoint.previous.pt")):
                break  # beyond the first epoch: a step, a loss and a curve stand in it
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        end_session(process.pid, 0)
        return len(list(self.base.glob("checkpoints/*/checkpoint*.pt"))) >= 2

    def case(self, random, folder):
        copy_run(self.base, folder / "run")
        files = sorted((folder / "run").glob("checkpoints/*/checkpoint*.pt"))
        newest = [file for file in files if file.name == "checkpoint.pt"]
        previous = [file for file in files if file not in newest]
        facts = False
        for file in random.choice([newest, newest, previous, files]):
            facts = self.change(random, file) and file in newest or facts
        return Case(["run", "--resume", "run", *FLAGS], files=["checkpoint.pt"],
                    check=lambda outcome: self.same(folder / "run", outcome, facts))

    @staticmethod
    def change(random, file):
        """True where what the file says of itself is different, not its bytes alone."""
        data = bytearray(file.read_bytes())
        facts = random.random() < 0.6
        if facts:
            facts = change_facts(random, data)
        else:
            for _ in range(random.choice([1, 1, 3])):
                mutate.change_bytes(random, data)
        file.write_bytes(data)
        return facts

    def same(self, folder, outcome, told):
        if outcome.exit_code != 0:
            return [
                ("a training that does not go on", f"{outcome.exit_code}: {outcome.err[-300:]}")
            ]
        got = trainings_of(folder)["latte"]
        if told and not got.get("checkpoint_notes"):
            return [
                ("a changed checkpoint taken without a word", str(got.get("resumed_from_step")))
            ]
        return [
            ("other numbers after --resume", f"{key}: {got.get(key)} in place of {self.want[key]}")
            for key in ("weights_hash", "curve", "steps")
            if got.get(key) != self.want[key]
        ]


def change_facts(random, data):
    """Digits and letters of the JSON that stands in the archive, which stays as long as it was.
    True where the JSON then says something else."""
    begin = data.find(b'{"facts":')
    end = data.find(b'"hash":', begin)
    if begin < 0 or end < 0:
        return False
    if random.random() < 0.3:
        end += 1000  # into the hash and the identity
    before = bytes(data)
    for _ in range(random.choice([1, 1, 2, 4])):
        at = random.choice([match.start() for match in re.finditer(rb"[0-9a-z]", data[begin:end])])
        at += begin
        letters = "0123456789" if chr(data[at]).isdigit() else 'abcxyz"{}[],:0'
        data[at] = ord(random.choice(letters))
    return bytes(data) != before
