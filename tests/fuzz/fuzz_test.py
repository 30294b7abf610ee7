#!/usr/bin/env python3
"""What the fuzzers must see, shown to them by programs that misbehave."""

import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import arrays
import fuzz
import mutate
import oracle
import results
from oracle import Case


class Oracle(unittest.TestCase):
    def symptoms(self, script, **about):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(["-c", script], **{"limit_seconds": 5, **about})
            outcome = oracle.run("/bin/sh", case, folder)
            return [symptom for symptom, _ in oracle.complaints(case, outcome)]

    def test_what_is_well_said_is_no_complaint(self):
        self.assertEqual(self.symptoms("echo done"), [])
        self.assertEqual(
            self.symptoms(
                "echo 'attnbench: suite.json:3: /set/x: expected a number' >&2; exit 2",
                files=["suite.json"],
            ),
            [],
        )
        self.assertEqual(
            self.symptoms(
                "echo 'x.npy: its shape is [1]; expected 4 sizes' >&2; exit 2", files=["x.npy"]
            ),
            [],
        )

    def test_endings(self):
        self.assertEqual(self.symptoms("kill -SEGV $$"), ["signal"])
        self.assertEqual(self.symptoms("exit 139"), ["signal"])
        self.assertEqual(self.symptoms("exit 77"), ["exit code"])
        self.assertEqual(self.symptoms("sleep 60", limit_seconds=0.2), ["hang"])
        self.assertEqual(self.symptoms("sleep 60 >&- 2>&- &"), ["left behind"])

    def test_an_interrupted_command_ends(self):
        script = "trap 'exit 130' INT; while true; do sleep 0.1; done"
        self.assertEqual(self.symptoms(script, interrupt_after=0.3), [])

    def test_messages(self):
        self.assertEqual(self.symptoms("exit 2"), ["no message"])
        self.assertEqual(
            self.symptoms("echo 'attnbench: bad' >&2; exit 2", files=["a.json"]),
            ["no file in the message"],
        )
        self.assertEqual(
            self.symptoms("echo 'attnbench: dir/a.json: bad' >&2; exit 2", files=["a.json"]),
            ["no place in the message"],
        )
        self.assertEqual(
            self.symptoms("echo '[json.exception.type_error.302] x' >&2; exit 3"), ["raw exception"]
        )
        self.assertEqual(self.symptoms("printf '\\033[31mred\\n'"), ["control character"])
        self.assertEqual(self.symptoms("printf '\\302\\233x\\n' >&2"), ["control character"])
        self.assertEqual(
            self.symptoms("head -c 3000 /dev/zero | tr '\\0' a >&2; exit 2"),
            ["a message over 2 kB"],
        )

    def test_several_faults_are_several_messages(self):
        script = (
            "for i in $(seq 40); do "
            "echo \"s.json:$i: $(head -c 100 /dev/zero | tr '\\0' a)\" >&2; done; exit 2"
        )
        self.assertEqual(self.symptoms(script, files=["s.json"]), [])

    def test_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(["-c", "x = bytearray(1100 << 20); x[::4096] = b'1' * len(x[::4096])"])
            outcome = oracle.run(sys.executable, case, folder)
            self.assertEqual(
                [symptom for symptom, _ in oracle.complaints(case, outcome)], ["memory"]
            )

    def test_the_command_is_one_that_a_shell_takes(self):
        case = Case(["run", "a b"], environment={"HOME": None, "X": "1 2"}, shell="ulimit -n 6;")
        self.assertEqual(
            oracle.command_line("prog", case),
            "env -u HOME X='1 2' sh -c 'ulimit -n 6; exec prog run '\"'\"'a b'\"'\"''",
        )


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
        self.assertEqual(
            fuzz.gist('a/b.json:12: /x/y: "one" is 3.5'),
            fuzz.gist('/tmp/c.json:7: /z: "two" is 1e9'),
        )


if __name__ == "__main__":
    unittest.main()
