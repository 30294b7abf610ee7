#!/usr/bin/env python3
"""Checks how tests/run.py reports tests that pass, fail, are skipped or crash, with a stand-in for a
program of Catch2."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Lists its cases as Catch2 2 does, and runs those of the file after -f; each does what its name says.
STAND_IN = r"""#!/usr/bin/env python3
import os, re, sys
CASES = ["one, that passes", "one that fails", "one that is skipped", "one that crashes", "one after it",
         "one at night"]
if "--list-test-names-only" in sys.argv:
    for case in CASES[-1:] if "[night]" in sys.argv else CASES:
        print(f"{case}\t@../../tests/{'full/' if 'after' in case else ''}a.cpp:3")
    sys.exit(len(CASES))
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
wanted = [re.sub(r"\\(.)", r"\1", line.strip()[1:-1]) for line in open(words["-f"])]
with open(words["-o"], "w") as report:
    report.write("<Catch><Group>")
    for case in wanted:
        assert case in CASES, case
        print("said by", case, flush=True)
        report.write(f'<TestCase name="{case}">')
        if "crashes" in case:
            report.flush()
            os._exit(9)
        if "fails" in case:
            report.write('<Expression success="false" filename="../../tests/a.cpp" line="7">'
                         "<Original>a == b</Original><Expanded>1 == 2</Expanded></Expression>")
        if "skipped" in case:
            report.write("<Warning>\n  needs a CUDA device: none\n</Warning>")
        good = "false" if "fails" in case else "true"
        report.write(f'<OverallResult success="{good}" durationInSeconds="0.5"/></TestCase>')
    report.write("</Group></Catch>")
"""


class Runner(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.build = pathlib.Path(temporary.name)
        program = self.build / "program"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        (self.build / "CTestTestfile.cmake").write_text(
            f'add_test(program "{program}")\n'
            'set_tests_properties(program PROPERTIES LABELS "catch;prefix=of: ")\n'
            'add_test(absent "sh" "-c" "exit 77")\n'
            "set_tests_properties(absent PROPERTIES SKIP_RETURN_CODE 77)\n"
            'add_test(script "sh" "-c" "echo why; exit 3")\n')

    def run_tests(self, *words):
        done = subprocess.run([sys.executable, ROOT / "tests/run.py", "--build", self.build, *words],
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def test_each_case_is_said_once_whatever_ends_the_process(self):
        code, output = self.run_tests("--full")
        self.assertEqual(code, 1)
        for status, name in (("passed", "of: one, that passes"), ("failed", "of: one that fails"),
                             ("skipped", "of: one that is skipped"), ("failed", "of: one that crashes"),
                             ("passed", "of: one after it"), ("skipped", "absent"), ("failed", "script")):
            self.assertRegex(output, rf"(?m)^ *\d+  {status} +[\d.]+ s  {name}$")
        self.assertIn("tests/a.cpp:7: a == b", output)
        self.assertIn("1 == 2", output)
        self.assertIn("the process ended in it with 9", output)
        self.assertIn("said by one that crashes", output)
        self.assertIn("why", output)
        self.assertIn("needs a CUDA device: none", output)
        self.assertRegex(output, r"(?m)^[34] passed, 3 failed, 2 skipped$")  # in a git checkout 4

    def test_the_tier_follows_from_path_and_tag(self):
        _, all_there_is = self.run_tests("--full", "--list")
        self.assertRegex(all_there_is, r"(?m)^full +tests/full/a.cpp +of: one after it$")
        self.assertRegex(all_there_is, r"(?m)^quick +tests/a.cpp +of: one, that passes$")
        self.assertRegex(all_there_is, r"(?m)^full +tests/a.cpp +of: one at night$")
        by_day = self.run_tests("--list")[1]
        self.assertNotIn("after it", by_day)
        self.assertNotIn("at night", by_day)

    def test_an_interrupted_run_leaves_no_process(self):
        (self.build / "CTestTestfile.cmake").write_text("".join(
            f'add_test(waits{number} "sh" "-c" "echo $$ >> {self.build}/pids; sleep 600")\n'
            for number in range(60)))
        run = subprocess.Popen([sys.executable, ROOT / "tests/run.py", "--build", self.build, "-j", "20"],
                               stdout=subprocess.DEVNULL, start_new_session=True)
        pids = self.build / "pids"
        while not pids.exists() or len(pids.read_text().split()) < 20:
            self.assertIsNone(run.poll())
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 128 + signal.SIGINT)
        for pid in pids.read_text().split():
            with self.assertRaises(ProcessLookupError):
                os.kill(int(pid), 0)

    def test_words_choose_and_what_cannot_be_read_is_refused(self):
        code, output = self.run_tests("-R", "that passes", "--repeat", "3")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^[34] passed, 0 failed, 0 skipped$")
        tests = self.build / "CTestTestfile.cmake"
        tests.write_text(tests.read_text() + "add_test(not_built NOT_AVAILABLE)\n")  # as CMake writes it
        code, output = self.run_tests("--program", "program", "-R", "that passes")
        self.assertEqual(code, 0, output)
        code, output = self.run_tests("--program", "nothing")
        self.assertEqual(code, 1, output)
        self.assertIn("has no test nothing", output)
        for words in (("-R", "("), ("nowhere",), ("--quick", "--full"), ("-R", "no such case")):
            self.assertEqual(self.run_tests(*words)[0], 2, words)


if __name__ == "__main__":
    sys.exit(unittest.main())
