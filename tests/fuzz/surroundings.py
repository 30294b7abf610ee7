"""What the program finds around it: variables, limits, closed outputs, signals."""

import json
import os
import shutil
import signal
import subprocess

import mutate
from kind import BRIEF, FIXTURE, TINY_SUITE, Kind, ended_in_the_middle
from oracle import Case

# Each is set alone or with another; None takes it out.
VARIABLES = {
    "HOME": [None, "", "/proc/none", "/dev/null", "/proc"],
    "XDG_CACHE_HOME": [None, "", "/proc/none/x", "/dev/null", "/proc", "relative", "x" * 5000],
    "TMPDIR": ["/proc/none", "/dev/null", ""],
    "LANG": ["tr_TR.UTF-8", "xx_YY", "C", "de_DE.UTF-8", ""],
    "LC_ALL": ["xx", "de_DE", "C.UTF-8", "\x1b[31m"],
    "OMP_NUM_THREADS": ["x", "0", "-1", "99999999999", "2,3", ""],
    "OMP_WAIT_POLICY": ["x", "active"],
    "OMP_PROC_BIND": ["x", "true"],
    "OMP_STACKSIZE": ["1", "x", "999999G"],
    "MKL_NUM_THREADS": ["x"],
    "OPENBLAS_NUM_THREADS": ["x", "-1", "1000"],
    "OPENBLAS_CORETYPE": ["x", "Prescott"],
    "ATTNBENCH_PLUGIN_PATH": ["/proc/none", ":::", "/dev/zero", "/etc", "x" * 5000, "\x1b[31m.so"],
    "ATTNBENCH_PYTHON": ["/proc/none", "/bin/false", "/bin/cat", ""],
    "LD_LIBRARY_PATH": ["/proc/none", "", ":"],
    "GLIBC_TUNABLES": ["x", "glibc.malloc.hugetlb=x"],
    "TERM": [None, "dumb", "x" * 3000],
    "COLUMNS": ["0", "-1", "99999999", "x", "1"],
    "PATH": ["", "/proc/none"],
    "RANK": ["0", "1", "x", "-1"],
    "WORLD_SIZE": ["1", "x", "0", "-2"],
    "MASTER_PORT": ["x", "0", "99999"],
    "SLURM_PROCID": ["0", "x"],
    "SLURM_STEP_NUM_TASKS": ["1", "x"],
    "CUDA_VISIBLE_DEVICES": ["", "x", "-1"],
    "TZ": ["x" * 400, "Nowhere/At_All"],
    "NO_COLOR": ["1"],
    "MALLOC_ARENA_MAX": ["0"],
}
# What sh does before the program takes its place.
SHELLS = ["ulimit -n 3;", "ulimit -n 4;", "ulimit -n 6;", "ulimit -n 10;", "ulimit -n 20;",
          "ulimit -v 20000;", "ulimit -v 60000;", "ulimit -v 300000;", "ulimit -v 450000;",
          "ulimit -v 600000;", "ulimit -v 800000;", "ulimit -v 2000000;", "ulimit -f 0;",
          "ulimit -f 1;", "ulimit -f 20;", "ulimit -s 64;", "ulimit -s 512;", "ulimit -t 1;",
          "ulimit -c 0;", "umask 777;", "exec <&-;", "exec >&-;", "exec 2>&-;",
          "exec <&- >&- 2>&-;", "exec >/dev/full;", "exec 2>/dev/full;", "exec >/dev/full 2>&1;",
          "exec </dev/zero;", "trap '' INT TERM HUP PIPE;", "mkdir gone; cd gone; rmdir ../gone;"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE,
           signal.SIGUSR1, signal.SIGWINCH, signal.SIGCONT, signal.SIGALRM, signal.SIGXFSZ,
           signal.SIGXCPU]
# Under these the system may end a program before it is one, or as it was told to.
LOADERS = {"ulimit -n 3;": (127,), "ulimit -v 20000;": (127, 139, -11), "ulimit -v 60000;": (127,),
           "ulimit -s 64;": (139, -11, -7), "ulimit -t 1;": (-signal.SIGXCPU, -signal.SIGKILL)}
# A run ends by itself after these, with what was measured.
ORDERLY = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM,
           signal.SIGXCPU}


def forecasts(plan):
    """What a plan says of its cells, apart from times: these follow what earlier runs took."""
    cells = json.loads(plan)[0]["cells"]
    for cell in cells:
        cell["forecast"].pop("estimated_seconds", None)
    return cells


