#!/usr/bin/env python3
"""harness/program/compare/study.py: its rules on numbers made by hand, and a recording that is cut."""

import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[4]
STUDY = SOURCE / "harness/program/compare/study.py"
sys.path.insert(0, str(STUDY.parent))
sys.dont_write_bytecode = True

import study  # noqa: E402


class Rules(unittest.TestCase):
    def test_order_statistics_are_those_of_the_program(self):
        # tests/core/statistics.cpp and tests/harness/program/compare/gate.cpp have the same numbers.
        self.assertIsNone(study.order_rank(5, 0.95))
        self.assertEqual(study.order_rank(6, 0.95), 0)
        self.assertEqual(study.order_rank(9, 0.95), 1)
        self.assertEqual(study.order_interval(list(range(12)), 0.95), (2, 9))

    def test_signed_ranks_have_wilcoxons_table(self):
        self.assertIsNone(study.signed_rank(5, 0.95))
        # The table's critical value for n = 12 at 5 % is 13: W <= 13 rejects.
        self.assertEqual(study.signed_rank(12, 0.95), 13)
        self.assertEqual(study.signed_rank(8, 0.95), 3)
        low, high = study.signed_interval([float(x) for x in range(1, 9)], 0.95)
        self.assertEqual((low, high), (2.0, 7.0))  # of 1, 1.5, 2, 2, 2.5, … the fourth

    def test_verdicts_need_the_whole_interval(self):
        self.assertEqual(study.verdict_of((0.031, 0.05), 0.03), "SLOW")
        self.assertEqual(study.verdict_of((0.02, 0.05), 0.03), "UNCLEAR")
        self.assertEqual(study.verdict_of((-0.02, 0.02), 0.03), "SAME")
        self.assertEqual(study.verdict_of((-0.06, -0.05), 0.03), "FAST")
        self.assertEqual(study.verdict_of(None, 0.03), "UNCLEAR")

    def test_a_control_that_moves_leaves_no_verdict(self):
        moved = [math.log(1.1)] * 12
        self.assertEqual(study.look_at(moved, [0.0] * 12, 0.95, 0.03, study.order_interval), "SLOW")
        self.assertEqual(study.look_at(moved, moved, 0.95, 0.03, study.order_interval), "UNCLEAR")

    def test_beside_others_a_ratio_is_far_from_1_and_from_the_control(self):
        def look(ratio, noise):
            logs, control = [math.log(ratio)] * 12, [math.log(noise), -math.log(noise)] * 6
            return study.look_beside_others(logs, control, 0.95, 0.03, study.order_interval)

        self.assertEqual(look(1.3, 1.2), "SLOW")
        self.assertEqual(look(0.7, 1.2), "FAST")
        self.assertEqual(look(1.3, 1.4), "UNCLEAR")
        self.assertEqual(look(1.08, 1.0), "UNCLEAR")

    def test_only_what_is_unclear_goes_on_and_what_is_slow_is_confirmed(self):
        def rounds(values):
            return lambda count: ([values.pop(0) for _ in range(count)], [0.0] * count)

        slow = math.log(1.1)
        run = lambda values, confirm: study.sequential(  # noqa: E731
            rounds(values), (12, 24, 48), 9, 0.03, study.order_interval, confirm)
        self.assertEqual(run([0.0] * 12, 12), ("SAME", 12))
        self.assertEqual(run([slow] * 24, 12), ("SLOW", 12))
        self.assertEqual(run([slow] * 12 + [0.0] * 12, 12), ("UNCLEAR", 12))
        self.assertEqual(run([-0.1, 0.1] * 24, 12), ("UNCLEAR", 48))


