#!/usr/bin/env python3
"""peers.py, as far as it needs neither PyTorch nor JAX."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).with_name("peers.py")
sys.path.insert(0, str(SCRIPT.parent))
import peers

CELL = {"id": "a", "label": "flash", "task": "kernel", "mechanism": "softmax", "device": "cpu",
        "settings": {"pass": "forward", "scope": "mix"}, "options": {},
        "problem": {"batch": 1, "heads": 4, "kv_heads": 4, "length": 512, "key_length": 512,
                    "head_dim": 64, "value_dim": 64, "pattern": "causal", "dtype": "float32"},
        "timing": {"forward": {}}}


def changed(**changes):
    cell = copy.deepcopy(CELL)
    for place, value in changes.items():
        part, _, name = place.partition("__")
        if name:
            cell[part][name] = value
        else:
            cell[part] = value
    return cell


def result(*cells):
    return {"attnbench": {"cells": list(cells), "run": {"threads": 2}}}


class Cases(unittest.TestCase):
    def test_each_problem_is_taken_once(self):
        found = peers.cases("torch", result(CELL, changed(id="b", label="standard"),
                                            changed(id="c", problem__length=1024,
                                                    problem__key_length=1024)))
        self.assertEqual([cell["id"] for cell, _ in found], ["a", "c"])

    def test_what_a_program_does_not_solve_is_left_out(self):
        for other in (changed(mechanism="latte"), changed(device="cuda"),
                      changed(settings__scope="layer"), changed(settings__pass="step"),
                      changed(problem__dtype="float64"), changed(problem__key_length=700),
                      changed(task="decode"), changed(foreign={"name": "JAX"})):
            self.assertEqual(peers.cases("torch", result(other)), [], other)
        untimed = changed()
        del untimed["timing"]
        self.assertEqual(peers.cases("torch", result(untimed)), [])

    def test_the_scan_is_of_causal_latte(self):
        latte = changed(mechanism="latte", options__latents_per_head=64)
        self.assertEqual(peers.cases("jax", result(latte))[0][1]["latents_per_head"], 64)
        latte["problem"]["pattern"] = "bidirectional"
        self.assertEqual(peers.cases("jax", result(latte)), [])


class Measuring(unittest.TestCase):
    def test_a_process_that_fails_is_a_record_with_the_reason(self):
        calls = []

        def failing(program, problem, passes, threads):
            calls.append(passes)
            raise RuntimeError("MemoryError: 3 GiB")

        kept, peers.in_fresh_process = peers.in_fresh_process, failing
        try:
            records = peers.measure("torch", peers.cases("torch", result(CELL)), 3, 2)
        finally:
            peers.in_fresh_process = kept
        self.assertEqual(calls, ["forward"])
        self.assertEqual(records[0]["status"], "error")
        self.assertEqual(records[0]["reason"], "MemoryError: 3 GiB")
        self.assertNotIn("seconds", records[0])

    def test_each_round_is_a_process_of_its_own(self):
        kept, peers.in_fresh_process = peers.in_fresh_process, lambda *_: [0.1]
        try:
            records = peers.measure("torch", peers.cases("torch", result(CELL)), 3, 2)
        finally:
            peers.in_fresh_process = kept
        self.assertEqual(records[0]["seconds"], {"forward": [[0.1]] * 3})

    def test_a_missing_program_is_told_by_the_child(self):
        with self.assertRaisesRegex(RuntimeError, "no_such_program"):
            peers.in_fresh_process("no_such_program", {}, "forward", 1)


class CommandLine(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True,
                              text=True, check=False)

    def test_what_is_no_result_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            path.write_text(json.dumps({"x": 1}), encoding="utf-8")
            for beside in (folder, folder + "/none"):
                done = self.run_script("--beside", beside, "--program", "torch", "--out", "x")
                self.assertEqual(done.returncode, 2)
                self.assertIn(beside, done.stderr)
            path.write_text(json.dumps(result()), encoding="utf-8")
            done = self.run_script("--beside", folder, "--program", "jax", "--out", "x")
            self.assertIn("no cell whose problem jax solves", done.stderr)


if __name__ == "__main__":
    unittest.main()
