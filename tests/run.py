#!/usr/bin/env python3
"""Runs the tests of a build: one line per case, then "N passed, N failed, N skipped".

    tests/run.py [--build BUILD] [--quick | --full] [-R REGEX] [PATH…]

What there is to run is what CTest knows of BUILD (build/release by default). A program of Catch2 runs
many of its cases in one process, since most take less time than its start; what ends such a process
early costs the case that was running, the others run in the next one. The longest begin first, by
tests/seconds.json.

A case's tier follows from the file it stands in (see TIERS): --quick leaves out what starts programs,
trains or takes odd inputs; --full adds the long ones, and single cases with the tag [night]. PATH selects
files and folders below tests/, -R cases by their name.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = ROOT / "tests/seconds.json"

# The first pattern that a case's file fits says its tier: "quick" runs always, "default" in CI,
# "full" at night.
TIERS = (
    (r"/full/", "full"),
    (r"^tests/(end_to_end|fuzz|benchmarks|python)/", "default"),
    (r"^tests/attention/kernels/cuda/", "default"),
    (r"^tests/attention/(conformance|mechanisms)/", "default"),
    (r"^tests/tasks/(training|mqar|copy|mad|lra|lm|decode|kernel|crossover)/[^/]*$", "default"),
    (r"^tests/harness/worker/", "default"),
    (r"", "quick"),  # but for what stands in tests/seconds.json: two seconds and more
)
BATCH = 24  # cases of one process
HANG = 600  # seconds without a sign from a program: it hangs
SKIPPED = re.compile(r"^needs .*", re.MULTILINE)  # a warning that begins so


class Case:
    """One test: of a Catch2 program, or all that a script has."""

    def __init__(self, name, file, test, catch_name=None, night=False):
        self.name, self.file, self.test, self.catch_name = name, file, test, catch_name
        self.night = night
        self.seconds, self.status, self.output = 0.0, None, ""

    def tier(self, known):
        if self.night or "full" in self.test["labels"]:
            return "full"
        tier = next(tier for pattern, tier in TIERS if re.search(pattern, self.file))
        return "default" if tier == "quick" and self.name in known else tier


def tests_of(build, programs):
    """What CTest knows: name, command, folder, labels, environment, the exit code that is a skip. Of
    programs alone, where any is named."""
    found = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    tests = []
    for entry in json.loads(found)["tests"]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        if programs and entry["name"] not in programs:
            continue
        if "command" not in entry:
            sys.exit(f"{entry['name']} is not built: ./attnbench build, or one program alone: ninja -C {build} PROGRAM && "
                     f"{build}/bin/PROGRAM '[#file]'")
        tests.append({"name": entry["name"], "command": entry["command"],
                      "folder": properties.get("WORKING_DIRECTORY", str(build)),
                      "labels": properties.get("LABELS", []),
                      "limit": properties.get("TIMEOUT", HANG),
                      "skip": properties.get("SKIP_RETURN_CODE"),
                      "wanted": properties.get("PASS_REGULAR_EXPRESSION", [None])[0],
                      "environment": dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))})
    for program in set(programs) - {test["name"] for test in tests}:
        sys.exit(f"{build} has no test {program}")
    return tests


def relative(file):
    """The path below the checkout. ccache may have made it relative to the build folder."""
    path = pathlib.Path(os.path.normpath(ROOT / re.sub(r"^(\.\./)+", "", file)))
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def cases_of(test):
    """The cases of a test: those that a Catch2 program lists, else itself."""
    if "catch" not in test["labels"]:
        file = next((w for w in test["command"][1:] if w.startswith(str(ROOT)) and w.endswith(".py")), "")
        return [Case(test["name"], relative(file) if file else "tests/benchmarks/", test)]
    prefix = next((label[7:] for label in test["labels"] if label.startswith("prefix=")), "")
    night = {name for name, _ in listed(test, "[night]")}
    found = listed(test)
    if not found:
        sys.exit(f"{test['name']} lists no cases: {' '.join(test['command'])} --list-tests")
    return [Case(prefix + name, relative(file), test, name, name in night) for name, file in found]


def listed(test, *selected):
    """Name and file of the cases of a Catch2 program."""
    def said(*words):
        return subprocess.run([*test["command"], *selected, *words], text=True, capture_output=True,
                              env=environment_of(test)).stdout
    found = re.findall(r'^"?(.*?)"?\t@(.*):\d+$', said("--list-test-names-only", "-v", "high"), re.MULTILINE)
    if found:
        return found
    try:  # Catch2 3
        return [(one.findtext("Name"), one.findtext("SourceInfo/File"))
                for one in ElementTree.fromstring(said("--list-tests", "--reporter", "xml")).iter("TestCase")]
    except ElementTree.ParseError:
        return []


def environment_of(test):
    return {**os.environ, **test["environment"]}


RUNNING = set()
STARTING = threading.Lock()  # never given back once the run is interrupted
OUTPUTS = [sys.stdout]


def tell(text):
    for output in OUTPUTS:
        print(text, file=output, flush=True)


def start(test, words, output):
    """A process in a group of its own, so that what it starts can be ended with it."""
    with STARTING:
        process = subprocess.Popen(test["command"] + words, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, cwd=test["folder"],
                                   env=environment_of(test), start_new_session=True)
        RUNNING.add(process)
    return process


def finish(process):
    """Ends the process and what it left behind in its session, in whichever process groups."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(stat.read_text().rpartition(")")[2].split()[3])
            if session == process.pid:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass  # it has ended meanwhile
    process.wait()
    RUNNING.discard(process)


