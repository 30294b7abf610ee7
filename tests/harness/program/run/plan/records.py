#!/usr/bin/env python3
"""Keeps of runs what tests/harness/program/run/plan/pace.cpp predicts from: work and wall time of each cell.

    records.py RUN…      RUN: the folder of a complete run of an otherwise idle machine; writes
                         records/SUITE[_PROFILE].json
"""

import collections
import json
import pathlib
import sys

KEPT = pathlib.Path(__file__).resolve().parent / "records"
WORK = ("executed_flops", "model_flops", "minimal_bytes")


def calls_of(cell):
    """Of a generation, whose steps cost what one does: its context is much longer than they are."""
    steps = cell["settings"].get("steps", 1) if cell["task"] == "decode" else 1
    if steps == 1:
        return {}
    return {"calls": steps, "calls_cost": {name: steps * cell["cost"][name]
                                           for name in WORK if name in cell["cost"]}}


def record_of(run):
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))["attnbench"]
    seconds = collections.defaultdict(list)
    measure = {}
    with open(run / "journal.jsonl", encoding="utf-8") as journal:
        for line in map(json.loads, journal):
            if line["type"] == "header":
                measure = line["measure"]
            elif line["type"] == "record" and "wall_seconds" in line:
                seconds[line["cell"]].append(line["wall_seconds"])
    cells = [{"task": cell["task"], "mechanism": cell["mechanism"], "device": cell["device"],
              "implementation": cell["chosen"]["implementation"], "once": "training" in cell,
              "cost": {name: cell["cost"][name] for name in WORK if name in cell["cost"]},
              **calls_of(cell),
              "rounds": len(seconds[cell["id"]]), "seconds": round(sum(seconds[cell["id"]]), 3)}
             for cell in result["cells"] if seconds[cell["id"]] and "chosen" in cell]
    ceilings = result["ceilings"]["cpu"]
    return {"suite": result["suite"]["name"], "profile": result["suite"].get("profile", ""),
            "cpu": result["machine"]["cpu_model"], "threads": result["run"]["threads"],
            "wall_seconds": result["run"]["wall_seconds"], "measure": measure,
            "ceilings": {name: ceilings[name] for name in ("gemm_float32_flops_per_second",
                                                           "bandwidth_dram_bytes_per_second")},
            "cells": cells}


def main():
    KEPT.mkdir(exist_ok=True)
    for run in map(pathlib.Path, sys.argv[1:]):
        record = record_of(run)
        name = "_".join(filter(None, (record["suite"], record["profile"])))
        cells = ",\n  ".join(json.dumps(cell) for cell in record.pop("cells"))
        head = json.dumps(record)[:-1]
        (KEPT / f"{name}.json").write_text(f'{head},\n "cells": [\n  {cells}]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
