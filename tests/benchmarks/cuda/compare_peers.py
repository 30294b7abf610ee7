#!/usr/bin/env python3
"""Ours beside the peers: a table from Google Benchmark's JSON files, and their merging.

  compare_peers.py OURS.json PEERS.json… [--filter REGEX] [--markdown] [--all]
  compare_peers.py --merge OUT.json PART.json…

A row is a case. Ratios are the peer's time over ours: above 1 ours is the faster one. An interval
is that of the medians: the widest over the repetitions of both. Without --all the best peer of a
case is shown alone. Cases that one side lacks, or that ended in an error, are listed with the reason.
"""

import argparse
import json
import re
import statistics
import sys

OURS = "attnbench"
# Whose peers stand beside a family that nobody else computes: the closest kin, at the same sizes.
KIN = {"prefix_pool": "causal_product_plain"}


def read(path):
    """A file of Google Benchmark's; of one that was cut off, the rows that are whole."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        document = json.loads(text)
    except ValueError:
        end = text.rfind("\n    }")
        if end < 0:
            raise ValueError(f"{path}: no whole row in it") from None
        document = json.loads(text[:end] + "\n    }\n  ]\n}")
        print(f"{path}: cut off, {len(document['benchmarks'])} rows read", file=sys.stderr)
    if not isinstance(document.get("benchmarks"), list):
        raise ValueError(f"{path}: no list of benchmarks")
    return document


class Row:
    """All repetitions of one name, in seconds."""

    def __init__(self, entries):
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
        good = [e for e in entries if not e.get("error_occurred")]
        self.error = None if good else entries[0].get("error_message", "failed")
        if not good:
            return
        times = [e["real_time"] * scale[e.get("time_unit", "ns")] for e in good]
        self.seconds = statistics.median(times)
        self.low = min(e.get("low_seconds", t) for e, t in zip(good, times))
        self.high = max(e.get("high_seconds", t) for e, t in zip(good, times))
        shares = [e["share_of_floor"] for e in good if "share_of_floor" in e]
        rates = [e["useful_flops_per_second"] for e in good if "useful_flops_per_second" in e]
        bandwidths = [e["minimal_bytes_per_second"] for e in good if "minimal_bytes_per_second" in e]
        self.share = statistics.median(shares) if shares else None
        self.flops = statistics.median(rates) if rates else None
        self.bytes = statistics.median(bandwidths) if bandwidths else None


def rows_of(document):
    """{case: {program: Row}}, in the file's order."""
    entries = {}
    for entry in document["benchmarks"]:
        if entry.get("run_type") == "aggregate":
            continue
        name = re.sub(r"/(iterations|manual_time|repeats|real_time).*$", "", entry["name"])
        case, _, program = name.rpartition("/")
        entries.setdefault(case, {}).setdefault(program, []).append(entry)
    return {case: {program: Row(list_) for program, list_ in programs.items()}
            for case, programs in entries.items()}


def kin_of(case):
    family, slash, rest = case.partition("/")
    for ours, kin in KIN.items():
        if family.startswith(ours + "_"):
            return kin + family[len(ours):] + slash + rest
    return None


def ratio_text(ours, peer):
    return "%.2f (%.2f-%.2f)" % (peer.seconds / ours.seconds, peer.low / ours.high,
                                 peer.high / ours.low)


def time_text(seconds):
    return "%.1f us" % (1e6 * seconds) if seconds < 1e-3 else "%.3f ms" % (1e3 * seconds)


def rate_text(row):
    if row.flops is None and row.bytes is None:
        return ""
    parts = []
    if row.flops:
        parts.append("%.0f TFLOP/s" % (1e-12 * row.flops))
    if row.bytes:
        parts.append("%.2f TB/s" % (1e-12 * row.bytes))
    return ", ".join(parts)


def table(ours, peers, pattern, everything):
    """(header, lines, notes)."""
    lines, notes = [], []
    for case, programs in ours.items():
        if not re.search(pattern, case):
            continue
        row = next((r for name, r in programs.items() if name in (OURS, "cublas")), None)
        if row is None or row.error:
            notes.append(f"{case}: ours: {row.error if row else 'not there'}")
            continue
        beside = dict(peers.get(case, {}))
        kin = kin_of(case)
        if kin:
            beside.update({"kin " + name: r for name, r in peers.get(kin, {}).items()})
        notes += [f"{case}: {name}: {r.error}" for name, r in beside.items() if r.error]
        ranked = sorted((r.seconds, name, r) for name, r in beside.items() if not r.error)
        share = "%.0f %%" % (100 * row.share) if row.share is not None else ""
        start = [case, time_text(row.seconds), rate_text(row), share]
        if not ranked:
            lines.append(start + ["", "", ""])
        for _, name, peer in ranked if everything else ranked[:1]:
            lines.append(start + [name, time_text(peer.seconds), ratio_text(row, peer)])
            start = ["", "", "", ""]
    for case, programs in peers.items():
        if case not in ours and re.search(pattern, case):
            for name, row in programs.items():
                text = row.error or time_text(row.seconds)
                notes.append(f"{case}: ours not there; {name}: {text}")
    return ["case", "ours", "useful rate", "of floor", "peer", "its time", "peer / ours"], lines, notes


def show(header, lines, markdown):
    if markdown:
        for cells in [header, ["---"] * len(header)] + lines:
            print("| " + " | ".join(cells) + " |")
        return
    widths = [max(len(cells[i]) for cells in [header] + lines) for i in range(len(header))]
    for cells in [header] + lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())


def merge(out, parts):
    documents = []
    for part in parts:
        try:
            documents.append(read(part))
        except (OSError, ValueError) as error:
            print("left out:", error, file=sys.stderr)
    if not documents:
        raise ValueError("nothing to merge")
    merged = {"context": documents[0]["context"], "benchmarks": []}
    for document in documents:
        merged["benchmarks"] += document["benchmarks"]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(merged, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--merge", metavar="OUT")
    parser.add_argument("--filter", default="")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    try:
        if options.merge:
            merge(options.merge, options.files)
            return 0
        ours = rows_of(read(options.files[0]))
        peers = {}
        for path in options.files[1:]:
            for case, programs in rows_of(read(path)).items():
                peers.setdefault(case, {}).update(programs)
    except (OSError, ValueError, KeyError) as error:
        print("compare_peers.py:", error, file=sys.stderr)
        return 2
    header, lines, notes = table(ours, peers, options.filter, options.all)
    if not lines and not notes:
        print("compare_peers.py: nothing matches", file=sys.stderr)
        return 2
    show(header, lines, options.markdown)
    for note in notes:
        print(("- " if options.markdown else "note: ") + note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
