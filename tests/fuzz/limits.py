"""Numbers that are none or out of range, headers of journals, and inputs as large as they may be."""

import json

import mutate
from kind import BRIEF, TINY_SUITE, Kind, copy_run
from oracle import Case

NO_NUMBERS = ["nan", "-nan", "inf", "-inf", "1e999", "1" + "0" * 40, "0x10", "1 ", " 1", "١", "1_000",
              "", "x", "1,5", "--", "-1e400"]
NUMBERS_OF = {
    "run softmax": ["--seed", "--threads", "--rounds", "--cell-timeout", "--wait", "--jobs"],
    "generate run": ["--bytes", "--temperature", "--seed", "--capacity", "--threads"],
    "apply softmax": ["--seed", "--check-rows", "--threads"],
    "compare a b": ["--margin"],
    "ab softmax latte": ["--margin", "--absolute", "--confidence", "--rounds-most",
                         "--seconds-most", "--confirm"],
    "check softmax": ["--cell-timeout", "--wait"],
    "data mqar": ["--seed", "--show", "--threads"],
    "submit tiny.json": ["--jobs", "--seed", "--threads", "--rounds"],
    "status folder": ["--every"],
    "doctor": ["--threads", "--spread-most"],
}


class Numbers(Kind):
    """What is no number, given to every option that takes one."""

    def case(self, random, _):
        command = random.choice(list(NUMBERS_OF))
        flag = random.choice(NUMBERS_OF[command])
        value = random.choice(NO_NUMBERS)

        def check(outcome):
            found = []
            if outcome.exit_code != 2 or flag not in outcome.err:
                found.append(("no number was taken", f"{flag} {value}"))
            if len(outcome.err) > 400:
                found.append(("a long refusal", outcome.err))
            return found

        return Case([*command.split(), f"{flag}={value}"], check=check)


class Headers(Kind):
    """The header of a journal, changed, read by --resume and --reuse."""

    def prepare(self):
        self.base = self.tiny_run()
        (self.scratch / "tiny.json").write_text(json.dumps(TINY_SUITE))

    def case(self, random, folder):
        copy_run(self.base, folder / "run")
        journal = folder / "run" / "journal.jsonl"
        first, rest = journal.read_bytes().split(b"\n", 1)
        header = json.loads(first)
        key = random.choice(list(header))
        if random.random() < 0.6:
            header[key] = mutate.any_value(random)
        elif random.random() < 0.3:
            del header[key]
        else:
            mutate.change_tree(random, header)
        line = mutate.text_of(header).replace("\n", " ").encode(errors="surrogatepass")
        journal.write_bytes(line + b"\n" + rest)
        (folder / "tiny.json").write_text(json.dumps(TINY_SUITE))
        words = random.choice([["--resume", "run"], ["tiny.json", "--reuse", "run", "--out", "new"]])
        return Case(["run", *words, *BRIEF], files=["journal.jsonl"], interrupt_after=8)


MANY = 40_000  # values: below 4 MiB


def suite(**members):
    return {"name": "large", "task": "kernel", "mechanisms": ["latte"], **members}


LARGE = [
    lambda: suite(set={"length": [[1]] * MANY}),
    lambda: suite(set={"length": [-i for i in range(MANY)]}),
    lambda: suite(set={f"k{i}": 1 for i in range(MANY)}),
    lambda: suite(mechanisms=["latte"] * MANY),
    lambda: suite(mechanisms=[f"lattx{i}" for i in range(MANY)]),
    lambda: suite(mechanisms={f"m{i}": 3 for i in range(MANY)}),
    lambda: suite(mechanisms={f"m{i}": {"use": 5} for i in range(MANY)}),
    lambda: suite(mechanisms={f"m{i}": {"use": f"x{i}"} for i in range(MANY)}),
    lambda: suite(figures=[{"kind": i} for i in range(MANY)]),
    lambda: suite(profiles={f"p{i}": {"x": 1} for i in range(MANY)}),
    lambda: {"name": "large", "mechanisms": {f"m{i}": {"use": "latte"} for i in range(9000)},
             "tasks": {f"t{i}": {"task": "kernel", "mechanisms": ["x"]} for i in range(9000)}},
]


class Large(Kind):
    """Suites of as many values as a file may have, all of them wrong."""

    def case(self, random, folder):
        (folder / "large.json").write_text(json.dumps(random.choice(LARGE)()))
        return Case(["validate", "large.json"], files=["large.json"])
