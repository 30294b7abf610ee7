#!/usr/bin/env python3
"""How often the verdict of `attnbench ab` is right: coverage, false alarms, power.

  study.py synthetic [--trials N]   on made-up noise: independent, autocorrelated, with jumps
  study.py record FILE [--percent P] [--rounds N] [--load COMMAND]
                                    records a machine: one side against itself (600 rounds) or, with
                                    P, against the plugin `slowed`, which does P % more of the same
                                    work (480 rounds)
  study.py blocks FILE…             recordings cut into blocks of 12, 24 and 48 rounds, each of which
                                    one verdict has, and into runs of the looks and a confirmation;
                                    those of one machine, condition and P are counted together
  study.py counts                   the true ratios of `slowed`, by instruction counts (valgrind)
  study.py figure FILE.svg TABLE [RECORDING…]
                                    draws the table that `synthetic` printed, which README.md has,
                                    and the blocks of recordings (needs vl-convert: build/venv)

Standard library alone, but for the figure. README.md beside it says what was found.
"""

import argparse
import collections
import gzip
import json
import math
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile

# ---- the rules, as harness/program/compare/gate.*, look.cpp and core/statistics.cpp have them ------------

LOOKS, CONFIRM, MARGIN = (12, 24, 48), 24, 0.03
FAR, NOISE = 1.1, 0.8  # ratios nearer to 1 than FAR need quiet rounds; the confidence of the control


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_ranks = {}


