"""Runs the program once, and says what is wrong with how it went."""

import dataclasses
import os
import re
import select
import shlex
import signal
import subprocess
import time
import unicodedata

EXIT_CODES = (0, 1, 2, 3, 4, 5, 130)
LONGEST_MESSAGE_BYTES = 2048
MOST_PEAK_BYTES = 1 << 30
KEPT_BYTES = 1 << 20  # of each output; the rest is read and thrown away

# What a library's exception says where no message of ours replaces it.
RAW = re.compile(r"\[json\.exception|terminate called|what\(\):|basic_string|vector::|map::at|"
                 r"bad_alloc|bad_cast|bad_optional|std::|\bsto[ildf]+\b|regex_error|"
                 r"filesystem error:|Exception raised from")
# What a plugin lacks may be a function of the standard library.
LACKING = re.compile(r"the plugin itself lacks .*?: add the source")
# A place in a file: a line, a byte, a JSON pointer, a part of it by name.
PLACE = re.compile(
    r":\d+|\b(byte|line|character|column|offset|record|round)s? +\d+|(^|\s)/|\"|"
    r"\b(header|shape|size|bytes|d?type|version|order|numbers|u?int\d+)\b|\[[\d, ]+\]"
)
# What concerns a file as a whole.
WHOLE = re.compile(
    r"cannot (be )?read|no such file|not a file|not an .npy file|regular file|empty|folder|symbolic"
)


@dataclasses.dataclass
class Case:
    """One start of the program, and what it may not do."""

    arguments: list
    environment: dict = dataclasses.field(default_factory=dict)
    # The files that are at fault where the program ends with 2 or 3; empty: the command line is.
    files: list = dataclasses.field(default_factory=list)
    shell: str = ""  # run before the program by sh, such as "ulimit -n 6;" or "exec <&-;"
    limit_seconds: float = 60  # against hanging
    interrupt_after: float = (
        0  # SIGINT then, for commands that measure: the limit counts from there
    )
    signals: list = dataclasses.field(default_factory=list)  # (seconds, number) to send
    exit_codes: tuple = EXIT_CODES
    json_output: bool = False
    check: object = None  # called with the outcome; gives a list of complaints


@dataclasses.dataclass
class Outcome:
    exit_code: int = 0  # negative: the signal
    seconds: float = 0
    peak_bytes: int = 0
    out: str = ""
    err: str = ""
    hung: bool = False
    left_behind: list = dataclasses.field(default_factory=list)


def command_line(program, case):
    """As a shell takes it, from the case's folder."""
    words = [f"{name}={shlex.quote(value)}" if value is not None else f"-u {name}"
             for name, value in case.environment.items()]
    run = " ".join(shlex.quote(word) for word in [program, *case.arguments])
    if any(value is None for value in case.environment.values()):
        words.sort(key=lambda word: not word.startswith("-u"))
    start = "env " + " ".join(words) + " " if words else ""
    if case.shell:
        return f"{start}sh -c {shlex.quote(case.shell + ' exec ' + run)}"
    return start + run


def arguments_of(program, case):
    if not case.shell:
        return [program, *case.arguments]
    return ["sh", "-c", case.shell + ' exec "$@"', "sh", program, *case.arguments]


