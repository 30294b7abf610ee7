#!/usr/bin/env python3
"""Odd inputs for attnbench, the same ones for the same seed.

  fuzz.py KIND --count N [--seed S] [--program PATH] [--case I] [--seconds T] [--keep DIR]

KIND is suites, commands, arrays, results, imports, journals, plugins, checkpoints, surroundings,
caches, outputs, texts, numbers, headers, large, or all. Each case is one start of the program. It must end by itself, in time, with an exit
code of the table in docs/results.md, and say what is wrong in at most 2 kB, without control characters, naming
the file and the place in it where a file is at fault; its memory stays below 1 GiB. README.md has
the rest.
"""

import argparse
import collections
import os
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import arrays
import checkpoints
import commands
import limits
import oracle
import outputs
import plugins
import results
import suites
import surroundings
from kind import SOURCES

KINDS = {"suites": suites.Suites, "commands": commands.Commands, "arrays": arrays.Arrays,
         "results": results.Results, "imports": results.Imports, "journals": results.Journals,
         "plugins": plugins.Plugins, "checkpoints": checkpoints.Checkpoints,
         "surroundings": surroundings.Surroundings, "caches": surroundings.Caches,
         "outputs": outputs.Outputs, "texts": outputs.Texts, "numbers": limits.Numbers,
         "headers": limits.Headers, "large": limits.Large}


class Fuzzer:
    """Cases of one kind, judged, and those that failed kept."""

    def __init__(self, name, arguments, scratch):
        self.name, self.arguments, self.scratch = name, arguments, scratch
        self.kind = KINDS[name](arguments.program, scratch)
        self.kind.prepare()
        self.groups = collections.Counter()
        self.failed = 0
        self.slow_once = 0

    def one(self, index):
        folder = self.scratch / "case"
        found, case, outcome = self.attempt(index, folder)
        if "hang" in [symptom for symptom, _ in found]:
            # On a busy machine a second look, three times as long, tells what hangs from what had
            # to wait.
            again, case, outcome = self.attempt(index, folder, patience=3)
            self.slow_once += 1 if not again else 0
            found = again
        if not found:
            return
        self.failed += 1
        kept = self.keep(index, folder)
        for symptom, detail in found:
            self.tell(index, case, outcome, symptom, detail, kept)

    def attempt(self, index, folder, patience=1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        generator = random.Random(f"{self.name} {self.arguments.seed} {index}")
        case = self.kind.case(generator, folder)
        case.limit_seconds *= patience
        outcome = oracle.run(self.arguments.program, case, folder)
        return oracle.complaints(case, outcome), case, outcome

    def keep(self, index, folder):
        if not self.arguments.keep:
            return None
        kept = Path(self.arguments.keep) / f"{self.name}-{self.arguments.seed}-{index}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, kept, symlinks=True, ignore=shutil.ignore_patterns("fifo"),
                        ignore_dangling_symlinks=True, copy_function=copy_plain)
        return kept

    def tell(self, index, case, outcome, symptom, detail, kept):
        group = symptom + ": " + gist(detail)
        self.groups[group] += 1
        if self.groups[group] > self.arguments.examples:
            return
        print(f"not ok: {self.name} case {index}: {symptom}: {printable(detail)}")
        print(f"  again: python3 tests/fuzz/fuzz.py {self.name} --seed {self.arguments.seed} "
              f"--case {index} --program {self.arguments.program}")
        print(f"  start: {printable(oracle.command_line('attnbench', case), 600)}")
        print(f"  ended: exit code {outcome.exit_code} after {outcome.seconds:.1f} s, "
              f"{outcome.peak_bytes / 2**20:.0f} MiB" + (f"; files in {kept}" if kept else ""))
        if self.arguments.case is not None:
            print(f"  out: {printable(outcome.out, 3000)}\n  err: {printable(outcome.err, 3000)}")
        sys.stdout.flush()

    def all(self):
        started = time.monotonic()
        done = 0
        indices = (
            range(self.arguments.count) if self.arguments.case is None else [self.arguments.case]
        )
        shown = started
        for index in indices:
            self.one(index)
            done += 1
            now = time.monotonic()
            if now - shown > 10:
                shown = now
                print(f"{self.name}: {done} of {len(indices)}, {self.failed} failed, "
                      f"{now - started:.0f} s",
                      flush=True)
            if self.arguments.seconds and now - started > self.arguments.seconds:
                break
        for group, count in self.groups.most_common():
            print(f"  {count:5} × {printable(group, 160)}")
        print(f"{self.name}: {done} cases, {self.failed} failed, {self.slow_once} slow once, seed "
              f"{self.arguments.seed}, {time.monotonic() - started:.0f} s",
              flush=True)
        return self.failed


def copy_plain(source, target):
    if os.path.isfile(source):
        shutil.copy2(source, target)


def gist(detail):
    """What failures of one cause have in common: the words, without names and numbers."""
    text = re.sub(r'"[^"]*"|\'[^\']*\'', "…", detail)
    text = re.sub(r"[\w./-]*/[\w./-]*", "PATH", text)
    return re.sub(r"[-+]?\d[\w.]*", "N", text)[:70]


def printable(text, most=300):
    text = "".join(character if character.isprintable() else f"\\x{ord(character):02x}"
                   for character in str(text))
    return text if len(text) <= most else text[:most] + "…"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one, with its outputs")
    parser.add_argument("--seconds", type=float, help="no new case after so long")
    parser.add_argument("--examples", type=int, default=1, help="shown of each group of failures")
    parser.add_argument("--program", default=str(SOURCES / "build/release/bin/attnbench"))
    parser.add_argument("--keep", help="folder for the files of cases that failed")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    failed = 0
    for name in KINDS if arguments.kind == "all" else [arguments.kind]:
        with tempfile.TemporaryDirectory(prefix="attnbench-fuzz-") as scratch:
            # A cache of its own, and nothing that the user's shell says to the program.
            for variable in [key for key in os.environ if key.startswith(("ATTNBENCH", "OMP_"))]:
                del os.environ[variable]
            os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")
            os.environ["OMP_WAIT_POLICY"] = "passive"
            failed += Fuzzer(name, arguments, Path(scratch)).all()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
