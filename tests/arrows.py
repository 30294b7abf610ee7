#!/usr/bin/env python3
"""Checks the #include lines of all production files against the arrows between folders.

    harness → reports → core;  harness/worker → tasks → attention → core

No folder points back. Prints every include that does, and ends with 1 if there is one.

    arrows.py [ROOT]      ROOT: the root of the sources; the parent of this file's folder by default
"""

import pathlib
import re
import sys

FOLDERS = ("core", "reports", "attention", "tasks", "harness")
MAY_INCLUDE = {
    "core": {"core"},
    "reports": {"reports", "core"},
    "attention": {"attention", "core"},
    "tasks": {"tasks", "attention", "core"},
    # Published data, without tensors: the program itself prepares them.
    "tasks/data": {"tasks/data", "core"},
    "tasks/data/lm": {"tasks/data/lm", "tasks/data", "core"},
    "tasks/data/lra": {"tasks/data/lra", "tasks/data", "core"},
    "harness": {"harness", "reports", "core"},
    "harness/program/commands": {"harness", "reports", "core", "tasks/data", "tasks/data/lra"},
    "harness/worker": {"harness", "tasks", "attention", "core"},
    # What is measured of a card is measured by kernels of ours.
    "harness/measure": {"harness", "core", "attention/kernels/cuda"},
}
# Files written for users, who include attnbench's headers from anywhere.
NOT_OURS = ("harness/program/templates/",)

# Folders of tasks that the program itself links.
WITHOUT_TENSORS = ("tasks/data/", "tasks/data/lm/", "tasks/data/lra/")

SOURCES = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# Headers with all of LibTorch, which take 15 s to compile.
ALL_OF_TORCH = re.compile(r"^torch/(torch|all|extension)\.h$")
# Plain arithmetic: no tensor is declared in it.
TORCH_IN_HEADERS = {"ATen/core/PhiloxRNGEngine.h"}
CUDA = re.compile(r"^(cuda\w*|cublas\w*|curand\w*|nvrtc|nvml|mma|cooperative_groups)(\.h|/)|^cu(b|te|tlass|da)/")


def room(path):
    """The longest key of MAY_INCLUDE that `path` is in."""
    return max((key for key in MAY_INCLUDE if path.startswith(key + "/")), key=len)


def fault(path, included):
    """Why the file `path` must not include `included`, or None. Both are relative to the root."""
    top = included.split("/")[0]
    if top in FOLDERS and "/" in included:
        allowed = MAY_INCLUDE[room(path)]
        if not any(included.startswith(folder + "/") for folder in allowed):
            return f"{room(path)} may include {', '.join(sorted(allowed))}"
    if TORCH.match(included):
        if ALL_OF_TORCH.match(included):
            return "too large: include attention/torch/torch.hpp"
        if top_of(path) not in ("attention", "tasks") or path.startswith(WITHOUT_TENSORS):
            return "only attention and tasks include LibTorch; include attention/torch/torch.hpp"
        in_header = path.endswith(".hpp") and not path.startswith("attention/torch/")
        if in_header and included not in TORCH_IN_HEADERS:
            return "headers include attention/torch/torch.hpp instead"
    if CUDA.match(included) and not path.endswith((".cu", ".cuh")):
        return "CUDA headers belong into *.cu and *.cuh"
    return None


def top_of(path):
    return path.split("/")[0]


def faults_of(path, text):
    """["PATH:LINE: includes HEADER: REASON", …] of one file."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        reason = match and fault(path, match.group(1))
        if reason:
            found.append(f"{path}:{number}: includes {match.group(1)}: {reason}")
    return found


def check(root):
    """(number of files read, faults) of the tree at `root`."""
    faults, count = [], 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SOURCES or path.startswith(NOT_OURS):
                continue
            count += 1
            faults += faults_of(path, file.read_text(encoding="utf-8"))
    return count, faults


def self_test():
    """Bad arrows must be seen and good ones accepted."""
    bad = [
        ("core/a.hpp", "harness/program/suite/suite.hpp"),
        ("core/a.hpp", "attention/mechanism.hpp"),
        ("core/a.cpp", "torch/csrc/autograd/autograd.h"),
        ("reports/a.cpp", "harness/program/run/plan/planning.hpp"),
        ("attention/a.cpp", "tasks/task.hpp"),
        ("attention/a.hpp", "ATen/ATen.h"),
        ("attention/torch/torch.hpp", "torch/torch.h"),
        ("tasks/a.cpp", "harness/worker/child.hpp"),
        ("tasks/a.cpp", "cuda_runtime.h"),
        ("harness/program/suite/a.cpp", "tasks/task.hpp"),
        ("harness/program/suite/a.cpp", "tasks/data/cache.hpp"),
        ("harness/program/commands/a.cpp", "tasks/task.hpp"),
        ("tasks/data/lra/a.cpp", "tasks/task.hpp"),
        ("tasks/data/lra/a.cpp", "torch/types.h"),
        ("harness/program/suite/a.cpp", "attention/kernels/cuda/device.hpp"),
        ("harness/measure/a.cpp", "attention/mechanism.hpp"),
        ("harness/measure/device_cuda.cpp", "cublas_v2.h"),
        ("harness/worker/a.cpp", "torch/csrc/jit/api/module.h"),
    ]
    good = [
        ("core/a.hpp", "core/option.hpp"),
        ("reports/a.cpp", "core/failure.hpp"),
        ("attention/a.cpp", "attention/torch/torch.hpp"),
        ("attention/torch/torch.hpp", "ATen/ATen.h"),
        ("attention/kernels/cuda/a.cu", "cuda_runtime.h"),
        ("tasks/training/a.cpp", "torch/optim/adamw.h"),
        ("harness/program/commands/a.cpp", "reports/report.hpp"),
        ("harness/program/commands/a.cpp", "tasks/data/cache.hpp"),
        ("tasks/lra/a.cpp", "tasks/data/cache.hpp"),
        ("harness/worker/a.cpp", "tasks/task.hpp"),
        ("harness/measure/a.hpp", "attention/kernels/cuda/device.hpp"),
        ("harness/program/main.cpp", "nlohmann/json.hpp"),
        ("harness/program/main.cpp", "core.h"),
    ]
    wrong = [f"not seen: {path} includes {header}" for path, header in bad
             if not faults_of(path, f'#pragma once\n#include "{header}"\n')]
    wrong += [f"refused: {path} includes {header}" for path, header in good
              if faults_of(path, f"#include <{header}>\n")]
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    wrong = self_test()
    count, faults = check(root)
    if count < 100:
        wrong.append(f"{root}: {count} source files; expected the sources of attnbench")
    for line in wrong + faults:
        print(line)
    print(f"{count} files, {len(faults)} includes that point back")
    sys.exit(1 if wrong or faults else 0)


if __name__ == "__main__":
    main()
