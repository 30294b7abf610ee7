#!/usr/bin/env python3
"""on_device_test.py PROGRAM: the benchmark program on a device that only pretends, and on_device.sh
from end to end with it, stand-ins for what else a GPU machine has, and no PyTorch."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import peer_case

PROGRAM = None

CHECKS = r"""#!/bin/sh
case ${1-} in
  --list-test-names-only) printf '%s\n' "sums, and products" "a race [sometimes]"; exit 2 ;;
esac
echo "ran: $*" >>"$STAND_IN_LOG"
[ -z "${CHECKS_FAIL-}" ] || { echo "x.cpp:1: FAILED:"; echo "test cases: 2 | 1 failed"; exit 1; }
echo "All tests passed (7 assertions in 2 test cases)"
"""
SANITIZER = r"""#!/bin/sh
echo "sanitizer: $*" >>"$STAND_IN_LOG"
case $* in *racecheck*race*) echo "========= Error: Race reported"; exit 77 ;; esac
"""


class Bench(unittest.TestCase):
    def run_bench(self, *words, **environment):
        return subprocess.run([PROGRAM, *words], text=True, capture_output=True,
                              env={**os.environ, **environment})

    def rows(self, *words, **environment):
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name) / "out.json"
            done = self.run_bench(*words, f"--benchmark_out={out}", **environment)
            return done, json.loads(out.read_text())

    def test_help_and_bad_words(self):
        done = self.run_bench("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--benchmark_filter", done.stdout)
        self.assertEqual(self.run_bench("--no-such-word").returncode, 2)
        self.assertEqual(self.run_bench("--benchmark_filter=nothing_is_called_so").returncode, 2)

    def test_names_are_listed_without_a_device(self):
        done = self.run_bench("--benchmark_list_tests", PRETEND_REFUSAL="there is no CUDA device")
        self.assertEqual(done.returncode, 0)
        names = done.stdout.split()
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("ceiling_gemm/bf16/N:8192/cublas/iterations:1/manual_time", names)

    def test_without_a_device_the_reason_is_said(self):
        done = self.run_bench(PRETEND_REFUSAL="there is no CUDA device")
        self.assertEqual((done.returncode, done.stderr),
                         (3, "attnbench_cuda_bench: there is no CUDA device\n"))

    def test_ceilings_stand_in_the_context_and_rates_are_shares_of_them(self):
        done, document = self.rows("--benchmark_filter=^ceiling")
        self.assertEqual(done.returncode, 0, done.stderr)
        context = document["context"]
        self.assertAlmostEqual(float(context["copy_bytes_per_second"]), 4e12, delta=0.1e12)
        self.assertAlmostEqual(float(context["gemm_bf16_flops_per_second"]), 800e12, delta=8e12)
        rows = [r for r in document["benchmarks"] if r["run_type"] == "iteration"]
        self.assertEqual(len(rows), 6 * 3)
        for row in rows:
            self.assertAlmostEqual(row["share_of_floor"], 1, delta=0.01, msg=row["name"])
            self.assertAlmostEqual(row["low_seconds"], 1e-6 * row["real_time"], delta=1e-6)

    def test_without_cublas_there_is_no_gemm_and_the_reason(self):
        done, document = self.rows("--benchmark_filter=^ceiling", "--cublas=none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot open", document["context"]["no_gemm"])
        wrong = {r["name"].split("/")[0] for r in document["benchmarks"] if r.get("error_occurred")}
        self.assertEqual(wrong, {"ceiling_gemm"})

    def test_every_benchmark_runs_on_arrays_as_long_as_it_says_and_peers_read_its_name(self):
        done, document = self.rows()
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in document["benchmarks"]:
            if row["run_type"] == "iteration" and not row["name"].startswith("ceiling"):
                self.assertIsNotNone(peer_case.parse_case(row["name"]), row["name"])

    def test_ceilings_that_do_not_fit_are_said(self):
        done = self.run_bench(PRETEND_MEMORY=str(3 << 30))
        self.assertEqual(done.returncode, 3)
        self.assertIn("out of memory", done.stderr)


def pack(folder):
    """What pack.sh makes of a build whose programs are stand-ins."""
    build = folder / "build"
    (build / "bin").mkdir(parents=True)
    for name in ("test_cuda", "attnbench_cuda_bench"):
        shutil.copy(PROGRAM, build / "bin" / name)
    subprocess.run(["bash", HERE / "pack.sh", build, folder], check=True, capture_output=True)
    shutil.rmtree(build)


class OnDevice(unittest.TestCase):
    @contextlib.contextmanager
    def laid_out(self):
        """(folder, environment): what pack.sh made, and stand-ins for what a GPU machine has."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            pack(folder)
            (folder / "commit").write_text("abc123\n")
            (folder / "bin").mkdir()
            for path, text in [("test_cuda", CHECKS), ("bin/compute-sanitizer", SANITIZER),
                               ("bin/nvidia-smi", "#!/bin/sh\necho a card\n")]:
                (folder / path).write_text(text)
                (folder / path).chmod(0o755)
            yield folder, {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}",
                           "LIMIT": "200", "OUT": str(folder / "results"),
                           "STAND_IN_LOG": str(folder / "log")}

    def run_script(self, **more):
        with self.laid_out() as (folder, environment):
            done = subprocess.run(["bash", folder / "on_device.sh"], text=True, capture_output=True,
                                  env={**environment, **more})
            results = {p.name: p.read_text() for p in (folder / "results").iterdir()}
            log = folder / "log"
            return done, results, log.read_text() if log.exists() else ""

    def test_a_whole_run(self):
        done, results, log = self.run_script()
        self.assertLessEqual(len(results), 8)
        self.assertIn("commit abc123", results["card.txt"])
        self.assertIn("checks: done", done.stdout)
        document = json.loads(results["ours.json"])
        self.assertEqual(document["context"]["commit"], "abc123")
        self.assertIn("| ceiling_copy | 1.0", results["table.md"])
        self.assertIn("memcheck: 2 of 2 test cases clean", results["sanitizer.txt"])
        self.assertIn("racecheck: 1 of 2 test cases clean", results["sanitizer.txt"])
        self.assertIn("FAULT: a race", results["sanitizer.txt"])
        self.assertIn(r"./test_cuda sums\, and products", log)  # one name, not two

    def test_a_failed_check_stops_it_unless_told_otherwise(self):
        done, results, _ = self.run_script(CHECKS_FAIL="1", STEPS="checks softmax")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("ours.json", results)
        done, results, _ = self.run_script(CHECKS_FAIL="1", STEPS="checks softmax", EVEN_IF_WRONG="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ours.json", results)

    def test_without_a_device_it_ends_with_3_whatever_step_is_asked_for(self):
        done, results, _ = self.run_script(STEPS="softmax", PRETEND_REFUSAL="there is no CUDA device")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no CUDA device", done.stdout)
        self.assertNotIn("ours.json", results)

    def test_every_benchmark_belongs_to_a_step(self):
        names = subprocess.run([PROGRAM, "--benchmark_list_tests"], text=True,
                               capture_output=True).stdout.split()
        steps = re.findall(r"^ours \w+ \d+ '(.*)'$", (HERE / "on_device.sh").read_text(), re.M)
        for name in names:
            self.assertEqual(sum(bool(re.search(step, name)) for step in steps), 1, name)

    def test_a_limit_from_outside_keeps_what_was_measured(self):
        with self.laid_out() as (folder, environment):
            (folder / "bin/compute-sanitizer").write_text("#!/bin/sh\nexec sleep 20\n")
            begun = subprocess.Popen(
                ["bash", folder / "on_device.sh"], stdout=subprocess.DEVNULL,
                env={**environment, "STEPS": "softmax memcheck", "LIMIT": "600"})
            card = folder / "results" / "card.txt"
            for _ in range(600):
                time.sleep(0.1)
                if card.exists() and "softmax: done" in card.read_text():
                    break
            time.sleep(0.5)
            begun.terminate()
            self.assertEqual(begun.wait(timeout=30), 143)
            self.assertIn("ended from outside", card.read_text())
            self.assertTrue(json.loads((folder / "results/ours.json").read_text())["benchmarks"])

    def test_what_comes_too_late_is_left_out_and_said(self):
        done, _, _ = self.run_script(LIMIT="4")
        self.assertIn("checks: cut off at its limit", done.stdout)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