def order_rank(count, confidence):
    """How many values of each end the interval leaves out; None where there is no interval."""
    key = (count, confidence)
    if key not in _ranks:
        rank, tail = None, 0.0
        for k in range((count + 1) // 2):
            tail += math.comb(count, k) / 2**count
            if 2 * tail > 1 - confidence:
                break
            rank = k
        _ranks[key] = rank
    return _ranks[key]


def order_interval(values, confidence):
    rank = order_rank(len(values), confidence)
    if rank is None:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[-1 - rank]


_signed = {}


def signed_rank(count, confidence):
    """The same of the averages of all pairs, by the distribution of Wilcoxon's statistic."""
    key = (count, confidence)
    if key not in _signed:
        ways = [1]
        for one in range(1, count + 1):
            longer = ways + [0] * one
            for total, number in enumerate(ways):
                longer[total + one] += number
            ways = longer
        rank, tail = None, 0
        for total, number in enumerate(ways):
            tail += number
            if 2 * tail > (1 - confidence) * 2**count:
                break
            rank = total
        _signed[key] = rank
    return _signed[key]


def signed_interval(values, confidence):
    rank = signed_rank(len(values), confidence)
    if rank is None:
        return None
    averages = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    return averages[rank], averages[-1 - rank]


INTERVALS = {"order statistics": order_interval, "signed ranks": signed_interval}


def verdict_of(interval, margin):
    if interval is None:
        return "UNCLEAR"
    low, high = interval
    reach = math.log1p(margin)
    if low > reach:
        return "SLOW"
    if high < -reach:
        return "FAST"
    return "SAME" if -reach <= low and high <= reach else "UNCLEAR"


def look_at(logs, control, confidence, margin, interval):
    if verdict_of(interval(control, confidence), margin) in ("SLOW", "FAST"):
        return "UNCLEAR"
    return verdict_of(interval(logs, confidence), margin)


def look_beside_others(logs, control, confidence, _margin, interval):
    """Of rounds that other programs disturbed: what is beyond all that the base did against itself."""
    ratio, noise = interval(logs, confidence), interval(control, NOISE)
    if ratio is None or noise is None:
        return "UNCLEAR"
    reach = max(math.log(FAR), noise[1], -noise[0])
    return "SLOW" if ratio[0] > reach else "FAST" if ratio[1] < -reach else "UNCLEAR"


def sequential(draw, looks, pairs, margin, interval, confirm, draw_to_confirm=None, look=look_at):
    """The verdict of rounds that `draw(count)` gives as (logs, control), and the rounds it took."""
    confidence = 1 - 0.05 / (pairs * len(looks))
    logs, control = [], []
    for rounds in looks:
        more, again = draw(rounds - len(logs))
        logs += more
        control += again
        verdict = look(logs, control, confidence, margin, interval)
        if verdict != "UNCLEAR":
            break
    if verdict == "SLOW" and confirm:
        logs, _ = (draw_to_confirm or draw)(confirm)
        found = interval(logs, 0.95)
        if not (found and found[0] > 0 and median(logs) > math.log1p(margin)):
            verdict = "UNCLEAR"
    return verdict, rounds


# ---- made-up noise --------------------------------------------------------------------------------


class Noise:
    """Logarithms of times of the three sides of a round, which share the machine's speed."""

    def __init__(self, kind, spread, seed):
        self.kind, self.spread, self.random = kind, spread, random.Random(seed)
        self.last = [self.random.gauss(0, spread) for _ in range(3)]

    def round(self):
        gauss, spread = self.random.gauss, self.spread
        if self.kind == "independent":
            return [gauss(0, spread) for _ in range(3)]
        if self.kind == "autocorrelated":  # 0.6 from round to round, each side for itself
            keep = 0.6
            self.last = [keep * x + math.sqrt(1 - keep**2) * gauss(0, spread) for x in self.last]
            return list(self.last)
        values = [gauss(0, spread) for _ in range(3)]  # jumps: one call in ten is up to 15 % slower
        return [x + (self.random.uniform(0, 0.15) if self.random.random() < 0.1 else 0)
                for x in values]

    def draw(self, count, true_log):
        logs, control = [], []
        for _ in range(count):
            base, new, again = self.round()
            logs.append(new + true_log - base)
            control.append(again - base)
        return logs, control


def wilson(hits, trials):
    """The 95 % interval of a share."""
    if trials == 0:
        return 0.0, 1.0
    z, share = 1.96, hits / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def share_text(hits, trials):
    low, high = wilson(hits, trials)
    return f"{100 * hits / trials:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


KINDS = ("independent", "autocorrelated", "jumps")


def synthetic(arguments):
    trials, spread = arguments.trials, arguments.spread
    print(f"{trials} trials of each; noise of one side {100 * spread:.1f} %; margin {100 * MARGIN:.0f} %; "
          f"{arguments.pairs} cells; looks after {', '.join(map(str, LOOKS))} rounds; "
          f"{CONFIRM} rounds confirm SLOW\n")
    print("| noise | interval | coverage at 12, 24, 48 rounds (95 % asked) | SLOW or FAST without a change "
          "| SLOW at +5 % | +8 % | +10 % | rounds without a change |")
    print("|:--|:--|:--|:--|--:|--:|--:|--:|")
    for kind in KINDS:
        for name, interval in INTERVALS.items():
            covered = []
            for rounds in LOOKS:
                noise, hits = Noise(kind, spread, f"{kind} {rounds}"), 0
                for _ in range(trials):
                    low, high = interval(noise.draw(rounds, 0)[0], 0.95)
                    hits += low <= 0 <= high
                covered.append(f"{100 * hits / trials:.1f}")
            shares, taken = [], 0
            for change in (0, 0.05, 0.08, 0.10):
                noise, hits = Noise(kind, spread, f"{kind} {change}"), 0
                for _ in range(trials):
                    verdict, rounds = sequential(
                        lambda count: noise.draw(count, math.log1p(change)), LOOKS,
                        arguments.pairs, MARGIN, interval, CONFIRM)
                    hits += verdict == "SLOW" or (change == 0 and verdict == "FAST")
                    taken += rounds if change == 0 else 0
                shares.append(share_text(hits, trials) if change == 0 else f"{100 * hits / trials:.1f} %")
            print(f"| {kind} | {name} | {', '.join(covered)} | {' | '.join(shares)} | {taken / trials:.0f} |",
                  flush=True)
    return 0


# ---- a recording ----------------------------------------------------------------------------------


def rounds_of(cell):
    """{timing: {round: seconds}} of the rounds that nobody disturbed."""
    return {what: {one.get("round", 0): one["median_seconds"] for one in timing["rounds"]
                   if not one.get("disturbed")}
            for what, timing in cell.get("timing", {}).items()}


def least_of_journal(folder):
    """{cell: {timing: {round: the least sample}}} of all rounds, whatever disturbed them."""
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(folder / "journal.jsonl", encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            for what, timing in record.get("measured", {}).get("timing", {}).items():
                cells[record["cell"]][what][record["round"]] = min(timing["samples_seconds"])
    return cells


def cells_of_run(folder, least=False):
    """{cell and timing: [base, new, again] by round} of the folder of a run of ab on a suite."""
    document = json.loads((folder / "result.json").read_text())["attnbench"]
    cells = (least_of_journal(folder) if least else
             {cell["id"]: rounds_of(cell) for cell in document["cells"]})
    plan = document["suite"].get("ab", {})
    if not plan.get("matches"):
        sys.exit(f"{folder}: no run of `attnbench ab` on a suite")
    recording = {}
    for match in plan["matches"]:
        sides = [cells[match[side]] for side in ("base", "changed", "control")]
        for what in sides[0]:
            numbers = sorted(set.intersection(*(set(side.get(what, {})) for side in sides)))
            if numbers:
                recording[f"{match['name']} {what}"] = [
                    [float(f"{side[what][number]:.6g}") for side in sides] for number in numbers]
    if not recording:
        sys.exit(f"{folder}: no cell has rounds that count on all three sides")
    return recording


def recorded(path):
    """A recording: of a file of `record`, or of the folder of a run."""
    path = pathlib.Path(path)
    if path.is_dir():
        return {"condition": "a run", "percent": 0, "cells": cells_of_run(path)}
    try:
        with gzip.open(path, "rt") as stream:
            recording = json.load(stream)
        if recording["version"] != 1:
            sys.exit(f"{path}: version {recording['version']}, expected 1; record anew")
        if not recording["cells"]:
            sys.exit(f"{path}: no cells; record anew")
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}: no recording of `study.py record` ({error!r})")
    return recording


RUNS = "runs"


def logs_of(rounds):
    return ([math.log(new / base) for base, new, _ in rounds],
            [math.log(again / base) for base, _, again in rounds])


def cut(rounds, size):
    return [rounds[begin:begin + size] for begin in range(0, len(rounds) - size + 1, size)]


def look_of(recording):
    return look_beside_others if recording.get("least") else look_at


def one_look(rounds, pairs, interval, look):
    return look(*logs_of(rounds), 1 - 0.05 / (len(LOOKS) * pairs), MARGIN, interval)


def runs_of(rounds, pairs, interval, look=look_at):
    """Verdicts of runs of `ab` one after another: each takes the rounds that it needs, as `ab` does,
    and begins only where there are enough for the longest. So no round is in two of them, and short
    runs are not preferred."""
    verdicts, begin = [], 0

    def draw(count):
        nonlocal begin
        begin += count
        return logs_of(rounds[begin - count:begin])

    while begin + LOOKS[-1] + CONFIRM <= len(rounds):
        bar = FAR - 1 if look is look_beside_others else MARGIN
        verdicts.append(sequential(draw, LOOKS, pairs, bar, interval, CONFIRM, look=look)[0])
    return verdicts


def verdicts_of(recording, size, interval):
    """How many blocks of `size` rounds, or how many runs, have which verdict."""
    count = {"SLOW": 0, "FAST": 0, "SAME": 0, "UNCLEAR": 0}
    pairs = len(recording["cells"])
    for rounds in recording["cells"].values():
        look = look_of(recording)
        found = (runs_of(rounds, pairs, interval, look) if size == RUNS else
                 [one_look(block, pairs, interval, look) for block in cut(rounds, size)])
        for verdict in found:
            count[verdict] += 1
    return count


def save(recording, path):
    """With its verdicts, which a test holds against those of the program."""
    recording["verdicts"] = {str(size): verdicts_of(recording, size, order_interval)
                             for size in (LOOKS[0], RUNS)}
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as stream:
        stream.write(json.dumps(recording, separators=(",", ":")).encode())


def machine_of(folder):
    card = json.loads((folder / "result.json").read_text())["attnbench"]["machine"]
    return f"{card.get('cpu_model', 'a machine')}, {card.get('cores', '?')} cores"


SOURCE = pathlib.Path(__file__).resolve().parents[3]


# Enough for 450 verdicts of 12 rounds over all cells, where others disturb up to one round in six, and
# for 100 runs over those of `slowed` where most end after their first look and its confirmation.
ROUNDS_OF_ONE_SIDE, ROUNDS_OF_SLOWED = 600, 480


def record(arguments):
    build = pathlib.Path(arguments.build)
    rounds = arguments.rounds or (ROUNDS_OF_SLOWED if arguments.percent else ROUNDS_OF_ONE_SIDE)
    words = [str(build / "bin/attnbench"), "ab", str(SOURCE / "tests/harness/program/compare/slowed.json"),
             "--plugin", str(build / "plugins/slowed.so"), "--rounds", str(rounds),
             "--confirm", "0", "--no-report", "--no-ceilings", "--now"]
    condition = arguments.condition or arguments.load or "idle"
    if arguments.threads:
        words += ["--threads", str(arguments.threads)]
        condition += f", cells of {arguments.threads} thread" + "s" * (arguments.threads > 1)
    if arguments.percent:
        words += ["--base-set", "percent=0", "--new-set", f"percent={arguments.percent}"]
    else:
        words += ["--base", str(build), "--new", str(build)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "run"
        try:
            load = subprocess.Popen(shlex.split(arguments.load)) if arguments.load else None
        except OSError as error:
            sys.exit(f"--load {arguments.load}: {error.strerror}")
        try:
            measuring = subprocess.Popen(words + ["--out", str(folder)])
            try:
                code = measuring.wait(arguments.seconds_most)
            except subprocess.TimeoutExpired:
                measuring.send_signal(signal.SIGINT)  # what was measured is kept
                code = measuring.wait()
        finally:
            if load:
                load.terminate()
                load.wait()
        if code not in (0, 4, 130) or not (folder / "result.json").exists():
            sys.exit(f"attnbench ab ended with {code}: nothing was recorded")
        recording = {"version": 1, "condition": condition, "percent": arguments.percent,
                     "machine": machine_of(folder), "cells": cells_of_run(folder, arguments.least)}
        save(dict(recording, least=True) if arguments.least else recording, arguments.file)
    print(f"{arguments.file}: {pathlib.Path(arguments.file).stat().st_size} bytes")
    return 0


def bases_of(recording):
    """What a recording of a slowdown says of one side against itself: its base and the base once more,
    without a control of their own, so that only the rule's intervals guard against false alarms."""
    cells = {name: [[base, again, base] for base, _, again in rounds]
             for name, rounds in recording["cells"].items()}
    return dict(recording, percent=0, cells=cells)


def pooled(recordings):
    """Recordings by what they are of: those of one machine, condition and change count together."""
    groups = {}
    recordings = list(recordings)
    for recording in recordings + [bases_of(one) for one in recordings if one["percent"]]:
        about = tuple(recording.get(key) for key in ("machine", "condition", "percent", "least"))
        groups.setdefault(about, []).append(recording)
    return list(groups.values())


def verdicts_of_all(recordings, size, interval):
    count = collections.Counter()
    for recording in recordings:
        count.update(verdicts_of(recording, size, interval))
    return count


def ratios_of(recordings):
    """The least and the greatest of the cells' medians of new / base over all rounds: how much
    slower they truly were, in time."""
    logs = collections.defaultdict(list)
    for recording in recordings:
        for name, rounds in recording["cells"].items():
            logs[name] += logs_of(rounds)[0]
    ratios = [math.exp(median(values)) for values in logs.values()]
    return min(ratios), max(ratios)


def blocks(arguments):
    print("| machine | beside it | P | medians of new / base | rounds of a block | interval | verdicts "
          "| SLOW | FAST | UNCLEAR | false alarms, else SLOW |")
    print("|:--|:--|--:|:--|--:|:--|--:|--:|--:|--:|--:|")
    for group in pooled(recorded(path) for path in arguments.recordings):
        condition, percent = group[0]["condition"], group[0]["percent"]
        low, high = ratios_of(group)
        about = (f"| {group[0].get('machine', 'a machine')} | {condition} | {percent} % | "
                 f"{low:.3f} to {high:.3f} |")
        for size in LOOKS + (RUNS,):
            for name, interval in INTERVALS.items():
                count = verdicts_of_all(group, size, interval)
                total = sum(count.values())
                if total == 0:
                    continue
                hits = count["SLOW"] + (0 if percent else count["FAST"])
                print(f"{about} {size} | {name} | {total} | {count['SLOW']} | {count['FAST']} | "
                      f"{count['UNCLEAR']} | {share_text(hits, total)} |")
    print(f"\nRounds of a block: {', '.join(map(str, LOOKS))} are one look each; a run takes the three "
          f"looks in turn until it is clear, and {CONFIRM} rounds that confirm SLOW.")
    return 0


# ---- the figure -----------------------------------------------------------------------------------


def numbers_in(text):
    return [float(one) for one in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)]


def rows_of_table(text):
    """The coverages and verdicts in a table of `synthetic`, as rows for Vega-Lite."""
    coverage, verdicts = [], []
    trials = re.search(r"^([0-9]+) trials of each", text, re.MULTILINE)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 8 or cells[0] not in KINDS or cells[1] not in INTERVALS:
            continue
        about = {"noise": cells[0], "interval": cells[1]}
        for rounds, share in zip(LOOKS, numbers_in(cells[2])):
            coverage.append({**about, "rounds": rounds, "share": share})
        for percent, cell in zip((0, 5, 8, 10), cells[3:7]):
            share = numbers_in(cell)[0]
            low, high = wilson(share / 100 * int(trials.group(1)), int(trials.group(1)))
            verdicts.append({**about, "percent": percent, "share": share, "low": 100 * low,
                             "high": 100 * high})
    if not verdicts or not trials:
        sys.exit("there is no table of `study.py synthetic` in it")
    return coverage, verdicts


def rows_of_recordings(group):
    """Runs of a group of `pooled`; without a change SLOW and FAST are false alarms."""
    rows, percent = [], group[0]["percent"]
    if percent:
        low, high = ratios_of(group)
        percent = round(50 * (low + high) - 100, 1)
    machine = re.sub(r"\(R\)| Processor", "", group[0].get("machine", "a machine")).split(",")[0]
    about = f"{machine}, {group[0]['condition']}"
    for name, interval in INTERVALS.items():
        count = verdicts_of_all(group, RUNS, interval)
        total = sum(count.values())
        if total == 0:
            continue
        hits = count["SLOW"] + (0 if percent else count["FAST"])
        low, high = wilson(hits, total)
        rows.append({"noise": about, "interval": name, "percent": percent, "share": 100 * hits / total,
                     "low": 100 * low, "high": 100 * high})
    return rows


def specification(coverage, verdicts):
    """Two panels of Vega-Lite: what intervals cover, and how often a slowdown is called SLOW."""
    colour = {"field": "noise", "type": "nominal", "title": "noise",
              "sort": list(dict.fromkeys(row["noise"] for row in verdicts)),
              "scale": {"range": ["#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9"]}}
    shape = {"field": "interval", "type": "nominal", "title": "interval", "sort": list(INTERVALS)}

    def panel(rows, title, x, y, layers):
        encoding = {"x": x, "y": y, "color": colour}
        return {"title": title, "data": {"values": rows}, "width": 300, "height": 220,
                "encoding": encoding, "layer": layers}

    line = {"mark": {"type": "line"}, "encoding": {"strokeDash": shape}}
    point = {"mark": {"type": "point", "filled": True, "size": 50}, "encoding": {"shape": {**shape, "legend": None}}}
    bars = {"mark": {"type": "rule"}, "encoding": {"y": {"field": "low", "type": "quantitative"},
                                                   "y2": {"field": "high"}}}
    asked = {"data": {"values": [{"asked": 95}]}, "mark": {"type": "rule", "color": "#888888"},
             "encoding": {"x": None, "color": None, "y": {"field": "asked", "type": "quantitative"}}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"legend": {"labelLimit": 320},
                   "title": {"anchor": "start", "fontWeight": "normal", "fontSize": 12}},
        "hconcat": [
            panel(coverage, "Coverage of the interval (95 % asked)",
                  {"field": "rounds", "type": "ordinal", "title": "rounds", "axis": {"labelAngle": 0}},
                  {"field": "share", "type": "quantitative", "title": "% that hold the true ratio",
                   "scale": {"zero": False}}, [line, point, asked]),
            panel(verdicts, "False alarms (at 0 %) and power",
                  {"field": "percent", "type": "quantitative", "title": "true slowdown, %",
                   "scale": {"domain": [0, 10]}},
                  {"field": "share", "type": "quantitative",
                   "title": "% called SLOW (at 0 %: SLOW or FAST)"}, [line, point, bars])]}


