#!/usr/bin/env python3
"""What the fuzzers must see, shown to them by programs that misbehave."""

import os
import random
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import arrays
import commands
import fuzz
import mutate
import oracle
import results
from oracle import Case


class Oracle(unittest.TestCase):
    def symptoms(self, script, **about):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(["-c", script], **about)
            outcome = oracle.run("/bin/sh", case, folder)
            return [symptom for symptom, _ in oracle.complaints(case, outcome)]

    def test_what_is_well_said_is_no_complaint(self):
        self.assertEqual(self.symptoms("echo done"), [])
        self.assertEqual(
            self.symptoms("echo 'attnbench: suite.json:3: /set/x: expected a number' >&2; exit 2",
                          files=["suite.json"]),
            [],
        )
        self.assertEqual(
            self.symptoms("echo 'x.npy: its shape is [1]; expected 4 sizes' >&2; exit 2",
                          files=["x.npy"]),
            [],
        )

    def test_endings(self):
        self.assertEqual(self.symptoms("kill -SEGV $$"), ["signal"])
        self.assertEqual(self.symptoms("exit 139"), ["signal"])
        self.assertEqual(self.symptoms("exit 77"), ["exit code"])
        self.assertEqual(self.symptoms("sleep 60", limit_seconds=0.2), ["hang"])
        # A group is killed as a whole, and its members end one by one.
        members = "for i in $(seq 40); do sleep 60 & done; wait"
        self.assertEqual(self.symptoms(members, limit_seconds=0.5), ["hang"])
        self.assertEqual(self.symptoms("sleep 60 >&- 2>&- &"), ["left behind"])

    def test_an_interrupted_command_ends(self):
        script = "trap 'exit 130' INT; while true; do sleep 0.1; done"
        self.assertEqual(self.symptoms(script, interrupt_after=3), [])

    def test_messages(self):
        self.assertEqual(self.symptoms("exit 2"), ["no message"])
        self.assertEqual(self.symptoms("echo 'attnbench: bad' >&2; exit 2", files=["a.json"]),
                         ["no file in the message"])
        self.assertEqual(
            self.symptoms("echo 'attnbench: dir/a.json: bad' >&2; exit 2", files=["a.json"]),
            ["no place in the message"],
        )
        self.assertEqual(self.symptoms("echo '[json.exception.type_error.302] x' >&2; exit 3"),
                         ["raw exception"])
        lacking = "the plugin itself lacks std::terminate(): add the source"
        self.assertEqual(self.symptoms(f"echo 'attnbench: {lacking}' >&2; exit 2"), [])
        self.assertEqual(self.symptoms("printf '\\033[31mred\\n'"), ["control character"])
        self.assertEqual(self.symptoms("printf '\\302\\233x\\n' >&2"), ["control character"])
        self.assertEqual(self.symptoms("head -c 3000 /dev/zero | tr '\\0' a >&2; exit 2"),
                         ["a message over 2 kB"])

    def test_several_faults_are_several_messages(self):
        script = ("for i in $(seq 40); do "
                  "echo \"s.json:$i: $(head -c 100 /dev/zero | tr '\\0' a)\" >&2; done; exit 2")
        self.assertEqual(self.symptoms(script, files=["s.json"]), [])

    def test_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(["-c", "x = bytearray(1100 << 20); x[::4096] = b'1' * len(x[::4096])"],
                        limit_seconds=300)
            outcome = oracle.run(sys.executable, case, folder)
            self.assertEqual([symptom for symptom, _ in oracle.complaints(case, outcome)],
                             ["memory"])

    def test_the_command_is_one_that_a_shell_takes(self):
        case = Case(["run", "a b"], environment={"HOME": None, "X": "1 2"}, shell="ulimit -n 6;")
        self.assertEqual(oracle.command_line("prog", case),
                         "env -u HOME X='1 2' sh -c 'ulimit -n 6; exec prog run '\"'\"'a b'\"'\"''")


