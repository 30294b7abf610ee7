"""Suite files."""

import json
import signal

import mutate
from kind import BRIEF, SOURCES, TINY_SUITE, Kind, ended_in_the_middle, link_everything
from oracle import EXIT_CODES, Case

SMALL = [
    TINY_SUITE,
    {"name": "zipped",
     "task": "kernel",
     "device": "cpu",
     "set": {"head_dim": 8, "window": {"left": 3, "right": 0}},
     "zip": [{"length": [8, 16], "batch": [2, 1]},
             {"heads": [1, 2], "pattern": ["causal", "bidirectional"]}],
     "mechanisms": {"softmax": {}, "window": {}, "flash": {}, "latte": {}},
     "figures": ["memory"],
     "gate": {"relative_change": 0.03, "absolute_seconds": 5e-5, "confidence": 0.95},
     "profiles": {"quick": {"zip": None, "set": {"length": 8}},
                  "none": {"mechanisms": {"flash": None}}}},
    {"name": "steps",
     "tasks": {"a": {"task": "decode", "set": {"steps": 2}, "title": "A step"},
               "b": {"task": "crossover", "set": {"length_maximum": 64}, "mechanisms": ["latte"]}},
     "set": {"heads": 1, "head_dim": 8, "length": "head_dim", "value_dim": 4},
     "mechanisms": {"latte": {"latents_per_head": [2, "head_dim/2"]}, "softmax": {"kv_heads": 1}}},
    {"name": "school",
     "task": "mqar",
     "preset": "zoology_b",
     "published": "based_figure_2.csv",
     "set": {"width": 16, "heads": 1, "batch": 8, "vocabulary": 64, "length": 16, "pairs": 2,
             "train_examples": 80, "validation_examples": 16, "test_examples": 16, "epochs": 1},
     "mechanisms": {"latte": {"learning_rate": [0.01, 0.003]}, "performer": {}}},
    {"name": "mad", "task": "mad",
     "set": {"width": 16, "heads": 1, "length": 32, "batch": 8, "epochs": 1},
     "mechanisms": {"softmax": {}}},
]


class Suites(Kind):
    """Suites as they are and small ones, changed; held to `validate`, some to `plan` and `run`."""

    def prepare(self):
        self.bases = SMALL * 4 + [
            json.loads(file.read_text()) for file in sorted((SOURCES / "suites").glob("*.json"))
            if file.stem != "shapes"
        ]
        self.tiny_run()  # what is found out once is in the cache from here on
        # What is to be spoilt must be right.
        link_everything(SOURCES / "suites", self.scratch)
        for suite in SMALL:
            (self.scratch / "small.json").write_text(json.dumps(suite))
            self.start("validate", "small.json")

    def case(self, random, folder):
        link_everything(SOURCES / "suites", folder)
        base = random.choice(self.bases)
        name = random.choice(["suite.json"] * 9 + ["a suite.json"])
        (folder / name).write_bytes(mutate.changed_json(random, base))
        kind = random.random()
        if kind < 0.82:
            profile = random.choice([[], [], [], ["--profile", "quick"]])
            return Case(["validate", name, *profile], files=[name])
        if kind < 0.97:
            flags = random.choice([[], ["--cells"], ["--json"], ["--profile", "quick"]])
            return Case(["plan", name, *flags], files=[name], json_output="--json" in flags)
        (folder / name).write_bytes(mutate.changed_json(random, random.choice(SMALL)))
        return Case(["run", name, "--out", "out", "--rounds", "1", *BRIEF], files=[name],
                    interrupt_after=4, exit_codes=EXIT_CODES + (-signal.SIGINT,),
                    check=lambda outcome: ended_in_the_middle(folder, outcome))
