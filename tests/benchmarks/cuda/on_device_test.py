#!/usr/bin/env python3
"""on_device_test.py PROGRAM: on_device.sh from end to end with stand-ins for the programs, a card and
compute-sanitizer; and that each benchmark of the real PROGRAM belongs to one step of it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import peers

PROGRAM = None
CASE = "softmax_forward/bf16/B:1/H:16/T:64/D:64/causal:1/window:0"

CHECKS = r"""#!/bin/sh
case ${1-} in
  --list-test-names-only) printf '%s\n' "sums, and products" "a race"; exit 2 ;;
esac
[ -z "${CHECKS_FAIL-}" ] || { echo "x.cpp:1: FAILED:"; echo "test cases: 2 | 1 failed"; exit 1; }
echo "All tests passed (7 assertions in 2 test cases)"
"""
BENCH = r"""#!/bin/sh
[ -z "${NO_CARD-}" ] || { echo "attnbench_cuda_bench: there is no CUDA device"; exit 3; }
for word; do case $word in --benchmark_out=*) cp rows.json "${word#*=}" ;; esac; done
"""
SANITIZER = r"""#!/bin/sh
case $* in *racecheck*race*) echo "========= Error: Race reported"; exit 77 ;; esac
"""


def row(program, microseconds):
    return {"name": f"{CASE}/{program}/iterations:1/manual_time", "run_type": "iteration",
            "real_time": microseconds, "time_unit": "us", "useful_flops_per_second": 2e12}


class OnDevice(unittest.TestCase):
    def run_script(self, **more):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bin").mkdir()
            for script in ("on_device.sh", "peers.py", "compare_peers.py"):
                shutil.copy(HERE / script, folder)
            for path, text in (("test_cuda", CHECKS), ("attnbench_cuda_bench", BENCH),
                               ("bin/compute-sanitizer", SANITIZER),
                               ("bin/nvidia-smi", "#!/bin/sh\necho a card\n")):
                (folder / path).write_text(text)
                (folder / path).chmod(0o755)
            (folder / "commit").write_text("abc123\n")
            rows = {"benchmarks": [row("attnbench", 40), row("attnbench", 42), row("sdpa_flash", 82)]}
            # As a run leaves it that was cut off in its last row.
            (folder / "rows.json").write_text(json.dumps(rows, indent=2)[:-6] + ',\n    {\n      "na')
            done = subprocess.run(
                ["bash", folder / "on_device.sh"], text=True, capture_output=True, timeout=300,
                env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LIMIT": "200",
                     "OUT": str(folder / "results"), **more})
            return done, {p.name: p.read_text() for p in (folder / "results").iterdir()}

    def test_a_whole_run(self):
        done, results = self.run_script()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("commit abc123", results["card.txt"])
        self.assertIn("checks: done", done.stdout)
        self.assertIn(f"| {CASE} | 41.0 us | 2.0 TFLOP/s | sdpa_flash | 82.0 us | 2.00 (1.95-2.05) |",
                      results["table.md"])
        self.assertIn("memcheck: 2 of 2 test cases clean", results["sanitizer.txt"])
        self.assertIn("racecheck: 1 of 2 test cases clean", results["sanitizer.txt"])
        self.assertIn("FAULT: a race", results["sanitizer.txt"])

    def test_a_failed_check_stops_it_unless_told_otherwise(self):
        for more, measured in (({}, False), ({"EVEN_IF_WRONG": "1"}, True)):
            done, results = self.run_script(CHECKS_FAIL="1", STEPS="checks softmax", **more)
            self.assertEqual(done.returncode, 1)
            self.assertEqual("table.md" in results, measured)

    def test_without_a_device_it_ends_with_3(self):
        done, _ = self.run_script(STEPS="softmax", NO_CARD="1")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no CUDA device", done.stdout)

    def test_every_benchmark_belongs_to_a_step_and_every_case_to_peers(self):
        names = subprocess.run([PROGRAM, "--benchmark_list_tests"], text=True, check=True,
                               capture_output=True).stdout.split()
        steps = re.findall(r"^ours \w+ \d+ '(.*)'$", (HERE / "on_device.sh").read_text(), re.M)
        self.assertTrue(names)
        for name in names:
            self.assertEqual(sum(bool(re.search(step, name)) for step in steps), 1, name)
            if "_step/" in name or name.startswith("lavo"):
                self.assertIsNone(peers.parse_case(name))
            else:
                case = peers.parse_case(name)
                self.assertTrue(peers.peers_of(None, case), name)
                self.assertEqual(len(peers.shapes(case)), 3)


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