class Mutations(unittest.TestCase):
    def test_a_seed_gives_the_same_inputs_again(self):
        tree = {"a": [1, {"b": "c"}], "d": {"e": 2.5}}
        first = [mutate.changed_json(random.Random(f"x {i}"), tree) for i in range(50)]
        again = [mutate.changed_json(random.Random(f"x {i}"), tree) for i in range(50)]
        self.assertEqual(first, again)
        self.assertGreater(len(set(first)), 40)
        self.assertEqual(tree, {"a": [1, {"b": "c"}], "d": {"e": 2.5}})

    def test_arrays_and_journals_change(self):
        whole = arrays.array("<f8", [1, 2, 5, 4])
        self.assertEqual(len(whole) % 64, 40 * 8 % 64)
        changed = {arrays.changed_array(random.Random(i), "<f8", [1, 2, 5, 4]) for i in range(60)}
        self.assertGreater(len(changed - {whole}), 40)
        lines = [b'{"type": "header"}', b'{"type": "record", "cell": "a", "round": 0}']
        self.assertTrue(
            any(results.changed_journal(random.Random(i), lines) != lines for i in range(9))
        )

    def test_failures_of_one_cause_are_one_group(self):
        self.assertEqual(fuzz.gist('a/b.json:12: /x/y: "one" is 3.5'),
                         fuzz.gist('/tmp/c.json:7: /z: "two" is 1e9'))


class CommandLines(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.folder = self.scratch / "case"
        self.folder.mkdir()
        # What cases start from is there already, so that no program is needed.
        for start in ("tiny_run", "submission"):
            (self.scratch / start).mkdir()
            (self.scratch / start / "file").write_text("as it was")
        self.kind = commands.Commands("/bin/false", self.scratch)

    def test_every_command_is_tried(self):
        lines = (fuzz.SOURCES / "harness/program/commands/commands.txt").read_text().splitlines()
        known = {line.split()[0] for line in lines}
        measures_for_minutes = {"doctor"}
        self.assertGreater(len(known), 20)
        self.assertEqual(known - measures_for_minutes, set(commands.COMMANDS))
        for command, flags in commands.COMMANDS.items():
            self.assertEqual(set(flags) - set(commands.FLAGS), set(), command)

    def test_no_command_line_measures_figures_or_writes_outside_its_folder(self):
        tried = set()
        with (unittest.mock.patch.object(commands.shutil, "copy"),
              unittest.mock.patch.object(commands, "copy_run")):
            for i in range(1500):
                case = self.kind.case(random.Random(f"safe {i}"), self.folder)
                command, *words = case.arguments
                tried.add(command)
                for word in words:
                    flag, equals, value = word.partition("=")
                    if command == "figures":
                        self.assertNotIn(flag, commands.NEVER)
                    if flag in commands.WRITING_FLAGS:
                        self.assertTrue(equals, words)
                        written = os.path.normpath(self.folder / value)
                        self.assertTrue(written.startswith(str(self.folder)), written)
        self.assertLessEqual(set(commands.COMMANDS), tried)

    def test_cases_have_copies_and_stand_ins(self):
        case = self.kind.case(random.Random("one"), self.folder)
        for file in ("result.json", "tiny_run/file", "submission/file"):
            (self.folder / file).write_text("changed")
        self.assertEqual((self.scratch / "tiny_run" / "file").read_text(), "as it was")
        self.assertEqual((self.scratch / "submission" / "file").read_text(), "as it was")
        self.assertNotEqual(commands.FIXTURE.read_text(), "changed")
        for name in ("sbatch", "squeue", "valgrind"):
            found = shutil.which(name, path=case.environment["PATH"])
            self.assertEqual(found, str(self.scratch / "stand_ins" / name))

    def test_words_that_write_into_the_sources_are_taken_away(self):
        words = ["latte_v1", "--run", "--json", "--again=x"]
        self.assertEqual(commands.allowed("figures", words), ["latte_v1", "--json"])
        self.assertEqual(commands.allowed("submit", words), words)


if __name__ == "__main__":
    unittest.main()