def interrupted(number, _frame):
    STARTING.acquire(timeout=10)  # else the threads start the next ones in place of those that end here
    for process in list(RUNNING):
        finish(process)
    os._exit(128 + number)


def run_script(case):
    """Runs a test that is one program from start to end."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = start(case.test, [], output)
        try:
            code = process.wait(case.test["limit"])
        except subprocess.TimeoutExpired:
            code = f"killed after {case.test['limit']:.0f} s"
        finish(process)
        output.seek(0)
        case.output = output.read()
    case.seconds = time.monotonic() - begin
    wanted = case.test["wanted"]
    fine = re.search(wanted, case.output) is not None if wanted else code == 0
    skipped = case.test["skip"] is not None and code == case.test["skip"]
    case.status = "skipped" if skipped else "passed" if fine else "failed"
    if case.status == "failed":
        case.output += f"\n[ended with: {code}]"


def read_report(text):
    """The elements TestCase of Catch2's XML, also of a file that ends in the middle, and whether each
    is whole."""
    parser = ElementTree.XMLPullParser(("start", "end"))
    whole, begun = [], None
    try:
        parser.feed(text)
        for event, element in parser.read_events():
            if element.tag == "TestCase":
                begun = element if event == "start" else None
                if event == "end":
                    whole.append(element)
    except ElementTree.ParseError as error:
        return whole, f"its report cannot be read: {error}"
    return whole, begun.get("name") if begun is not None else None


def failures(element):
    """What failed in a case, as text: where, what was said, what was found."""
    said = []
    for one in element.iter():
        text = (one.text or "").strip()
        where = f"{relative(one.get('filename'))}:{one.get('line')}: " if one.get("filename") else ""
        if one.tag == "Expression" and one.get("success") == "false":
            said.append(f"{where}{one.findtext('Original', '').strip()}\n"
                        f"    is {one.findtext('Expanded', '').strip()}")
        elif one.tag in ("Exception", "Failure", "FatalErrorCondition"):
            said.append(f"{where}{one.tag}: {text}")
        elif one.tag in ("Info", "Warning") and text:
            said.append(f"    {one.tag.lower()}: {text}")
        elif one.tag == "Section":
            said.append(f"  in {one.get('name')}")
    return "\n".join(said)


def watch(process, report):
    """Waits for the end of a program of tests; "hangs" where nothing comes any more for HANG seconds."""
    size, changed = -1, time.monotonic()
    while True:
        try:
            return process.wait(0.05 if size < 0 else 0.5)
        except subprocess.TimeoutExpired:
            now = os.path.getsize(report) if os.path.exists(report) else 0
            if now != size:
                size, changed = now, time.monotonic()
            elif time.monotonic() - changed > HANG:
                return f"killed: nothing came for {HANG} s"


def run_batch(cases, say):
    """Runs cases of one Catch2 program; says each as soon as its process has ended."""
    left = list(cases)
    with tempfile.TemporaryDirectory(prefix="attnbench-tests-") as folder:
        names, report, log = (os.path.join(folder, name) for name in ("names", "report.xml", "log"))
        while left:
            with open(names, "w", encoding="utf-8") as file:
                for case in left:
                    escaped = re.sub(r'([\\,"\[\]])', r"\\\1", case.catch_name)
                    file.write(f'"{escaped}"\n')
            if os.path.exists(report):
                os.remove(report)
            with open(log, "w", encoding="utf-8") as output:
                process = start(left[0].test, ["-f", names, "-r", "xml", "-o", report, "-d", "yes"], output)
                ended = watch(process, report)
                finish(process)
            text = pathlib.Path(report).read_text(errors="replace") if os.path.exists(report) else ""
            log_tail = pathlib.Path(log).read_text(errors="replace")[-4000:]
            whole, begun = read_report(text)
            by_name = {case.catch_name: case for case in left}
            for element in whole:
                case = by_name.pop(element.get("name").strip(), None)
                if case is None:
                    continue
                result = element.find("OverallResult")
                case.seconds = float(result.get("durationInSeconds", 0))
                text = "\n".join(one.text or "" for one in element.iter("Warning"))
                needs = SKIPPED.search(re.sub(r"^\s+", "", text, flags=re.MULTILINE))
                case.status = ("failed" if result.get("success") != "true" else
                               "skipped" if needs or result.get("skips", "0") != "0" else "passed")
                case.output = needs.group(0) if case.status == "skipped" and needs else failures(element)
                if case.status == "failed":
                    case.output += "\n" + log_tail
            left = [case for case in left if case.status is None]
            if left:  # the process ended early: by the case that had begun, or by none that it names
                at = by_name.get((begun or "").strip(), left[0])
                at.status, at.output = "failed", f"the process ended in it with {ended}\n{log_tail}"
                left = [case for case in left if case.status is None]
    for case in cases:
        say(case)


def batches_of(cases, known):
    """Lists of cases for a process each, the longest first: scripts and long cases alone, the others by
    program and file in lists of BATCH."""
    alone, short = [], {}
    for case in cases:
        if case.catch_name is None or known.get(case.name, 0) >= 2:
            alone.append([case])
        else:
            short.setdefault((case.test["name"]), []).append(case)
    together = []
    for some in short.values():
        some.sort(key=lambda case: case.file)
        size = max(4, min(BATCH, len(some) // 12))
        together += [some[at:at + size] for at in range(0, len(some), size)]
    cost = lambda batch: sum(known.get(case.name, 0.1) for case in batch)
    return sorted(alone + together, key=cost, reverse=True)


def checkout_state():
    done = subprocess.run(["git", "-C", str(ROOT), "status", "--porcelain"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def main():
    line = argparse.ArgumentParser(prog="attnbench test", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("paths", nargs="*", metavar="PATH", help="files or folders below tests/")
    line.add_argument("--build", default=str(ROOT / "build/release"), help="the build folder")
    line.add_argument("--quick", action="store_true", help="no program, no training, no odd inputs: a minute")
    line.add_argument("--full", action="store_true", help="all there is: what runs at night")
    line.add_argument("--program", action="append", default=[], metavar="NAME",
                      help="this program of tests alone, such as test_kernels; the others need not be built (repeatable)")
    line.add_argument("-R", "--regex", default="", metavar="REGEX", help="cases whose name fits it")
    line.add_argument("-E", "--exclude", default=None, metavar="REGEX", help="no cases whose name fits it")
    line.add_argument("-j", "--jobs", type=int, default=(os.cpu_count() or 1) + 1,
                      help="processes at once; by default one more than there are CPUs, since many wait")
    line.add_argument("--repeat", type=int, default=1, metavar="N", help="each case N times")
    line.add_argument("--list", action="store_true", help="names, files and tiers alone")
    line.add_argument("--log", help="a file that gets what is printed, too")
    line.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)  # the words alone
    line.add_argument("--remember", action="store_true", help="write tests/seconds.json anew")
    arguments = line.parse_args()
    if arguments.quick and arguments.full:
        line.error("--quick and --full exclude each other")
    build = pathlib.Path(arguments.build).resolve()
    inside = [os.path.normpath(path).removeprefix("./") for path in arguments.paths]
    inside = [path if path.startswith("tests") else "tests/" + path for path in inside]
    for path in inside:
        if not (ROOT / path).exists():
            line.error(f"{path}: there is no such file or folder")
    try:
        regex, exclude = re.compile(arguments.regex), arguments.exclude and re.compile(arguments.exclude)
    except re.error as error:
        line.error(f"not a regular expression: {error}")
    if arguments.read_only:
        return 0
    if arguments.log:
        OUTPUTS.append(open(arguments.log, "w", encoding="utf-8"))
    os.environ["ATTNBENCH_TEST_TIER"] = "full" if arguments.full else "default"  # for cases that are longer at night
    known = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    wanted = {"quick"} if arguments.quick else {"quick", "default"}
    if arguments.full:
        wanted.add("full")

    cases = [case for test in tests_of(build, arguments.program) for case in cases_of(test)]
    cases = [case for case in cases
             if case.tier(known) in wanted and regex.search(case.name)
             and not (exclude and exclude.search(case.name))
             and (not inside or any(case.file == path or case.file.startswith(path + "/") for path in inside))]
    if arguments.list:
        for case in sorted(cases, key=lambda case: case.file):
            print(f"{case.tier(known):8} {case.file:50} {case.name}")
        return 0
    if not cases:
        line.error("no test of this tier fits; --list shows what there is, --full has all")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    before, begin, lock, shown = checkout_state(), time.monotonic(), threading.Lock(), []

    def say(case):
        with lock:
            shown.append(case)
            tell(f"{len(shown):5}  {case.status:8}{case.seconds:7.2f} s  {case.name}")
            if case.status == "failed":
                tell(re.sub("^", "       | ", case.output.strip(), flags=re.MULTILINE))

    def run(batch):
        if batch[0].catch_name is None:
            run_script(batch[0])
            say(batch[0])
        else:
            run_batch(batch, say)

    def again():
        for _ in range(arguments.repeat):
            for batch in batches_of(cases, known):
                yield [Case(c.name, c.file, c.test, c.catch_name, c.night) for c in batch]

    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        left = [pool.submit(run, batch) for batch in again()]
        while left:  # in short waits, so that Ctrl-C is heard
            done, left = concurrent.futures.wait(left, timeout=0.5,
                                                 return_when=concurrent.futures.FIRST_EXCEPTION)
            for one in done:
                one.result()

    after = checkout_state()
    if before is not None:
        clean = Case("tests write nothing into the checkout", "tests/run.py", {"labels": []})
        clean.status = "passed" if after == before else "failed"
        clean.output = f"git status was:\n{before}and is:\n{after}"
        say(clean)
    if arguments.remember:
        SECONDS.write_text(json.dumps({case.name: round(case.seconds) for case in
                                       sorted(shown, key=lambda case: -case.seconds)
                                       if case.seconds >= 2}, indent=0, ensure_ascii=False) + "\n")
    report(shown, time.monotonic() - begin)
    return 0 if all(case.status != "failed" for case in shown) else 1


def report(cases, seconds):
    """Where the time went, why something was skipped, what failed, and the closing line."""
    slow = sorted(cases, key=lambda case: -case.seconds)[:10]
    tell(f"\nThe longest of {sum(case.seconds for case in cases):.0f} s of tests, run in {seconds:.0f} s:")
    for case in slow:
        tell(f"  {case.seconds:7.1f} s  {case.name}")
    reasons = {}
    for case in cases:
        if case.status == "skipped":
            lines = case.output.strip().splitlines()
            reasons.setdefault(lines[-1] if lines else "no reason given", []).append(case.name)
    for reason, names in reasons.items():
        tell(f"skipped, {len(names)}: {reason}")
    bad = [case for case in cases if case.status == "failed"]
    if bad:
        tell("\nFailed:")
        for case in bad:
            tell(f"  {case.name}   ({case.file})")
    count = lambda status: sum(case.status == status for case in cases)
    tell(f"{count('passed')} passed, {count('failed')} failed, {count('skipped')} skipped")


if __name__ == "__main__":
    sys.exit(main())