class Recording(unittest.TestCase):
    def test_a_run_of_ab_is_cut_into_blocks_and_saved(self):
        def cell(identity, factor):
            rounds = [{"round": i, "median_seconds": 0.01 * factor * (1 + 0.001 * (i % 3))}
                      for i in range(50)]
            rounds[7]["disturbed"] = True
            return {"id": identity, "timing": {"forward": {"rounds": rounds}}}

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            matches = [{"name": "kernel a", "base": "1-base", "changed": "1-new", "control": "1-again"}]
            document = {"suite": {"ab": {"matches": matches}},
                        "cells": [cell("1-base", 1), cell("1-new", 1.1), cell("1-again", 1)]}
            (folder / "result.json").write_text(json.dumps({"attnbench": document}))
            saved = folder / "saved.json.gz"
            command = [sys.executable, str(STUDY), "blocks"]
            first = subprocess.run(command + [str(folder)], check=True, capture_output=True,
                                   text=True).stdout
            about = "| a machine | a run | 0 % | 1.100 to 1.100 |"
            self.assertIn(about + " 12 | order statistics | 4 | 4 | 0 | 0 |", first)
            self.assertIn(about + " 48 | signed ranks | 1 | 1 | 0 | 0 |", first)
            recording = study.recorded(folder)
            study.save(dict(recording, version=1), saved)
            again = subprocess.run(command + [str(saved)], check=True, capture_output=True,
                                   text=True).stdout
            self.assertEqual(first, again)
            self.assertEqual(study.recorded(saved)["verdicts"]["12"]["SLOW"], 4)
            document["suite"] = {}
            (folder / "result.json").write_text(json.dumps({"attnbench": document}))
            refused = subprocess.run(command + [str(folder)], capture_output=True, text=True)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("no run of", refused.stderr)
            for odd in (b"", saved.read_bytes()[:40], gzip.compress(b"[]"), gzip.compress(b"{}"),
                        gzip.compress(b'{"version": 2, "cells": {}}')):
                saved.write_bytes(odd)
                refused = subprocess.run(command + [str(saved)], capture_output=True, text=True)
                self.assertEqual(refused.returncode, 1, odd)
                self.assertIn("saved.json.gz: ", refused.stderr)
                self.assertNotIn("Traceback", refused.stderr)

    def test_a_load_that_does_not_start_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            file = pathlib.Path(name) / "none.json.gz"
            refused = subprocess.run([sys.executable, str(STUDY), "record", str(file), "--load",
                                      "/no/such/load --now"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 1)
            self.assertEqual(refused.stderr, "--load /no/such/load --now: No such file or directory\n")
            self.assertFalse(file.exists())

    def test_a_run_takes_the_rounds_that_it_needs(self):
        def verdicts(ratios):
            return study.runs_of([[1.0, ratio, 1.0] for ratio in ratios], 9, study.order_interval)

        # SLOW takes 12 rounds and 24 that confirm it; one begins where 72 are left.
        self.assertEqual(verdicts([1.1] * 72), ["SLOW"])
        self.assertEqual(verdicts([1.1] * 108), ["SLOW", "SLOW"])
        self.assertEqual(verdicts([1.1] * 107), ["SLOW"])
        self.assertEqual(verdicts([1.0] * 84), ["SAME", "SAME"])
        self.assertEqual(verdicts([1.1] * 12 + [1.0] * 60), ["UNCLEAR"])
        self.assertEqual(verdicts([0.9, 1.1] * 36), ["UNCLEAR"])
        self.assertEqual(verdicts([0.9, 1.1] * 24 + [1.1] * 72), ["UNCLEAR", "SLOW"])
        self.assertEqual(verdicts([1.0] * 71), [])

    def test_stored_recordings_are_whole_and_small(self):
        files = sorted((SOURCE / "tests/harness/program/compare/recordings").glob("*.json.gz"))
        for file in files:
            recording = study.recorded(file)
            for size, stored in recording["verdicts"].items():
                size = size if size == study.RUNS else int(size)
                self.assertEqual(study.verdicts_of(recording, size, study.order_interval), stored)
        self.assertLess(sum(file.stat().st_size for file in files), 2**20)


class Figure(unittest.TestCase):
    def test_the_table_of_the_readme_is_what_is_drawn(self):
        text = (STUDY.parent / "README.md").read_text(encoding="utf-8")
        coverage, verdicts = study.rows_of_table(text)
        self.assertEqual(len(coverage), 3 * 2 * 3)  # noises, intervals, looks
        self.assertEqual(len(verdicts), 3 * 2 * 4)
        self.assertIn({"noise": "jumps", "interval": "signed ranks", "rounds": 48, "share": 95.4}, coverage)
        five = [row for row in verdicts if row["percent"] == 5 and row["noise"] == "independent"]
        self.assertEqual([row["share"] for row in five], [60.6, 90.3])
        for row in verdicts:
            self.assertLessEqual(row["low"], row["share"] + 0.05)
            self.assertGreaterEqual(row["high"], row["share"] - 0.05)
        json.dumps(study.specification(coverage, verdicts), allow_nan=False)
        self.assertIn("](study.svg)", text)
        self.assertTrue((STUDY.parent / "study.svg").exists())
        with self.assertRaises(SystemExit):
            study.rows_of_table("5000 trials of each\n| no | table |\n")

    def test_recordings_stand_beside_made_up_noise(self):
        rounds = [[1.0, 1.1, 1.0]] * 120
        recording = {"machine": "M, 2 cores", "condition": "idle", "percent": 8, "cells": {"one": rounds}}
        for row in study.rows_of_recordings([recording]):
            # Drawn where it is in time, not where it was asked to be.
            self.assertEqual((row["noise"], row["percent"], row["share"]), ("M, idle", 10, 100))

    def test_recordings_of_one_condition_count_together(self):
        def recording(condition, percent, count):
            return {"machine": "m", "condition": condition, "percent": percent,
                    "cells": {"one": [[1.0, 1.1, 1.0]] * count}}

        groups = study.pooled([recording("idle", 0, 72), recording("load", 0, 72),
                               recording("idle", 0, 149), recording("idle", 5, 72)])
        # The slowdown's base against its control is one more of one side against itself.
        self.assertEqual([len(group) for group in groups], [3, 1, 1])
        self.assertEqual(groups[0][2]["cells"]["one"][0], [1.0, 1.0, 1.0])
        # 72 rounds hold one run, and 149 three: 36 of each, and the last begins where 72 are left.
        count = study.verdicts_of_all(groups[0][:2], study.RUNS, study.order_interval)
        self.assertEqual(count, {"SLOW": 4, "FAST": 0, "SAME": 0, "UNCLEAR": 0})


if __name__ == "__main__":
    unittest.main()