class Surroundings(Kind):
    """Small commands in odd surroundings."""

    def prepare(self):
        self.start("list", "mechanisms")
        self.tiny_run()
        self.planned = forecasts(self.start("plan", "tiny.json", "--json").stdout)

    def case(self, random, folder):
        (folder / "tiny.json").write_text(json.dumps(TINY_SUITE))
        tiny = ["run", "tiny.json", "--out", "out", "--rounds", "1", *BRIEF]
        arguments = random.choice(
            [["validate", "tiny.json"], ["plan", "tiny.json"], ["list", "mechanisms"],
             ["list", "suites"], ["describe", "latte"],
             ["report", str(FIXTURE), "--no-render", "--out", "out"],
             ["compare", str(FIXTURE), str(FIXTURE)], ["doctor", "--quick"],
             ["data", "mqar", "--out", "data"], tiny, tiny, tiny]
        )
        case = Case(arguments)
        kind = random.random()
        if kind < 0.45:
            for _ in range(random.choice([1, 1, 2, 4])):
                name = random.choice(list(VARIABLES))
                case.environment[name] = random.choice(VARIABLES[name])
        elif kind < 0.8:
            case.shell = random.choice(SHELLS)
            case.exit_codes += LOADERS.get(case.shell, ())
            if random.random() < 0.6:  # nothing is remembered: a worker has to be started
                case.environment["XDG_CACHE_HOME"] = str(folder / "cache")
        else:
            self.add_signals(random, case, tiny)
        case.check = lambda outcome: self.told(case, outcome, folder) + self.remembered(folder)
        return case

    def remembered(self, folder):
        """What went wrong here must not be what later calls are told."""
        if not (folder / "cache").exists():
            return []
        done = subprocess.run([self.program, "plan", "tiny.json", "--json"], cwd=folder, text=True,
                              env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0 and forecasts(done.stdout) == self.planned:
            return []
        return [("a failure that is remembered", (done.stdout + done.stderr)[:300])]

    @staticmethod
    def add_signals(random, case, tiny):
        case.arguments = tiny if random.random() < 0.7 else case.arguments
        at = 0
        for _ in range(random.choice([1, 1, 2, 3])):
            at += random.random() * random.choice([0.02, 0.5, 2])
            number = random.choice(SIGNALS)
            case.signals.append((at, number))
        # Whoever sends one of the others, or one to a command that keeps nothing, gets its way.
        case.exit_codes += tuple(-number for _, number in case.signals)

    @staticmethod
    def told(case, outcome, folder):
        found = []
        if ">/dev/full" in case.shell.replace("2>/dev/full", "") and outcome.exit_code == 0:
            found.append(("output lost without a word", "exit code 0 with /dev/full as output"))
        found += ended_in_the_middle(folder, outcome, ORDERLY)
        begun = (folder / "out" / "journal.jsonl").exists()
        if begun and outcome.exit_code == 130 and not (folder / "out" / "result.json").exists():
            found.append(("no result", "a run that was interrupted left no result.json"))
        return found


class Caches(Kind):
    """Files of the cache, cut and changed: commands that read them answer as if there were none."""

    def prepare(self):
        (self.scratch / "tiny.json").write_text(json.dumps(TINY_SUITE))
        for command in (["list", "mechanisms"], ["plan", "tiny.json"]):
            self.start(*command)
        self.cache = os.environ["XDG_CACHE_HOME"]

    def case(self, random, folder):
        (folder / "tiny.json").write_text(json.dumps(TINY_SUITE))
        shutil.copytree(self.cache, folder / "cache")
        files = sorted(file for file in (folder / "cache").rglob("*") if file.is_file())
        for file in random.choice([files, [random.choice(files)]]):
            self.damage(random, file)
        command = random.choice(
            [["list", "mechanisms"], ["plan", "tiny.json"], ["describe", "latte"],
             ["validate", "tiny.json"], ["list", "tasks", "--json"]]
        )
        return Case(command, environment={"XDG_CACHE_HOME": str(folder / "cache")}, exit_codes=(0,),
                    json_output="--json" in command)

    @staticmethod
    def damage(random, file):
        text = file.read_bytes()
        kind = random.random()
        if kind < 0.1:
            file.unlink()
            file.mkdir()
        elif kind < 0.2:
            file.unlink()
            file.symlink_to(random.choice(["/dev/zero", "/dev/null", "nowhere"]))
        elif kind < 0.3:
            file.write_bytes(b"[" * random.choice([1, 100, 100000]))
        elif kind < 0.6:
            try:
                tree = json.loads(text)
                mutate.change_tree(random, tree)
                file.write_text(mutate.text_of(tree))
            except (ValueError, TypeError):
                file.write_bytes(text[: len(text) // 2])
        else:
            file.write_bytes(mutate.change_text(random, text.decode("latin-1")))