def figure(arguments):
    try:
        import vl_convert
    except ImportError:
        sys.exit("vl-convert is not here: call it as build/venv/bin/python harness/program/compare/study.py")
    coverage, verdicts = rows_of_table(pathlib.Path(arguments.table).read_text(encoding="utf-8"))
    for group in pooled(recorded(path) for path in arguments.recordings):
        verdicts += rows_of_recordings(group)
    text = json.dumps(specification(coverage, verdicts))
    pathlib.Path(arguments.file).write_text(vl_convert.vegalite_to_svg(text) + "\n", encoding="utf-8")
    print(f"{arguments.file}: {len(arguments.recordings)} recordings")
    return 0


def counts(arguments):
    """Prints the instructions of `slowed` over those of the same without further tokens."""
    program = pathlib.Path(arguments.build) / "bin/attnbench-counts"
    print("| tokens | " + " | ".join(f"+{percent} %" for percent in arguments.percents) + " |")
    print("|--:|" + "--:|" * len(arguments.percents))
    for length in arguments.lengths:
        found = []
        for percent in [0] + arguments.percents:
            call = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                    "--toggle-collect=attnbench_counted", str(program),
                    f"causal_product.float32.forward.{length}", str(percent)]
            try:
                done = subprocess.run(call, capture_output=True, text=True)
            except OSError as error:
                sys.exit(f"valgrind is not here ({error}): apt-get install valgrind")
            match = re.search(r"Collected : (\d+)", done.stderr)
            if done.returncode != 0 or not match:
                sys.exit(f"{shlex.join(call)}: {done.returncode}: {done.stderr[-600:]}")
            found.append(int(match.group(1)))
        print(f"| {length} | " + " | ".join(f"{one / found[0]:.4f}" for one in found[1:]) + " |",
              flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("synthetic")
    one.add_argument("--trials", type=int, default=5000)
    one.add_argument("--spread", type=float, default=0.01, help="of one side's logarithm in a round")
    one.add_argument("--pairs", type=int, default=9, help="cells that share the error")
    one.set_defaults(run=synthetic)
    one = commands.add_parser("record")
    one.add_argument("file", help="NAME.json.gz")
    one.add_argument("--build", default=str(SOURCE / "build/release"))
    one.add_argument("--percent", type=int, default=0)
    one.add_argument("--rounds", type=int, help=f"instead of {ROUNDS_OF_ONE_SIDE} or, with --percent, "
                     f"{ROUNDS_OF_SLOWED}")
    one.add_argument("--seconds-most", type=float, help="end after that long; fewer rounds are kept")
    one.add_argument("--load", help="a command that runs beside, such as 'stress-ng --cpu 1'")
    one.add_argument("--threads", type=int, help="of a cell; else all cores")
    one.add_argument("--least", action="store_true", help="of all rounds the least samples, for verdicts "
                     "beside other programs; with --threads 1")
    one.add_argument("--condition", help="what else the machine does, for the tables")
    one.set_defaults(run=record)
    one = commands.add_parser("blocks")
    one.add_argument("recordings", nargs="+")
    one.set_defaults(run=blocks)
    one = commands.add_parser("counts")
    one.add_argument("--build", default=str(SOURCE / "build/release"))
    one.add_argument("--percents", type=int, nargs="+", default=[5, 8, 10])
    one.add_argument("--lengths", type=int, nargs="+", default=[512, 640, 768, 1024, 1280, 1536, 2048])
    one.set_defaults(run=counts)
    one = commands.add_parser("figure")
    one.add_argument("file", help="NAME.svg")
    one.add_argument("table", help="what `synthetic` printed, or a text with it")
    one.add_argument("recordings", nargs="*")
    one.set_defaults(run=figure)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
