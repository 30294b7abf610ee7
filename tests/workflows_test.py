#!/usr/bin/env python3
"""Runs the shell steps of the workflows and .ci/gate as they are written, with programs that stand in
for attnbench, git, cmake and apt-get, in a folder like a runner's."""

import contextlib
import io
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKFLOWS = ROOT / ".github/workflows"
TEMPLATES = ROOT / "harness/program/templates/workflow"

# Writes down how it was called; `ab` writes its Markdown and ends as the test says.
STAND_IN = """#!/bin/sh
echo "$0 $*" >> "$CALLS"
while [ $# -gt 0 ]; do
  [ "$1" = --markdown ] && echo "the verdict" > "$2"
  shift
done
exit "${ENDS_WITH:-0}"
"""


def steps(file):
    """The `run` texts of a workflow by the names of their steps."""
    found, name, block, indent = {}, None, None, 0
    for line in file.read_text().splitlines() + ["end"]:
        depth = len(line) - len(line.lstrip())
        if block is not None and (not line.strip() or depth > indent):
            block.append(line)
            continue
        if block is not None:
            least = min(len(one) - len(one.lstrip()) for one in block if one.strip())
            found[name] = "\n".join(one[least:] for one in block)
            block = None
        named = re.match(r"\s*- name: (.*)", line)
        if named:
            name = named.group(1)
        text = re.match(r"\s*run: (.*)", line)
        if text and text.group(1) == "|":
            block, indent = [], depth
        elif text:
            found[name] = text.group(1)
    return found


class Runner:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "bin").mkdir()
        for name in ("bin/git", "bin/cmake", "bin/apt-get", "base/attnbench", "new/attnbench",
                     "attnbench/attnbench"):
            file = self.folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(STAND_IN)
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run(self, script, more=None, ends_with=0):
        """Exit code, output, calls and the job's summary; GitHub's shell for containers is sh -e."""
        environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}",
                           CALLS=str(self.folder / "calls"), ENDS_WITH=str(ends_with),
                           GITHUB_STEP_SUMMARY=str(self.folder / "summary"),
                           ATTNBENCH_REPOSITORY="https://example.org/a.git", ATTNBENCH_VERSION="v1",
                           ATTNBENCH_BASE="v1", ATTNBENCH_NEW="v2", **(more or {}))
        for name in ("calls", "summary", "gate.md", "speed.md"):
            (self.folder / name).unlink(missing_ok=True)
        done = subprocess.run(["sh", "-e", "-c", script], cwd=self.folder, env=environment,
                              capture_output=True, text=True, timeout=60)
        text = lambda name: (self.folder / name).read_text() if (self.folder / name).exists() else ""
        return done.returncode, done.stdout + done.stderr, text("calls"), text("summary")


