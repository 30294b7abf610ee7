"""Command lines: of every command, with words and flags right and wrong."""

import json
import os
import shutil
import signal

import mutate
from command_words import (COMMANDS, FILES, FLAGS, GOOD, MEASURES, NAMES, NEVER, NO_VALUE, WEIGHTS,
                           WRITING_FLAGS)
from kind import FIXTURE, SOURCES, TINY_SUITE, Kind, copy_run, ended_in_the_middle
from oracle import EXIT_CODES, Case

# In place of programs that a command starts: no job reaches a cluster, none is in its queue, and
# nothing is counted for minutes.
STAND_INS = {"sbatch": "echo 4711", "squeue": "exit 0", "scancel": "exit 1", "valgrind": "exit 1"}


def write_stand_ins(folder):
    if not folder.exists():
        folder.mkdir()
        for name, line in STAND_INS.items():
            (folder / name).write_text(f"#!/bin/sh\n{line}\n")
            (folder / name).chmod(0o755)
    return folder


def allowed(command, words):
    """The same without what no case may do."""
    if command != "figures":
        return words
    return [word for word in words if word.partition("=")[0] not in NEVER]


class Commands(Kind):
    """Command lines: each command with flags and words, right and wrong."""

    def prepare(self):
        self.start("list", "mechanisms")
        self.tiny_run()
        self.submission()

    def submission(self):
        """The folder of a submission to a cluster that was not submitted."""
        folder = self.scratch / "submission"
        if not folder.exists():
            (self.scratch / "tiny.json").write_text(json.dumps(TINY_SUITE))
            self.start("submit", "tiny.json", "--jobs", "2", "--dry-run", "--out", str(folder))
        return folder

    def case(self, random, folder):
        # Copies: a command may write to what it is given.
        (folder / "tiny.json").write_text(json.dumps(TINY_SUITE))
        shutil.copy(FIXTURE, folder / "result.json")
        shutil.copy(SOURCES / "tests" / "benchmarks" / "counts.json", folder / "counts.json")
        copy_run(self.tiny_run(), folder / "tiny_run")
        copy_run(self.submission(), folder / "submission")
        stand_ins = write_stand_ins(self.scratch / "stand_ins")
        names = list(COMMANDS)
        command = random.choices(names, [WEIGHTS.get(name, 8) for name in names])[0]
        words = [random.choice(
                     GOOD.get(command, ["softmax"]) if random.random() < 0.7 else [*NAMES, *FILES]
                 )
                 for _ in range(random.choice([0, 1, 1, 1, 1, 1, 2, 3]))]
        if command == "gate" and random.random() < 0.8:
            words = []
        for _ in range(random.choice([0, 1, 1, 2, 3, 5])):
            flag = random.choice(COMMANDS[command] if random.random() < 0.9 else list(FLAGS))
            value = FLAGS[flag](random) if random.random() < 0.9 else random.choice(mutate.WORDS)
            if flag in WRITING_FLAGS:
                words += [flag + "=" + FLAGS[flag](random)]
                continue
            words += [flag + "=" + value] if random.random() < 0.2 else [flag, value]
        if random.random() < 0.3:
            words.insert(random.randrange(len(words) + 1), random.choice(NO_VALUE))
        if random.random() < 0.1:
            words.insert(random.randrange(len(words) + 1), random.choice(mutate.WORDS))
        if command in ("run", "merge") and "--out" not in words:
            words += ["--out", "out"]
        if command == "submit" and not {"--jobs", "--again"} & set(words):
            words += ["--jobs", "2"]
        if command == "merge":
            words += ["--no-report"]
        if command == "trend":
            words += ["--no-render"]
        if command in ("run", "ab"):
            words += ["--no-ceilings", "--no-report"]
        if command == "new" and not any(word.startswith("--plugin") for word in words):
            words += ["--plugin", "made"]  # else it writes into the sources of the program
        words = allowed(command, words)
        if random.random() < 0.03:
            command = mutate.nearly(random, command)
        words = [word.replace("\0", "") for word in [command, *words]]
        return Case(words, environment={"PATH": f"{stand_ins}{os.pathsep}{os.environ['PATH']}"},
                    json_output="--json" in words, interrupt_after=4 if command in MEASURES else 0,
                    exit_codes=EXIT_CODES + ((-signal.SIGINT,) if command in MEASURES else ()),
                    check=lambda outcome: ended_in_the_middle(folder, outcome))
