"""What command lines are made of: commands, their words and flags, right and wrong."""

SETTINGS = ["length", "heads", "head_dim", "value_dim", "key_dim", "kv_heads", "batch", "width", "dtype",
            "pattern", "pass", "scope", "window", "latents_per_head", "latents_total",
            "implementation", "use", "steps", "input_scale", "learning_rate", "train_mix", "seed",
            "device", "key_length", "features"]
VALUES = ["8", "4,8", "4..64", "4..64:20", "64..4", "1..9223372036854775807", "9223372036854775807",
          "0", "-1", "1e999", "nan", "length/2", "length/0", "width", "causal", "cross", "float32",
          "bfloat16", "", ",", "..", "4..", "..4", "4..8:0", "1..1000000:1", "forward+backward",
          "68719476736", "0.5", "true", '{"left": 3, "right": 0}', "[1,2", "64x8:100", "8,8", '"8"']
NAMES = ["softmax", "latte", "latte/scan", "flash", "linear", "window", "luna/fused", "macchiato",
         "kernel", "mqar", "zoology_b", "nothing", "latte/", "/", "tiny.json", "absent.json",
         "tiny_run", "suites", "python:absent.py:Near", "python:tiny.json:Near",
         "python:../../x.py:Near", "python:"]
PATTERNS = ["softmax", "(a|a)*c", "(a*)*b", "[", "*", "(" * 500, ".*" * 200, "\\", "a{1,99999999}",
            "(?=a)", "\\1", "a" * 5000, "[[:alpha:", "(?P<n", ""]
FILES = ["tiny.json", "absent.json", ".", "/dev/null", "/dev/zero", "/proc/self/mem", "/etc/passwd",
         "", "fifo", "result.json", "tiny_run", "tiny_run/journal.jsonl", "submission", "x" * 300,
         "no/such/folder/x"]
NUMBERS = ["0", "1", "2", "-1", "1.5", "1e3", "99999999999999999999", "x", "", "4294967296", "0x10",
           "nan"]

# Files that a command writes under the name it is given: all in the folder of the case.
WRITTEN_FILES = ["history.jsonl", "counts.json", "tiny.json", "tiny_run", "tiny_run/journal.jsonl",
                 "result.json", ".", "", "fifo", "x" * 300, "no/such/folder/x"]
# Always one word with their value: no odd word may come between, since it could be another file.
WRITING_FLAGS = ("--history", "--counts")

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
    "--history": lambda r: r.choice(WRITTEN_FILES),
    "--counts": lambda r: r.choice(WRITTEN_FILES),
    "--suite": lambda r: r.choice(NAMES),
    "--gallery": lambda r: r.choice(FILES),
    "--sbatch-option": lambda r: r.choice(
        ["partition=long", "time=2:00:00", "array=1-9", "output=/dev/null", "a=b\nc", "x", "=", ""]
    ),
    "--setup": lambda r: r.choice(FILES),
    "--again": lambda r: r.choice(["submission", *FILES]),
    "--every": lambda r: r.choice(NUMBERS),
}
NO_VALUE = ["--json", "--cells", "--no-report", "--no-ceilings", "--no-plot", "--timings", "--force", "--no-render", "--gate",
            "--quick", "--allow-nan", "--help", "--keep-blas-core", "--keep-checkpoints",
            "--no-growth", "--version", "--dry-run", "--watch", "--alike", "--update",
            "--exclusive", "--shared", "--", "-", "-x", "---"]
SUITE_FLAGS = ["--set", "--device", "--plugin", "--profile", "--with", "--only", "--skip"]
MEASURE_FLAGS = ["--seed", "--threads", "--rounds", "--cell-timeout", "--memory-limit",
                 "--progress", "--out"]
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
    "generate": ["--cell", "--prompt", "--bytes", "--temperature", "--seed", "--score",
                 "--capacity", "--threads", "--memory-limit"],
    "new": ["--plugin"],
    "run": SUITE_FLAGS
    + MEASURE_FLAGS
    + ["--resume", "--reuse", "--retry", "--fail-on", "--shard", "--jobs"],
    "ab": ["--set", "--device", "--plugin", "--margin"] + MEASURE_FLAGS,
    "apply": ["--query", "--key", "--value", "--role", "--mask", "--param", "--gradient",
              "--pattern", "--set", "--implementation", "--seed", "--check-rows", "--out",
              "--plugin", "--threads", "--memory-limit"],
    "check": ["--set", "--implementation", "--pattern", "--dtype", "--device", "--plugin", "--cell-timeout",
              "--out", "--format"],
    "contribute": ["--out"],
    "figures": ["--set", "--device", "--plugin", "--gallery", "--retry", "--jobs"] + MEASURE_FLAGS,
    "gate": ["--counts", "--suite"],
    "merge": ["--out"],
    "submit": SUITE_FLAGS
    + ["--jobs", "--sbatch-option", "--setup", "--again", "--retry", "--out"]
    + ["--seed", "--threads", "--rounds"],
    "status": ["--every"],
    "watch": ["--every", "--out"],
    "trend": ["--history", "--out"],
}
# Of `figures`: these measure for hours, and write into the sources of the program. They are left out
# of every command line.
NEVER = ("--run", "--again")
# Words that a command can do with.
GOOD = {"validate": ["tiny.json"], "plan": ["tiny.json", "softmax", "latte"],
        "run": ["tiny.json", "linear"], "list": ["mechanisms", "suites", "tasks", "devices"],
        "describe": ["latte", "mqar", "zoology_b", "flash"], "report": ["result.json", "tiny_run"],
        "compare": ["result.json", "tiny_run"], "data": ["mqar", "copy"], "generate": ["tiny_run"],
        "new": ["mine"], "schema": ["result", "suite"], "import": ["result.json"],
        "figures": ["latte_v1", "latte_v1.figure_2", "lavo", "quickstart"],
        "contribute": ["tiny_run", "result.json"],
        "merge": ["tiny_run", "result.json", "submission"],
        "submit": ["tiny.json", "softmax", "latte"], "status": ["submission"], "watch": ["tiny_run"],
        "trend": ["result.json", "tiny_run"]}
MEASURES = ("run", "ab", "check")
# Each start of these has a worker load LibTorch or measures: fewer of them are as telling.
WEIGHTS = {"run": 1, "ab": 1, "check": 1, "apply": 2, "data": 1, "submit": 2}
