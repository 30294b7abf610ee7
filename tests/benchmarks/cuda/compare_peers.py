#!/usr/bin/env python3
"""Ours beside the peers: a Markdown table from Google Benchmark's JSON files.

  compare_peers.py FILE.json…

A row is a case of ours and a peer. Ratios are the peer's time over ours: above 1 ours is the faster
one. An interval is that of the medians: the widest over the repetitions of both. Cases that ended in
an error are listed with the reason. Of a file that was cut off, the rows that are whole are read.
"""

import json
import re
import statistics
import sys

OURS = "attnbench"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return json.loads(text)["benchmarks"]
    except ValueError:
        end = text.rfind("\n    }")
        if end < 0:
            return []
        return json.loads(text[:end] + "\n    }\n  ]\n}")["benchmarks"]


class Row:
    """All repetitions of one name, in seconds."""

    def __init__(self, entries):
        good = [e for e in entries if not e.get("error_occurred")]
        self.error = None if good else entries[0].get("error_message", "failed")
        if not good:
            return
        times = [e["real_time"] * SECONDS[e["time_unit"]] for e in good]
        self.seconds = statistics.median(times)
        self.low = min(e.get("low_seconds", t) for e, t in zip(good, times))
        self.high = max(e.get("high_seconds", t) for e, t in zip(good, times))
        self.flops = statistics.median(e.get("useful_flops_per_second", 0) for e in good)


def rows_of(paths):
    """{case: {program: Row}}, in the files' order."""
    entries = {}
    for entry in (entry for path in paths for entry in read(path)):
        if entry.get("run_type") == "aggregate":
            continue
        name = re.sub(r"/(iterations|manual_time|repeats|real_time).*$", "", entry["name"])
        case, _, program = name.rpartition("/")
        entries.setdefault(case, {}).setdefault(program, []).append(entry)
    return {case: {program: Row(list_) for program, list_ in programs.items()}
            for case, programs in entries.items()}


def microseconds(seconds):
    return "%.1f us" % (1e6 * seconds)


def main():
    cases = rows_of(sys.argv[1:])
    notes = []
    header = ["case", "ours", "useful rate", "peer", "its time", "peer / ours"]
    lines = [header, ["---"] * len(header)]
    for case, programs in cases.items():
        notes += [f"{case}: {name}: {row.error}" for name, row in programs.items() if row.error]
        ours = programs.pop(OURS, None)
        if ours is None or ours.error:
            notes += [f"{case}: ours not there"] if ours is None else []
            continue
        start = [case, microseconds(ours.seconds), "%.1f TFLOP/s" % (1e-12 * ours.flops)]
        ranked = sorted((row.seconds, name) for name, row in programs.items() if not row.error)
        if not ranked:
            lines.append(start + ["", "", ""])
        for _, name in ranked:
            row = programs[name]
            ratio = "%.2f (%.2f-%.2f)" % (row.seconds / ours.seconds, row.low / ours.high,
                                          row.high / ours.low)
            lines.append(start + [name, microseconds(row.seconds), ratio])
            start = ["", "", ""]
    for cells in lines:
        print("| " + " | ".join(cells) + " |")
    for note in notes:
        print("- " + note)
    return 0 if cases else 2


if __name__ == "__main__":
    sys.exit(main())
