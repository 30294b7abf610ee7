#!/usr/bin/env python3
"""Tries an installed wheel as a new user does, in the Python that it was installed for.

    wheel_test.py [UNITTEST'S ARGUMENTS]

Run by the workflow that builds wheels, after `pip install WHEEL`; it starts no compiler.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = pathlib.Path(importlib.util.find_spec("attnbench").origin).parent
COMMAND = pathlib.Path(sys.executable).parent / "attnbench"


def run(*words, **more):
    more.setdefault("cwd", tempfile.gettempdir())
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)


def copy_package(place):
    """Copies the package, and the libraries that were grafted into its wheel, which stand beside it."""
    for folder in (PACKAGE, PACKAGE.with_name("attnbench.libs")):
        if folder.exists():
            shutil.copytree(folder, place / folder.name)


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ok(self, *words, **more):
        done = run(*words, **{"cwd": self.folder, **more})
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def blocks(self, document):
        return re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    def test_the_package_is_the_installed_one(self):
        self.assertFalse(PACKAGE.is_relative_to(ROOT), "the checkout's package is found before the wheel's")

    def test_nothing_of_pytorch_or_cuda_is_inside(self):
        names = [file.name for file in PACKAGE.rglob("*.so*")]
        self.assertIn("libattnbench_attention.so", names)
        self.assertFalse([name for name in names if re.match(r"libtorch|libc10|libcu|libnv|libpython", name)])

    def test_the_command_lists_plans_and_measures(self):
        self.assertIn("macchiato", self.ok(COMMAND, "list"))
        self.assertIn("latte_v1_figure_2", self.ok(COMMAND, "list", "suites"))
        self.ok(COMMAND, "plan", "quickstart", "--profile", "quick")
        out = self.ok(COMMAND, "run", "latte", "flash", "--length", "64,128", "--rounds", "1", "--now", "--out", "run")
        self.assertIn("result ", out)
        cells = json.loads((self.folder / "run/result.json").read_text())["attnbench"]["cells"]
        self.assertEqual({cell["status"] for cell in cells} - {"ok", "disturbed"}, set(), cells)

    def test_a_mechanism_in_python_is_checked_in_this_python(self):
        near = next(block for block in self.blocks("docs/python.md") if block.startswith("# near.py"))
        (self.folder / "near.py").write_text(near)
        self.assertIn("all properties hold", self.ok(COMMAND, "check", "python:near.py:Near"))

    def test_a_module_called_as_a_file_of_ours_is_the_users(self):
        (self.folder / "worker.py").write_text("def twice(x):\n    return 2 * x\n")
        (self.folder / "mean.py").write_text(
            "from worker import twice\n\ndef mean(query, key, value):\n    return twice(value.cumsum(2))\n\n"
            "mean.patterns = ['causal']\n")
        self.ok(COMMAND, "run", "python:mean.py:mean", "--length", "16", "--rounds", "1", "--now", "--no-report", "--out", "run")

    def test_a_function_is_measured_in_the_sizes_of_tensors(self):
        (self.folder / "own.py").write_text(
            "def mean(query, key, value, causal: bool):\n    return query + (key * value).mean(2, keepdim=True)\n\n"
            "mean.patterns = ['bidirectional']\n")
        said = self.ok(sys.executable, "-c", (
            "import attnbench, own, torch\n"
            "query, key, value = torch.randn(3, 1, 2, 64, 16).requires_grad_().unbind(0)\n"
            "found = attnbench.measure(own.mean, query, key, value, causal=False, rounds=1, now=True, progress='none')\n"
            "assert found.median_seconds > 0 and found.record['problem']['length'] == 64, found\n"
            "print(found)\n"))
        self.assertRegex(said, r"(?s)^mean: .*forward\+backward [0-9.]+ (ms|µs).*workspace")

    def test_what_torch_compiles_is_timed_afterwards(self):
        (self.folder / "own.py").write_text(
            "import torch\n\n@torch.compile(backend='aot_eager')\n"
            "def mean(query, key, value, causal: bool):\n    return query + (key * value).mean(2, keepdim=True)\n\n"
            "mean.patterns = ['bidirectional']\n")
        said = self.ok(sys.executable, "-c", (
            "import attnbench, own, torch\n"
            "query, key, value = torch.randn(3, 1, 2, 64, 16).unbind(0)\n"
            "found = attnbench.measure(own.mean, query, key, value, causal=False, rounds=1, now=True, progress='none')\n"
            "assert found.compile_seconds > 10 * found.high_seconds, found\n"
            "print(found)\n"))
        self.assertIn("the first call, not timed, took ", said)

    def test_an_archive_is_refused_with_how_to_unpack_it(self):
        said = " ".join(self.ok(COMMAND, "data", "--help").split())
        self.assertIn("as they are had: a folder or a file", said)
        self.assertNotIn("an archive, a folder", said)
        self.assertIn("unpack what is an archive", self.ok(COMMAND, "data", "--list", "--data", "."))
        (self.folder / "texts").mkdir()
        (self.folder / "texts/text.txt").write_text("To be, or not to be, that is the question.\n" * 2000)
        for name, form, module in (("texts.tar.gz", "gztar", "tarfile"), ("texts.zip", "zip", "zipfile")):
            shutil.make_archive(self.folder / "texts", form, self.folder, "texts")
            done = run(COMMAND, "data", "lm", "--from", name, "--out", "data", cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
            self.assertIn(f"unpack it (python3 -m {module} -e {name} FOLDER) and give the folder", done.stderr)
            self.ok(sys.executable, "-m", module, "-e", name, f"from_{form}")
            self.ok(COMMAND, "data", "lm", "--from", f"from_{form}", "--out", f"data_{form}")

    def test_what_a_wheel_lacks_is_said_with_what_to_do(self):
        done = run(COMMAND, "run", "linear", "--length", "64", "--device", "cuda", "--out", "run", cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertIn("wheels are built without CUDA: a checkout's launcher builds", done.stderr)
        environment = {**os.environ, "ATTNBENCH_PYTHON": str(self.folder / "nowhere")}
        done = run(COMMAND, "report", ROOT / "tests/reports/fixture.json", "--out", "page", cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("nowhere -m pip install vl-convert-python", done.stderr)

    def test_kernels_are_called(self):
        self.ok(sys.executable, ROOT / "tests/kernels_from_python_test.py")

    def test_the_script_of_the_readme_runs(self):
        script = next(block for block in self.blocks("README.md") if "attnbench.attention" in block)
        self.assertLessEqual(len([line for line in script.splitlines() if line.strip()]), 14)
        (self.folder / "first.py").write_text(script)
        self.ok(sys.executable, "first.py")
        self.assertTrue(list(self.folder.glob("*.html")), "the script draws a chart")

    def test_it_works_moved_with_spaces_and_read_only(self):
        place = self.folder / "a place with spaces"
        copy_package(place)
        parts = [file for file in place.rglob("*") if not file.is_symlink()]
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        (place / "torch").symlink_to(torch)
        for file in parts:
            file.chmod(file.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            out = self.ok(sys.executable, "-m", "attnbench", "run", "linear", "--length", "64", "--rounds", "1", "--now",
                          "--no-report", "--out", "run", env=environment)
            self.assertIn("1 cells", out.replace("1 cell:", "1 cells:"))
        finally:
            for folder in parts:
                if folder.is_dir():
                    folder.chmod(0o755)

    def test_another_pytorch_is_refused_in_one_sentence(self):
        copy = self.folder / "attnbench"
        copy_package(self.folder)
        (copy / "native/lib/libattnbench-operators.torch").write_text("1.9.0\n")
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        for words in (("-m", "attnbench", "run", "linear", "--length", "64", "--out", "run"), ("-c", "import attnbench; attnbench.attention")):
            done = run(sys.executable, *words, cwd=self.folder, env=environment)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("built with PyTorch 1.9.0", done.stderr)
            self.assertIn("pip install 'torch==1.9.*'", done.stderr)


if __name__ == "__main__":
    unittest.main()
