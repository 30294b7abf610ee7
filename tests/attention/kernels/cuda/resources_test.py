#!/usr/bin/env python3
"""Holds the gate (resources.py) to reports that it must let pass and reports that it must not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

GATE = pathlib.Path(__file__).with_name("resources.py")


def report(symbol="_Z4goodPf", stack=0, stores=0, loads=0, extra="", architecture="sm_90"):
    return (f"ptxas info    : 0 bytes gmem\n"
            f"ptxas info    : Compiling entry function '{symbol}' for '{architecture}'\n{extra}"
            f"ptxas info    : Function properties for {symbol}\n"
            f"    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
            f"ptxas info    : Used 168 registers, used 9 barriers, 1024 bytes smem\n")


class Gate(unittest.TestCase):
    def run_gate(self, text, allowed=""):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if text is not None:
                (folder / "a.o.ptxas").write_text(text)
            (folder / "allowed.txt").write_text("# a comment\n" + allowed)
            out = folder / "out.txt"
            done = subprocess.run(
                [sys.executable, GATE, "--allowed", folder / "allowed.txt", "--out", out,
                 folder / "a.o"], text=True, capture_output=True)
            return done.returncode, done.stderr, out.read_text() if out.exists() else ""

    def test_a_clean_kernel_passes_and_is_recorded(self):
        code, said, table = self.run_gate(report())
        self.assertEqual((code, said), (0, ""))
        self.assertRegex(table, r"168 +1024 +0 +0 +0 +sm_90 +good\n")

    def test_a_spill_fails_and_is_named(self):
        code, said, table = self.run_gate(report() + report("_Z3badPf", stores=8, loads=12))
        self.assertEqual(code, 1)
        self.assertIn("bad (sm_90): 0 bytes of stack, 8 + 12 bytes spilled", said)
        self.assertNotIn("good", said)

    def test_a_stack_frame_fails(self):
        self.assertEqual(self.run_gate(report(stack=16))[0], 1)

    def test_advice_fails(self):
        self.assertEqual(self.run_gate(report(extra="ptxas info    : (C7510) Potential Performance Loss\n"))[0], 1)

    def test_an_exception_covers_what_it_names_and_no_more(self):
        allowed = "^bad$ sm_90 16 20 rows longer than any register file\n"
        self.assertEqual(self.run_gate(report("_Z3badPf", 16, 20, 20), allowed)[0], 0)
        self.assertEqual(self.run_gate(report("_Z3badPf", 24, 20, 20), allowed)[0], 1)
        self.assertEqual(self.run_gate(report("_Z3badPf", 16, 20, 24), allowed)[0], 1)

    def test_an_exception_that_is_not_needed_fails(self):
        text = report(architecture="sm_80") + report()
        for architecture in ("*", "sm_90"):
            code, said, _ = self.run_gate(text, f"^bad$ {architecture} 16 20 as it was last year\n")
            self.assertEqual(code, 1)
            self.assertIn("no kernel needs", said)

    def test_an_exception_is_not_judged_by_a_part_of_its_architectures(self):
        for architecture in ("*", "sm_80"):
            code, said, _ = self.run_gate(report(), f"^bad$ {architecture} 16 20 on Ampere\n")
            self.assertEqual((code, said), (0, ""))
        self.assertEqual(self.run_gate(report(), "^bad$ sm_90 16 20 on Hopper\n")[0], 1)

    def test_nothing_to_read_is_not_a_pass(self):
        self.assertEqual(self.run_gate(None)[0], 2)
        self.assertEqual(self.run_gate("")[0], 2)
        cut = report().rsplit("ptxas", 1)[0]
        self.assertEqual(self.run_gate(cut)[0], 2)


if __name__ == "__main__":
    unittest.main()
