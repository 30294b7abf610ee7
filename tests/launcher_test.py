#!/usr/bin/env python3
"""Checks what the launcher answers where nothing is built, that it builds nothing for it, how it says
how far a build is, and which commit a build notes."""

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
        for source in (ROOT / "harness/program/commands").glob("*.cpp"):
            self.assertRegex(done.stdout, rf"(?m)^  {source.stem} +[A-Z]")
        for name in ("build", "test", "fix", "docs"):  # the launcher's own
            self.assertRegex(done.stdout, rf"(?m)^  {name} +[A-Z]")
        self.assertIn("Nothing is built yet", done.stderr)

    def test_build_says_its_variables_and_refuses_words(self):
        done = call("build", "--help")
        self.assertEqual(done.returncode, 0)
        for name in ("ATTNBENCH_TORCH=DIR", "ATTNBENCH_PRESET=NAME", "ATTNBENCH_CUDA_ARCHITECTURES=LIST"):
            self.assertIn(name, done.stdout)
        done = call("build", "everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn("everything", done.stderr)

    def test_docs_reads_its_words_before_anything_is_built(self):
        done = call("docs", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--build DIR", done.stdout)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "mine"
            file.touch()
            for words, message in ((["--biuld", "x"], "unrecognized arguments: --biuld x"), (["--build"], "expected one argument"),
                                   (["--build", folder], "is no site"), (["--build", str(file)], "is no site")):
                done = call("docs", *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)
            self.assertTrue(file.exists())

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

    def test_a_card_that_is_not_there_is_refused_at_once(self):
        if any(pathlib.Path("/dev").glob("nvidia[0-9]*")) or pathlib.Path("/dev/dxg").exists():
            self.skipTest("there is a card")
        with tempfile.TemporaryDirectory() as folder:
            # The first commands of a build would leave their names here.
            log = pathlib.Path(folder) / "log"
            for tool in ("cmake", "apt-get", "sudo", "nvcc"):
                (pathlib.Path(folder) / tool).write_text(f"#!/bin/sh\necho {tool} >>{log}\n")
                (pathlib.Path(folder) / tool).chmod(0o755)
            environment = {"PATH": f"{folder}:{os.environ['PATH']}", "ATTNBENCH_CUDA_ARCHITECTURES": ""}
            for words in (["run", "latte", "--device", "cuda"], ["check", "latte", "--device=cuda:1"],
                          ["doctor", "--device", "cuda", "--quick"]):
                done = call(*words, **environment)
                self.assertEqual(done.returncode, 3)
                self.assertRegex(done.stderr, "the CUDA device cannot be used: (there is no|the) NVIDIA driver")
                self.assertFalse(log.exists())

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


def functions(*names):
    """The text of functions of the launcher."""
    text = (ROOT / "attnbench").read_text(encoding="utf-8")
    return "".join(re.search(rf"(?ms)^{name}\(\) \{{$.*?^\}}$\n", text).group(0) for name in names)


class Card(unittest.TestCase):
    """What the launcher knows of cards before it builds, with a folder for /dev, /proc and /usr."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.there("bin/nvidia-smi")
        (self.root / "bin/nvidia-smi").chmod(0o755)  # which lists nothing

    def tearDown(self):
        self.folder.cleanup()

    def there(self, path):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).touch()

    def shell(self, line, *words, **environment):
        text = functions("on_card", "card_refusal")
        for folder in ("dev", "proc", "usr"):
            text = text.replace(f"/{folder}/", f"{self.root}/{folder}/")
        script = "python_torch() { false; }\n" + text + line
        return subprocess.run(["sh", "-uc", script, "sh", *words], text=True, capture_output=True, timeout=60,
                              env={"PATH": f"{self.root}/bin:{os.environ['PATH']}", **environment}, check=False)

    def refusal(self, **environment):
        return self.shell("card_refusal", **environment).stdout.strip()

    def test_the_reason_is_the_driver_the_card_or_libtorch(self):
        self.assertEqual(self.refusal(), "there is no NVIDIA driver, and no card")
        self.there("proc/driver/nvidia/version")
        self.assertEqual(self.refusal(), "the NVIDIA driver finds no card")
        self.assertEqual(self.refusal(ATTNBENCH_CUDA_ARCHITECTURES="90"), "")
        self.there("dev/nvidia0")
        self.assertIn("the system's LibTorch has no CUDA part", self.refusal())
        torch = self.root / "torch"
        self.assertEqual(self.refusal(ATTNBENCH_TORCH=str(torch)), f"the LibTorch of {torch} has no CUDA part")
        self.there("torch/lib/libtorch_cuda.so")
        self.assertEqual(self.refusal(ATTNBENCH_TORCH=str(torch)), "")
        self.there("usr/lib/machine/libtorch_cuda.so")
        self.assertEqual(self.refusal(), "")

    def test_commands_that_use_a_card_here_are_told_from_others(self):
        asks = lambda *words: self.shell('on_card "$@"', *words).returncode == 0
        for words in (["run", "latte", "--device", "cuda"], ["check", "--device=cuda:1", "latte"],
                      ["run", "suite", "--set", "device=cuda"], ["doctor", "--device", "cuda"]):
            self.assertTrue(asks(*words), words)
        for words in (["run", "latte"], ["run", "latte", "--device", "cpu"], ["run", "cuda_suite"],
                      ["submit", "suite", "--device", "cuda"], ["run", "--device", "cuda", "--help"], []):
            self.assertFalse(asks(*words), words)


class BuildProgress(unittest.TestCase):
    def shell(self, line, *arguments):
        script = functions("ninja_steps", "time_left") + line
        done = subprocess.run(["sh", "-uc", script, "sh", *map(str, arguments)], text=True, capture_output=True,
                              timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def steps_in(self, log):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
            file.write(log)
            file.flush()
            return self.shell('ninja_steps "$1"', file.name).strip()

    def test_the_newest_step_of_ninja_counts(self):
        self.assertEqual(self.steps_in("[1/374] Building CXX object a.o\n[120/374] Building CXX object b.o\n"), "120 374")
        self.assertEqual(self.steps_in("[1/374] Building a.o\r[2/374] Building b.o\r"), "2 374")
        self.assertEqual(self.steps_in("[3/374] Building a.o\nb.cpp:7: note: [9/9] is text\n"), "3 374")
        self.assertEqual(self.steps_in("".join(f"[{i}/2000] Building {i}.o\n" for i in range(1, 1500))),
                         "1499 2000")

    def test_there_are_no_steps_before_the_first(self):
        self.assertEqual(self.steps_in(""), "")
        self.assertEqual(self.steps_in("-- Configuring done\nninja: Entering directory\n"), "")
        self.assertEqual(self.shell("ninja_steps /nowhere/build.log"), "")

    def test_the_time_left_follows_from_the_steps_done(self):
        left = lambda *numbers: self.shell('time_left "$@"', *numbers)
        self.assertEqual(left(90, 120, 374), ", 3 min left")  # 254 steps at 0.75 s
        self.assertEqual(left(30, 300, 374), ", 7 s left")
        self.assertEqual(left(89, 100, 200), ", 89 s left")
        self.assertEqual(left(90, 100, 200), ", 2 min left")

    def test_the_time_left_is_not_told_from_the_first_steps(self):
        left = lambda *numbers: self.shell('time_left "$@"', *numbers)
        self.assertEqual(left(60, 18, 374), "")
        self.assertEqual(left(60, 19, 374), ", 19 min left")


class NotedCommit(unittest.TestCase):
    """cmake/commit.cmake in a checkout, with changes, and in sources unpacked inside another checkout."""

    def noted(self, sources):
        file = sources.parent / "noted"
        file.write_text("of an earlier build")
        subprocess.run(["cmake", f"-DSOURCES={sources}", f"-DFILE={file}", "-P", ROOT / "cmake/commit.cmake"],
                       check=True, timeout=60)
        return file.read_text().strip() if file.exists() else None

    def test_it_is_that_of_the_sources_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            checkout = pathlib.Path(folder) / "a checkout"
            unpacked = checkout / "attnbench-0.1.0"
            unpacked.mkdir(parents=True)
            (checkout / "file").write_text("one")
            (unpacked / "file").write_text("one")
            git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@b"]
            for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
                subprocess.run(git + words, check=True, timeout=60)
            commit = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
            self.assertEqual(self.noted(checkout), commit)
            (checkout / "file").write_text("two")
            self.assertEqual(self.noted(checkout), commit + "+")
            self.assertIsNone(self.noted(unpacked))
            link = pathlib.Path(folder) / "link"
            link.symlink_to(checkout)
            self.assertEqual(self.noted(link), commit + "+")


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
        self.assertRegex(said, r"would run .*apt-get .*install .*python3-torch libpython3-dev pybind11-dev")
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
