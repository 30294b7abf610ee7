#!/usr/bin/env python3
"""plain_pytorch.py, as far as it needs no PyTorch."""

import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).with_name("plain_pytorch.py")
sys.path.insert(0, str(SCRIPT.parent))
import plain_pytorch


def result(status="ok"):
    cell = {"status": status, "metrics": {"examples_per_second": 4000.0},
            "training": {"curve": [{"loss": 9.5}, {"loss": 8.0}]}}
    return {"attnbench": {"cells": [cell]}}


class Summaries(unittest.TestCase):
    def test_ratios_are_of_pairs(self):
        numbers = plain_pytorch.summary([(100, 10), (90, 30), (50, 10)])
        self.assertEqual(numbers["ratio"], {"median": 5, "low": 3, "high": 10})
        self.assertEqual(numbers["ours_examples_per_second"]["median"], 90)
        self.assertEqual(numbers["pytorch_examples_per_second"]["high"], 30)

    def test_a_cell_that_failed_has_no_speed(self):
        self.assertEqual(plain_pytorch.speed_of(result()), (4000.0, 8.0))
        with self.assertRaises(SystemExit):
            plain_pytorch.speed_of(result("error"))

    def test_our_run_is_of_the_same_steps(self):
        words = plain_pytorch.command_of("attnbench", "run", 30, 2, 0)
        self.assertIn("train_examples=15360", words)
        suite = pathlib.Path(words[2])
        self.assertTrue(suite.exists(), suite)

    def test_numbers_below_one_are_refused(self):
        for flag in ("--steps", "--slices", "--threads"):
            done = subprocess.run([sys.executable, SCRIPT, "--attnbench", "x", flag, "0"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("1 or more", done.stderr)


if __name__ == "__main__":
    unittest.main()
