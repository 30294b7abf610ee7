#!/usr/bin/env python3
"""Checks what the launcher answers where nothing is built, and that it builds nothing for it."""

import os
import pathlib
import pty
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRESET = "preset_of_no_build"


def call(*arguments, **more):
    environment = dict(os.environ, ATTNBENCH_PRESET=PRESET, **more)
    return subprocess.run([str(ROOT / "attnbench"), *arguments], env=environment, text=True,
                          capture_output=True, timeout=120, check=False)


class Unbuilt(unittest.TestCase):
    def tearDown(self):
        self.assertFalse((ROOT / "build" / PRESET).exists())

    def test_help_lists_all_commands(self):
        done = call("--help")
        self.assertEqual(done.returncode, 0)
        for source in (ROOT / "harness/commands").glob("*.cpp"):
            for name in re.findall(r'line\.add\("(\w+)"', source.read_text(encoding="utf-8")):
                self.assertRegex(done.stdout, rf"(?m)^  {name} +[A-Z]")
        self.assertIn("Nothing is built yet", done.stderr)

    def test_version_is_that_of_the_sources(self):
        version = re.search(r"project\(attnbench VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
        done = call("--version")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"attnbench {version.group(1)}, not built", done.stdout)

    def test_list_has_every_mechanism_and_suite_with_a_title(self):
        done = call("list")
        self.assertEqual(done.returncode, 0)
        for pattern in ("attention/mechanisms/*.cpp", "suites/*.json"):
            for file in ROOT.glob(pattern):
                self.assertRegex(done.stdout, rf"(?m)^  {file.stem} +[A-Za-z]")
        self.assertNotIn("latte ", call("list", "suites").stdout)

    def test_doctor_examines_the_machine(self):
        done = call("doctor", "--quick")
        self.assertEqual(done.returncode, 0)
        for word in ("cores", "memory", "disk free", "missing"):
            self.assertIn(word, done.stdout)

    def test_only_a_torch_that_can_be_built_with_replaces_the_systems(self):
        with tempfile.TemporaryDirectory() as folder:
            torch = pathlib.Path(folder) / "torch"
            torch.mkdir()
            (torch / "__init__.py").touch()
            environment = {"PYTHONPATH": folder, "ATTNBENCH_TORCH": ""}
            # Debian's package shares the libraries of libtorch-dev and has no such file.
            self.assertRegex(call("doctor", "--quick", **environment).stdout, r"(?m)^LibTorch +of the system$")
            (torch / "share/cmake/Torch").mkdir(parents=True)
            (torch / "share/cmake/Torch/TorchConfigVersion.cmake").touch()
            self.assertRegex(call("doctor", "--quick", **environment).stdout,
                             rf"(?m)^LibTorch +{re.escape(str(torch))}$")


class OfferOfPython(unittest.TestCase):
    """The launcher's own functions, on a terminal, with a folder for /usr and no apt-get to run."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.usr = pathlib.Path(self.folder.name) / "usr"
        (self.usr / "bin").mkdir(parents=True)
        (self.usr / "bin/python3").touch(mode=0o755)

    def tearDown(self):
        self.folder.cleanup()

    def offered(self, answer, settings="yes=no torch=", terminal=True):
        """What it says, and what it would run."""
        text = (ROOT / "attnbench").read_text(encoding="utf-8")
        functions = text[text.index("missing_for_python() {"):text.index("install_missing() {")]
        script = f"""set -u
have() {{ :; }}
say() {{ echo "$*" >&2; }}
step() {{ shift 2; echo "would run $*" >&2; }}
build={self.folder.name}/build {settings}
{functions.replace("/usr/", str(self.usr) + "/")}
offer_python"""
        master, slave = pty.openpty()
        try:
            os.write(master, answer.encode() + b"\n")
            done = subprocess.run(["sh", "-c", script], stdin=slave if terminal else subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=60, check=True)
        finally:
            os.close(master)
            os.close(slave)
        return done.stderr

    def test_what_python_needs_is_asked_once_and_installed_on_yes(self):
        said = self.offered("y")
        self.assertIn("python3-torch  mechanisms in Python", said)
        self.assertRegex(said, r"would run .*apt-get install .*python3-torch libpython3-dev pybind11-dev")
        self.assertEqual(self.offered("y"), "")

    def test_nothing_is_installed_without_a_yes(self):
        said = self.offered("")
        self.assertIn("python3-torch", said)
        self.assertNotIn("would run", said)

    def test_what_is_there_is_not_offered(self):
        (self.usr / "lib/machine").mkdir(parents=True)
        (self.usr / "lib/machine/libtorch_python.so").touch()
        (self.usr / "include/pybind11").mkdir(parents=True)
        (self.usr / "include/pybind11/pybind11.h").touch()
        said = self.offered("y")
        self.assertIn("libpython3-dev", said)
        self.assertNotIn("python3-torch", said)
        self.assertNotIn("pybind11-dev", said)

    def test_nobody_is_asked_where_nobody_answers_or_another_torch_brings_its_own(self):
        self.assertEqual(self.offered("y", "yes=yes torch="), "")
        self.assertEqual(self.offered("y", terminal=False), "")
        self.assertEqual(self.offered("y", "yes=no torch=/elsewhere/torch"), "")


if __name__ == "__main__":
    unittest.main()