def members_of_session(session):
    """Processes of a session that are still at work."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry))
    return found


def end_session(session, patience=10.0):
    """What was left of it after a moment of patience, which the killed need, too. Nothing is
    afterwards."""
    until = time.monotonic() + patience
    left = members_of_session(session)
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = members_of_session(session)
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return left


class Reader:
    """Both outputs as they come, until the program ends: a process that it leaves behind may hold
    them open for ever."""

    def __init__(self, process):
        self.texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self.open = set(self.texts)
        self.ended = os.pidfd_open(process.pid)
        for descriptor in self.texts:
            os.set_blocking(descriptor, False)

    def take(self, descriptor):
        while True:
            try:
                block = os.read(descriptor, 65536)
            except BlockingIOError:
                return
            if not block:
                self.open.discard(descriptor)
                return
            text = self.texts[descriptor]
            text += block[: KEPT_BYTES - len(text)]

    def until(self, moment):
        """True once the program has ended, False when `moment` has come."""
        while True:
            patience = moment - time.monotonic()
            if patience <= 0:
                return False
            ready, _, _ = select.select([self.ended, *self.open], [], [], patience)
            for descriptor in ready:
                if descriptor != self.ended:
                    self.take(descriptor)
            if self.ended in ready:
                for descriptor in list(self.open):
                    self.take(descriptor)
                return True

    def close(self):
        os.close(self.ended)


def run(program, case, folder):
    environment = {**os.environ, **{k: v for k, v in case.environment.items() if v is not None}}
    for name, value in case.environment.items():
        if value is None:
            environment.pop(name, None)
    started = time.monotonic()
    with subprocess.Popen(arguments_of(program, case), cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        outcome = Outcome()
        reader = Reader(process)
        moments = list(case.signals)
        if case.interrupt_after:
            moments.append((case.interrupt_after, signal.SIGINT))
        ended = False
        for seconds, number in moments:
            ended = ended or reader.until(started + seconds)
            if not ended:
                os.kill(process.pid, number)
        last = max([seconds for seconds, _ in moments], default=0)
        if not ended and not reader.until(started + last + case.limit_seconds):
            outcome.hung = True
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        outcome.seconds = time.monotonic() - started
        outcome.exit_code = process.returncode
        outcome.peak_bytes = usage.ru_maxrss * 1024
        outcome.left_behind = end_session(process.pid)
        reader.close()
        outcome.out, outcome.err = (
            bytes(text).decode("utf-8", "replace") for text in reader.texts.values()
        )
    return outcome


def messages_of(text, files):
    """Where several faults are told at once, each is a message, over one line or more."""
    messages = []
    for line in text.splitlines():
        begins = line.startswith("attnbench:") or any(line.startswith(file) for file in files)
        if begins or not messages:
            messages.append(line)
        else:
            messages[-1] += "\n" + line
    return messages


def control_character(text):
    for character in text:
        if character not in "\n\t" and unicodedata.category(character) == "Cc":
            return f"U+{ord(character):04X}"
    return ""


def about_messages(case, outcome):
    found = []
    failed = outcome.exit_code in (2, 3)
    for message in messages_of(outcome.err, case.files):
        if len(message.encode()) > LONGEST_MESSAGE_BYTES:
            found.append(("a message over 2 kB", f"{len(message.encode())} bytes: {message[:80]}"))
    if not case.json_output:
        for line in outcome.out.splitlines():
            if len(line.encode()) > LONGEST_MESSAGE_BYTES:
                found.append(("a line over 2 kB", f"{len(line.encode())} bytes: {line[:80]}"))
    text = LACKING.sub("", outcome.err + outcome.out)
    raw = RAW.search(text)
    if raw:
        found.append(("raw exception", text[max(0, raw.start() - 60) : raw.end() + 120]))
    for name, text in (("stderr", outcome.err), ("stdout", outcome.out)):
        character = control_character(text)
        if character:
            found.append(("control character", f"{character} on {name}"))
    closed = "2>&-" in case.shell or "2>/dev/full" in case.shell or "2>&1" in case.shell
    if failed and not outcome.err.strip() and not closed:
        found.append(("no message", f"exit code {outcome.exit_code} and nothing on stderr"))
    elif failed and case.files:
        found += about_place(case, outcome)
    return found


def about_place(case, outcome):
    if not any(os.path.basename(file) in outcome.err for file in case.files):
        return [("no file in the message", outcome.err[:300])]
    rest = outcome.err
    for file in sorted(case.files, key=len, reverse=True):
        rest = re.sub(r"[\w./-]*" + re.escape(os.path.basename(file)), "", rest)
    if not WHOLE.search(rest) and not PLACE.search(rest):
        return [("no place in the message", outcome.err[:300])]
    return []


def complaints(case, outcome):
    """Pairs of a symptom and its detail; none: nothing is wrong."""
    found = []
    if outcome.hung:
        found.append(("hang", f"over {case.limit_seconds:g} s"))
    elif outcome.exit_code not in case.exit_codes:
        if outcome.exit_code < 0 or outcome.exit_code > 130:
            number = -outcome.exit_code if outcome.exit_code < 0 else outcome.exit_code - 128
            found.append(("signal", f"{number}: {outcome.err[-200:]}"))
        else:
            found.append(("exit code", f"{outcome.exit_code}: {outcome.err[:200]}"))
    if outcome.peak_bytes > MOST_PEAK_BYTES:
        found.append(("memory", f"{outcome.peak_bytes / 2**30:.1f} GiB"))
    if outcome.left_behind:
        found.append(("left behind", f"{len(outcome.left_behind)} processes"))
    if outcome.hung:
        return found
    found += about_messages(case, outcome)
    if case.check:
        found += case.check(outcome)
    return found
