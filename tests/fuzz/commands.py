"""Command lines: of every command, with words and flags right and wrong."""

import json
import signal

import mutate
from kind import FIXTURE, TINY_SUITE, Kind, ended_in_the_middle
from oracle import EXIT_CODES, Case

SETTINGS = [
    "length",
    "heads",
    "head_dim",
    "value_dim",
    "kv_heads",
    "batch",
    "width",
    "dtype",
    "pattern",
    "pass",
    "scope",
    "window",
    "latents_per_head",
    "latents_total",
    "implementation",
    "use",
    "steps",
    "input_scale",
    "learning_rate",
    "train_mix",
    "seed",
    "device",
    "key_length",
    "features",
]
VALUES = [
    "8",
    "4,8",
    "4..64",
    "4..64:20",
    "64..4",
    "1..9223372036854775807",
    "9223372036854775807",
    "0",
    "-1",
    "1e999",
    "nan",
    "length/2",
    "length/0",
    "width",
    "causal",
    "cross",
    "float32",
    "bfloat16",
    "",
    ",",
    "..",
    "4..",
    "..4",
    "4..8:0",
    "1..1000000:1",
    "forward+backward",
    "68719476736",
    "0.5",
    "true",
    '{"left": 3, "right": 0}',
    "[1,2",
    "64x8:100",
    "8,8",
    '"8"',
]
NAMES = [
    "softmax",
    "latte",
    "latte/scan",
    "flash",
    "linear",
    "window",
    "luna/fused",
    "macchiato",
    "kernel",
    "mqar",
    "zoology_b",
    "nothing",
    "latte/",
    "/",
    "tiny.json",
    "absent.json",
    "tiny_run",
    "suites",
    "torchscript:absent.pt",
    "torchscript:tiny.json",
    "torchscript:../../x.pt",
    "torchscript:",
]
PATTERNS = [
    "softmax",
    "(a|a)*c",
    "(a*)*b",
    "[",
    "*",
    "(" * 500,
    ".*" * 200,
    "\\",
    "a{1,99999999}",
    "(?=a)",
    "\\1",
    "a" * 5000,
    "[[:alpha:",
    "(?P<n",
    "",
]
FILES = [
    "tiny.json",
    "absent.json",
    ".",
    "/dev/null",
    "/dev/zero",
    "/proc/self/mem",
    "/etc/passwd",
    "",
    "fifo",
    "result.json",
    "tiny_run",
    "tiny_run/journal.jsonl",
    "x" * 300,
    "no/such/folder/x",
]
NUMBERS = [
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "1e3",
    "99999999999999999999",
    "x",
    "",
    "4294967296",
    "0x10",
    "nan",
]