class Steps(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.runner = Runner(self.temporary.name)

    def measure(self, file, call):
        script = steps(file)["Measure both in turns"]
        for code, wanted in ((0, 0), (1, 1), (3, 3), (4, 0), (5, 5)):
            ended, output, calls, summary = self.runner.run(script, ends_with=code)
            self.assertEqual(ended, wanted, output)
            self.assertEqual("::warning::" in output, code == 4)
            self.assertEqual(summary, "the verdict\n")
            self.assertIn(call, calls)
            self.assertIn(" --gate ", calls)
            self.assertNotIn("${{", script)  # nothing is pasted into a shell

    def test_gate(self):
        self.measure(WORKFLOWS / "gate.yml", "new/attnbench ab --base base/build/release --new new/build/release ")
        code, output, calls, _ = self.runner.run(steps(WORKFLOWS / "gate.yml")["Build both"])
        self.assertEqual(code, 0, output)
        self.assertIn("base/attnbench --yes", calls)
        self.assertIn("new/attnbench --yes", calls)

    def test_the_comment_is_posted_once_and_then_replaced(self):
        script = steps(WORKFLOWS / "gate.yml")["Post the verdict in place of the last"]
        self.assertNotIn("${{", script)
        marker = "<!-- attnbench ab ci_kernels -->"
        gh = self.runner.folder / "bin/gh"
        gh.write_text('#!/bin/sh\necho "$*" >> "$CALLS"\n'
                      '[ "$2" = --paginate ] && cat "$(dirname "$CALLS")/there" || true\n')
        gh.chmod(0o755)

        def calls(comments, verdict=f"{marker}\n1 SLOW\n"):
            (self.runner.folder / "there").write_text(
                "".join("\t".join(one) + "\n" for one in comments))
            file = self.runner.folder / "verdict"
            file.write_text(verdict)
            code, output, called, _ = self.runner.run(
                ("cp verdict gate.md\n" if verdict else "") + script,
                {"COMMENTS": "repos/o/r/issues/7/comments", "COMMENT": "repos/o/r/issues/comments"})
            self.assertEqual(code, 0, output)
            return called

        bot, somebody = "github-actions[bot]", "somebody"
        posted = "--method POST repos/o/r/issues/7/comments --field body=@gate.md"
        self.assertIn(posted, calls([]))
        self.assertIn(posted, calls([("1", somebody, marker), ("2", bot, "<!-- attnbench ab other -->")]))
        replaced = calls([("1", somebody, marker), ("2", bot, "hello"), ("3", bot, marker + "\\r")])
        self.assertIn("--method PATCH repos/o/r/issues/comments/3 --field body=@gate.md", replaced)
        self.assertNotIn("POST", replaced)
        self.assertEqual(calls([], ""), "")  # nothing was measured

    def test_only_jobs_that_comment_publish_or_release_may_write(self):
        for file in sorted(WORKFLOWS.glob("*.yml")) + sorted(TEMPLATES.glob("*.yml")):
            text = file.read_text()
            self.assertIn("\npermissions: {}\n", text)
            published = text.split("\n  publish:\n")
            if len(published) == 2:
                self.assertIn("if: github.ref == 'refs/heads/main'", published[1])
                self.assertNotRegex(published[1], "checkout|run:")  # nothing of the repository runs there
                self.assertEqual(set(re.findall(r"([\w-]+): write", published[1])), {"pages", "id-token"})
            release = published[0].split("\n  release:\n")
            job = release[0].split("\n  comment:\n")
            self.assertNotIn(": write", job[0])
            if len(job) == 2:
                self.assertIn("head.repo.full_name == github.repository", job[1])
                self.assertNotIn("checkout", job[1])  # nothing of the pull request runs there
            if len(release) == 2:
                self.assertIn("if: startsWith(github.ref, 'refs/tags/v')", release[1])
                self.assertNotIn("checkout", release[1])

    def test_a_wheel_is_pinned_to_the_version_that_is_asked_for(self):
        sys.path.insert(0, str(ROOT / "tests/wheel"))
        import pin

        text = pin.FILE.read_text()
        changed = pin.pinned(text, "2.14")
        self.assertEqual(changed.count('"torch>=2.14,<2.15"'), 1)
        self.assertEqual(pin.pinned(changed, "2.15"), text)
        for version, message in (("2", "expected a minor version"), ("2.15.0", "expected a minor version")):
            with self.assertRaisesRegex(ValueError, message):
                pin.pinned(text, version)
        with self.assertRaisesRegex(ValueError, "0 requirements of torch"):
            pin.pinned("", "2.14")

    def test_what_a_wheel_needs_of_glibc_is_limited(self):
        sys.path.insert(0, str(ROOT / "tests/wheel"))
        import repair
        symbols = ("0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.36) arc4random_buf\n"
                   "0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) dlsym\n"
                   "0000000000000000      DF *UND*\t0000000000000000 (GLIBCXX_3.4.30) wait\n"
                   "0000000000000000      DF *UND*\t0000000000000000  GLIBC_2.35  hypot\n"
                   "0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__\n"
                   "000000000002a360 g    DF .text\t000000000000005e (GLIBC_2.99) defined_here\n")
        self.assertEqual(repair.too_new(symbols),
                         ["GLIBC_2.36 for arc4random_buf", "GLIBCXX_3.4.30 for wait", "GLIBC_2.35 for hypot"])
        with unittest.mock.patch("repair.needs_of", side_effect=[[], ["GLIBC_2.36 for arc4random_buf"]]):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertFalse(repair.refused([("attnbench.libs/libz.so.1", "z")]))
                self.assertTrue(repair.refused([("attnbench.libs/libarchive.so.13", "archive")]))
        self.assertEqual(said.getvalue(), "attnbench.libs/libarchive.so.13 needs GLIBC_2.36 for arc4random_buf\n")

    def test_the_package_alone_and_the_wheel_need_the_same(self):
        import tomllib

        sys.path.insert(0, str(ROOT / "python"))
        import wheel_dependencies

        wheel, package = (tomllib.loads((ROOT / file).read_text())["project"] for file in ("pyproject.toml", "python/pyproject.toml"))
        self.assertEqual(wheel_dependencies.ALWAYS, package["dependencies"])
        self.assertEqual(wheel["requires-python"], package["requires-python"])
        self.assertIn(f'VERSION {package["version"]}', (ROOT / "CMakeLists.txt").read_text())

    def test_a_wheel_needs_pytorch_where_it_is_built_with_it(self):
        sys.path.insert(0, str(ROOT / "python"))
        import tomllib
        import wheel_dependencies

        build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
        found = "wheel_dependencies.importlib.util.find_spec"
        with unittest.mock.patch(found, return_value=None):
            self.assertEqual(wheel_dependencies.dynamic_metadata("dependencies", {}), wheel_dependencies.ALWAYS)
        with unittest.mock.patch(found, return_value="there"):
            needed = wheel_dependencies.dynamic_metadata("dependencies", {})
        self.assertEqual(needed[:-1], wheel_dependencies.ALWAYS)
        self.assertIn(needed[-1], build)
        self.assertTrue(needed[-1].startswith("torch>="))
        with self.assertRaisesRegex(ValueError, "expected dependencies"):
            wheel_dependencies.dynamic_metadata("version", {})

    def test_plugin(self):
        file = TEMPLATES / "plugin.yml"
        self.measure(file, "attnbench/attnbench ab example_mechanism example_mechanism_new --plugin base/")
        code, output, calls, _ = self.runner.run(steps(file)["Build attnbench and both plugins"])
        self.assertEqual(code, 0, output)
        self.assertIn("checkout v1", calls)
        for side in ("base", "new"):
            self.assertIn(f"cmake -S {side} -B {side}/build", calls)

    def test_suite(self):
        file = TEMPLATES / "suite.yml"
        self.measure(file, "new/attnbench ab --base base/build/release --new new/build/release suite/")
        code, output, calls, _ = self.runner.run(steps(file)["Build both versions and check the suite"])
        self.assertEqual(code, 0, output)
        self.assertIn("-C base checkout v1", calls)
        self.assertIn("-C new checkout v2", calls)
        self.assertIn("validate suite/example_suite.json", calls)

    def test_a_failed_build_ends_the_job(self):
        for file, name in ((WORKFLOWS / "gate.yml", "Build both"),
                           (TEMPLATES / "plugin.yml", "Build attnbench and both plugins")):
            self.assertNotEqual(self.runner.run(steps(file)[name], ends_with=3)[0], 0)

    def test_every_step_is_shell(self):
        for file in sorted(WORKFLOWS.glob("*.yml")) + sorted(TEMPLATES.glob("*.yml")):
            self.assertTrue(steps(file))
            for script in steps(file).values():
                done = subprocess.run(["sh", "-n", "-c", script], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{file}: {done.stderr}")

    def test_actions_are_named_by_commit(self):
        for file in sorted(WORKFLOWS.glob("*.yml")) + sorted(TEMPLATES.glob("*.yml")):
            for action in re.findall(r"uses: (\S+)", file.read_text()):
                self.assertRegex(action, r"^[\w-]+/[\w-]+@[0-9a-f]{40}$")


class CiGate(unittest.TestCase):
    """.ci/gate in a repository of two commits; attnbench ends as the test says, by its command."""

    STAND_IN = """#!/bin/sh
echo "$*" >> "$CALLS"
[ "$1" = doctor ] && echo "attnbench: too disturbed: by 40 %" >&2
eval exit "\\${ENDS_$1:-0}"
"""

    def gate(self, *arguments, commits=2, changed="attention/a.cpp", **ends):
        """Exit code, output, the calls of cmake and attnbench; the parent's build must stay only
        where the comparison failed."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, text in ((".ci/gate", (ROOT / ".ci/gate").read_text()),
                               ("build/release/bin/attnbench", self.STAND_IN),
                               ("bin/cmake", "#!/bin/sh\necho cmake $* >> $CALLS\n"
                                             "case $PWD in */parent) exit ${ENDS_cmake:-0} ;; esac\n")):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(text)
                (folder / file).chmod(0o755)
            (folder / "build/release/CMakeCache.txt").write_text("ATTNBENCH_TORCH:PATH=/some/torch\n")
            git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", name]
            subprocess.run(git + ["init", "-q"], check=True)
            for number in range(commits):
                file = folder / changed
                file.parent.mkdir(exist_ok=True)
                file.write_text(str(number))
                subprocess.run(git + ["add", changed], check=True)
                subprocess.run(git + ["commit", "-q", "-m", str(number)], check=True)
            environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}",
                               CALLS=str(folder / "calls"),
                               **{f"ENDS_{key}": str(code) for key, code in ends.items()})
            done = subprocess.run(["bash", folder / ".ci/gate", *arguments], env=environment,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((folder / "build/parent").exists(), ends.get("ab", 0) in (1, 2, 5),
                             done.stdout)
            calls = folder / "calls"
            return done.returncode, done.stdout + done.stderr, calls.read_text() if calls.exists() else ""

    def test_verdicts(self):
        for code, wanted, words in ((0, 0, "2 passed, 0 failed, 0 skipped"),
                                    (1, 1, "not ok: a kernel is slower"),
                                    (3, 0, "1 passed, 0 failed, 1 skipped"),
                                    (4, 0, "warning: not every cell has a verdict"),
                                    (5, 1, "not ok: a cell crashed"),
                                    (2, 1, "not ok: attnbench ab")):
            ended, output, calls = self.gate(ab=code)
            self.assertEqual(ended, wanted, output)
            self.assertIn(words, output)
            self.assertIn("the parent was built in", output)
            self.assertIn("ab --base build/parent/build/release --new build/release", calls)
            self.assertIn("-DATTNBENCH_CUDA=OFF -DATTNBENCH_TORCH=/some/torch", calls)

    def test_what_is_skipped_is_said(self):
        for words, calling in (("too disturbed: by 40 %", {"doctor": 4}),
                               ("attnbench doctor: ", {"doctor": 3}),
                               ("no parent commit", {"commits": 1}),
                               ("changes nothing that a timed call runs", {"changed": "docs/a.md"}),
                               ("the parent does not build", {"cmake": 1})):
            ended, output, calls = self.gate(**calling)
            self.assertEqual(ended, 0, output)
            self.assertRegex(output, f"skipped: the comparison with the parent commit: .*{words}")
            self.assertIn("1 passed, 0 failed, 1 skipped", output)
            self.assertNotIn("ab --base", calls)
        self.assertIn("it was given no time", self.gate("0")[1])

    def test_counts_that_grew_fail(self):
        ended, output, _ = self.gate(gate=1)
        self.assertEqual(ended, 1)
        self.assertIn("1 passed, 1 failed, 0 skipped", output)


if __name__ == "__main__":
    sys.exit(unittest.main())
