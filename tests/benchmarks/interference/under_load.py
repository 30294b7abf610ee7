"""Measures suites on an idle machine and beside a load, and says which times were believed wrongly.

    python3 tests/benchmarks/interference/under_load.py --program build/release/bin/attnbench --out DIR

A time is believed where its cell's status is "ok". It is wrong where its median lies outside the
idle run's interval, widened by --slack. The second idle run is the control: what it misses, noise
alone can miss. Needs stress-ng; nothing else may run on the machine. Writes DIR/summary.json and a
Markdown table to standard output.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

SUITES = ["quickstart", "decode", "mqar_smoke"]


@contextlib.contextmanager
def load(workers):
    """`workers` processes that only count, each free to run on any core."""
    if workers == 0:
        yield
        return
    stress = subprocess.Popen(["stress-ng", "--cpu", str(workers), "--quiet"])
    time.sleep(2)
    try:
        yield
    finally:
        stress.terminate()
        stress.wait()
        time.sleep(2)


def measured_cells(program, arguments, folder):
    """The cells of one run, by id. A run that ends with a finding still has a result."""
    subprocess.run([program, "run", *arguments, "--now", "--no-report", "--progress", "plain",
                    "--out", folder], check=False, stdout=subprocess.DEVNULL,
                   stderr=open(f"{folder}.log", "w", encoding="utf-8"))
    result = json.loads((pathlib.Path(folder) / "result.json").read_text(encoding="utf-8"))
    return {cell["id"]: cell for cell in result["attnbench"]["cells"]}


def timing_of(cell):
    return cell.get("timing", {}).get(cell.get("primary", ""))


def judge(idle, loaded, slack):
    """Counts of the loaded run's timed cells, and the believed ones outside their idle interval."""
    counts = {"cells": 0, "ok": 0, "disturbed": 0, "other": 0, "outside": []}
    for cell_id, before in idle.items():
        reference = timing_of(before)
        if before["status"] != "ok" or reference is None:
            continue
        cell = loaded[cell_id]
        counts["cells"] += 1
        counts[cell["status"] if cell["status"] in ("ok", "disturbed") else "other"] += 1
        if cell["status"] != "ok":
            continue
        median = timing_of(cell)["median_seconds"]
        low = reference["low_seconds"] / (1 + slack)
        high = reference["high_seconds"] * (1 + slack)
        if not low <= median <= high:
            counts["outside"].append({
                "cell": cell["label"], "settings": cell["settings"].get("length"),
                "task": cell["task_label"], "idle": reference["median_seconds"],
                "idle_interval": [reference["low_seconds"], reference["high_seconds"]],
                "ratio": median / reference["median_seconds"]})
    return counts


def same_against_same(program, arguments, folder, runs):
    """Verdicts of `runs` comparisons of one implementation under two names."""
    verdicts = []
    for run in range(runs):
        answer = subprocess.run([program, "ab", *arguments, "--json", "--now", "--no-ceilings",
                                 "--out", f"{folder}/ab-{run}"],
                                check=False, capture_output=True, text=True)
        try:
            verdicts.extend(json.loads(answer.stdout)["pairs"])
        except (json.JSONDecodeError, KeyError):
            sys.exit(f"ab printed no verdicts:\n{answer.stdout}\n{answer.stderr}")
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--slack", type=float, default=0.0,
                        help="share by which the idle interval is widened (default 0)")
    parser.add_argument("--suites", nargs="*", default=SUITES)
    parser.add_argument("--ab", type=int, default=0, help="comparisons of one mechanism with itself, per load")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    root = pathlib.Path(__file__).resolve().parents[3]
    phases = [("idle", 0), ("idle again", 0), ("one core busy", 1), ("all cores busy", os.cpu_count())]
    cells = {}
    summary = {"suites": {}, "ab": {}}
    for phase, workers in phases:
        with load(workers):
            for suite in arguments.suites:
                folder = f"{arguments.out}/{suite}-{phase.replace(' ', '-')}"
                cells[suite, phase] = measured_cells(
                    arguments.program,
                    [str(root / "suites" / f"{suite}.json"), "--profile", arguments.profile], folder)
            if phase != "idle again" and arguments.ab:
                folder = f"{arguments.out}/ab-{phase.replace(' ', '-')}"
                summary["ab"][phase] = same_against_same(
                    arguments.program, ["flash", "softmax/tiled", "--length", "512", "--rounds", "8"],
                    folder, arguments.ab if workers else min(5, arguments.ab))
    print("| suite | machine | timed cells | ok | disturbed | other | ok but outside the idle interval |")
    print("|---|---|---|---|---|---|---|")
    for suite in arguments.suites:
        for phase, _ in phases[1:]:
            counts = judge(cells[suite, "idle"], cells[suite, phase], arguments.slack)
            summary["suites"].setdefault(suite, {})[phase] = counts
            outside = ", ".join(f"{one['task']} {one['cell']} {one['settings']}: {one['ratio']:.3f}"
                                for one in counts["outside"]) or "none"
            print(f"| {suite} | {phase} | {counts['cells']} | {counts['ok']} | {counts['disturbed']} | "
                  f"{counts['other']} | {outside} |")
    for phase, verdicts in summary["ab"].items():
        kinds = {}
        for verdict in verdicts:
            kinds[verdict["verdict"]] = kinds.get(verdict["verdict"], 0) + 1
        print(f"\nA mechanism against itself, {phase}: {kinds}")
    pathlib.Path(arguments.out, "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