# Of each flag, what it takes.
FLAGS = {
    "--set": lambda r: r.choice(SETTINGS) + r.choice(["=", "=", "=", ""]) + r.choice(VALUES),
    "--device": lambda r: r.choice(
        ["cpu", "cuda", "cuda:0", "cuda:-1", "cuda:99999999999", "gpu", ""]
    ),
    "--plugin": lambda r: r.choice(["", "new=", "=", "a=b="]) + r.choice(FILES),
    "--profile": lambda r: r.choice(["quick", "quik", "", "a" * 3000]),
    "--with": lambda r: r.choice(NAMES),
    "--only": lambda r: r.choice(PATTERNS),
    "--skip": lambda r: r.choice(PATTERNS),
    "--seed": lambda r: r.choice(NUMBERS),
    "--threads": lambda r: r.choice(["1", "2", *NUMBERS]),
    "--rounds": lambda r: r.choice(["1", *NUMBERS]),
    "--cell-timeout": lambda r: r.choice(NUMBERS),
    "--progress": lambda r: r.choice(["plain", "json", "x"]),
    "--memory-limit": lambda r: r.choice(
        ["64M", "1K", "20G", "0", "-1", "x", "99999999999999999999G", "1e3"]
    ),
    "--resume": lambda r: r.choice(FILES),
    "--reuse": lambda r: r.choice(FILES),
    "--retry": lambda r: r.choice(["timeout", "ok,crashed", "x", ",", "disturbed"]),
    "--fail-on": lambda r: r.choice(["timeout", "unsupported", "x", ","]),
    "--shard": lambda r: r.choice(["1/2", "2/2", "3/2", "0/1", "1/99999999999", "x", "1/", "/"]),
    "--jobs": lambda r: r.choice(NUMBERS),
    "--out": lambda r: r.choice(
        ["out", "out", "tiny_run", "", "/dev/null", "x" * 300, "/proc/out"]
    ),
    "--margin": lambda r: r.choice(["0.03", *NUMBERS]),
    "--format": lambda r: r.choice(["svg", "json", "x", ""]),
    "--kind": lambda r: r.choice(NAMES),
    "--beside": lambda r: r.choice(FILES),
    "--query": lambda r: r.choice(FILES),
    "--key": lambda r: r.choice(FILES),
    "--value": lambda r: r.choice(FILES),
    "--role": lambda r: r.choice(["query=", "x=", "=", ""]) + r.choice(FILES),
    "--mask": lambda r: r.choice(FILES),
    "--param": lambda r: r.choice(["w=", "="]) + r.choice(FILES),
    "--gradient": lambda r: r.choice(["ones", *FILES]),
    "--pattern": lambda r: r.choice(["causal", "cross", "x", ""]),
    "--check-rows": lambda r: r.choice(NUMBERS),
    "--implementation": lambda r: r.choice(["auto", "fused", "x", ""]),
    "--dtype": lambda r: r.choice(VALUES),
    "--cell": lambda r: r.choice(NAMES),
    "--prompt": lambda r: r.choice(["", "The ", "x" * 5000]),
    "--bytes": lambda r: r.choice(NUMBERS),
    "--temperature": lambda r: r.choice(NUMBERS),
    "--score": lambda r: r.choice(FILES),
    "--capacity": lambda r: r.choice(NUMBERS),
}
NO_VALUE = [
    "--json",
    "--cells",
    "--no-report",
    "--no-ceilings",
    "--force",
    "--no-render",
    "--gate",
    "--quick",
    "--allow-nan",
    "--help",
    "--keep-blas-core",
    "--keep-checkpoints",
    "--no-growth",
    "--version",
    "--",
    "-",
    "-x",
    "---",
]
SUITE_FLAGS = ["--set", "--device", "--plugin", "--profile", "--with", "--only", "--skip"]
MEASURE_FLAGS = [
    "--seed",
    "--threads",
    "--rounds",
    "--cell-timeout",
    "--memory-limit",
    "--progress",
    "--out",
]
COMMANDS = {
    "validate": SUITE_FLAGS,
    "plan": SUITE_FLAGS,
    "list": ["--plugin"],
    "describe": ["--plugin"],
    "schema": ["--out"],
    "report": ["--out", "--format"],
    "compare": ["--margin"],
    "import": ["--beside", "--out"],
    "data": ["--set", "--seed", "--out"],
    "generate": [
        "--cell",
        "--prompt",
        "--bytes",
        "--temperature",
        "--seed",
        "--score",
        "--capacity",
        "--threads",
        "--memory-limit",
    ],
    "new": ["--plugin"],
    "run": SUITE_FLAGS
    + MEASURE_FLAGS
    + ["--resume", "--reuse", "--retry", "--fail-on", "--shard", "--jobs"],
    "ab": ["--set", "--device", "--plugin", "--margin"] + MEASURE_FLAGS,
    "apply": [
        "--query",
        "--key",
        "--value",
        "--role",
        "--mask",
        "--param",
        "--gradient",
        "--pattern",
        "--set",
        "--implementation",
        "--seed",
        "--check-rows",
        "--out",
        "--plugin",
        "--threads",
        "--memory-limit",
    ],
    "check": [
        "--implementation",
        "--pattern",
        "--dtype",
        "--device",
        "--plugin",
        "--cell-timeout",
        "--out",
        "--format",
    ],
}
# Words that a command can do with.
GOOD = {
    "validate": ["tiny.json"],
    "plan": ["tiny.json", "softmax", "latte"],
    "run": ["tiny.json", "linear"],
    "list": ["mechanisms", "suites", "tasks", "devices"],
    "describe": ["latte", "mqar", "zoology_b", "flash"],
    "report": ["result.json", "tiny_run"],
    "compare": ["result.json", "tiny_run"],
    "data": ["mqar", "copy"],
    "generate": ["tiny_run"],
    "new": ["mine"],
    "schema": ["result", "suite"],
    "import": ["result.json"],
}
MEASURES = ("run", "ab", "check")
# Each start of these has a worker load LibTorch or measures: fewer of them are as telling.
WEIGHTS = {"run": 1, "ab": 1, "check": 1, "apply": 2, "data": 1}


class Commands(Kind):
    """Command lines: each command with flags and words, right and wrong."""

    def prepare(self):
        self.start("list", "mechanisms")
        self.tiny_run()

    def case(self, random, folder):
        (folder / "tiny.json").write_text(json.dumps(TINY_SUITE))
        (folder / "result.json").symlink_to(FIXTURE)
        (folder / "tiny_run").symlink_to(self.tiny_run())
        names = list(COMMANDS)
        command = random.choices(names, [WEIGHTS.get(name, 8) for name in names])[0]
        words = [
            random.choice(
                GOOD.get(command, ["softmax"]) if random.random() < 0.7 else [*NAMES, *FILES]
            )
            for _ in range(random.choice([0, 1, 1, 1, 1, 1, 2, 3]))
        ]
        for _ in range(random.choice([0, 1, 1, 2, 3, 5])):
            flag = random.choice(COMMANDS[command] if random.random() < 0.9 else list(FLAGS))
            value = FLAGS[flag](random) if random.random() < 0.9 else random.choice(mutate.WORDS)
            words += [flag + "=" + value] if random.random() < 0.2 else [flag, value]
        if random.random() < 0.3:
            words.insert(random.randrange(len(words) + 1), random.choice(NO_VALUE))
        if random.random() < 0.1:
            words.insert(random.randrange(len(words) + 1), random.choice(mutate.WORDS))
        if command == "run" and "--out" not in words:
            words += ["--out", "out"]
        if command in ("run", "ab"):
            words += ["--no-ceilings", "--no-report"]
        if command == "new" and not any(word.startswith("--plugin") for word in words):
            words += ["--plugin", "made"]  # else it writes into the sources of the program
        if random.random() < 0.03:
            command = mutate.nearly(random, command)
        words = [word.replace("\0", "") for word in [command, *words]]
        return Case(
            words,
            json_output="--json" in words,
            interrupt_after=4 if command in MEASURES else 0,
            exit_codes=EXIT_CODES + ((-signal.SIGINT,) if command in MEASURES else ()),
            check=lambda outcome: ended_in_the_middle(folder, outcome),
        )
