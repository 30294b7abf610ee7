#!/usr/bin/env python3
"""Checks how the production files hang together:

- `#include` lines follow the arrows between folders, of which none points back (MAY_INCLUDE);
- no two folders include each other, but those of BOTH_WAYS and a folder and what is inside it;
- a namespace is the folder: its words after attnbench are folders on the way to the file, and the same
  for all files of a folder; one more may be the file's name, or a word of it;
- no two public types have one name, but those that are never written without their namespace;
- the types that docs/glossary.md names are in the headers that it names.

    harness/program → reports, harness/measure, tasks/data → core
    harness/worker → tasks → attention → core, and harness/measure

Prints everything that does not, and ends with 1 if there is any.

    arrows.py [ROOT]      ROOT: the root of the sources; the parent of this file's folder by default
"""

import pathlib
import re
import sys

FOLDERS = ("core", "reports", "attention", "tasks", "harness")
# The longest key that a file is in says what it may include.
MAY_INCLUDE = {
    "core": {"core"},
    "reports": {"reports", "core"},
    "attention": {"attention", "core"},
    # Torch-free: the kernels, and the card that they run on.
    "attention/kernels": {"attention/kernels", "core"},
    "tasks": {"tasks", "attention", "core"},
    # Torch-free: the program itself prepares published data.
    "tasks/data": {"tasks/data", "core"},
    "harness/measure": {"harness/measure", "attention/kernels", "core"},
    "harness/program": {"harness/program", "harness/measure", "reports", "tasks/data", "core"},
    "harness/worker": {"harness/worker", "harness/measure", "tasks", "attention", "core"},
}
TORCH_FREE = ("core", "reports", "attention/kernels", "tasks/data", "harness")

# Folders that include each other, and why.
BOTH_WAYS = {
    ("attention/algorithms/recurrence", "attention/algorithms/tokens"):
        "a short recurrence is one of the ways to mix tokens, and kernels of both are called alike",
    ("attention/kernels/cpu/product", "attention/kernels/cpu/recurrent"):
        "the products of a block are bounded by what a recurrence holds",
    ("tasks/call", "tasks/training"):
        "a call may be a model's, and a training's cost is that of its layers' calls",
}

# Files written for users, who include attnbench's headers from anywhere.
NOT_OURS = ("harness/program/templates/",)

SOURCES = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# Headers with all of LibTorch, which take 15 s to compile.
ALL_OF_TORCH = re.compile(r"^torch/(torch|all|extension)\.h$")
# Plain arithmetic: no tensor is declared in it.
TORCH_IN_HEADERS = {"ATen/core/PhiloxRNGEngine.h"}
CUDA = re.compile(r"^(cuda\w*|cublas\w*|curand\w*|nvrtc|nvml|mma|cooperative_groups)(\.h|/)|^cu(b|te|tlass|da)/")

# Namespaces whose types are written with them everywhere outside: a name may occur elsewhere, too.
QUALIFIED = {
    "protocol": "messages are called after what they carry",
    "kernels": "what a kernel takes is called as in the mechanism that calls it",
    "kernels::cuda": "the same on a card",
    "causal_product": "each family of algorithms calls its parts alike: Call, Form, Memory, Recipe",
    "feature_mix": "likewise",
    "fused_call": "likewise",
    "gated_recurrence": "likewise",
    "kernel_call": "likewise",
    "gated_state": "likewise",
    "lavo": "likewise",
    "mixture": "likewise",
    "prefix_pool": "likewise",
    "selective_scan": "likewise",
    "slots": "likewise",
}
ANY = {"Json"}  # an alias of nlohmann::json, wherever it is
OPEN = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{$")
CLOSE = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|enum class|enum)\s+(?:\w+\([^)]*\)\s+)?(\w+)(?: final)?\s*(?::(?!:)[^;]*)?(?:\{.*)?$"
                  r"|^using (\w+) =")


def room(path):
    """The longest key of MAY_INCLUDE that `path` is in; None of a new folder."""
    return max((key for key in MAY_INCLUDE if path.startswith(key + "/")), key=len, default=None)


def fault(path, included):
    """Why the file `path` must not include `included`, or None. Both are relative to the root."""
    own = room(path)
    if own is None:
        return f"no arrow is known of this folder; there are {', '.join(MAY_INCLUDE)}"
    if included.split("/")[0] in FOLDERS and "/" in included:
        allowed = MAY_INCLUDE[own]
        # What may include a folder may include all in it that has no key of its own, and those whose
        # key is named; attention's kernels are part of attention.
        if room(included) not in allowed and included.split("/")[0] not in allowed:
            return f"{own} may include {', '.join(sorted(allowed))}"
    if TORCH.match(included):
        if ALL_OF_TORCH.match(included):
            return "too large: include attention/torch/torch.hpp"
        if path.startswith(tuple(folder + "/" for folder in TORCH_FREE)):
            return f"{own} includes no LibTorch but attention/torch/torch.hpp, in the worker"
        in_header = path.endswith(".hpp") and not path.startswith("attention/torch/")
        if in_header and included not in TORCH_IN_HEADERS:
            return "headers include attention/torch/torch.hpp instead"
    if CUDA.match(included) and not path.endswith((".cu", ".cuh")):
        return "CUDA headers belong into *.cu and *.cuh"
    return None


def include_faults(path, text):
    """["PATH:LINE: includes HEADER: REASON", …] of one file."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        reason = match and fault(path, match.group(1))
        if reason:
            found.append(f"{path}:{number}: includes {match.group(1)}: {reason}")
    return found


def pair_faults(files):
    """Of {path: text}: pairs of folders that include each other."""
    arrows = {}
    for path, text in files.items():
        folder = path.rsplit("/", 1)[0]
        for line in text.splitlines():
            match = INCLUDE.match(line)
            if match and match.group(1).split("/")[0] in FOLDERS and "/" in match.group(1):
                to = match.group(1).rsplit("/", 1)[0]
                if to != folder and not (to + "/").startswith(folder + "/") and \
                        not (folder + "/").startswith(to + "/"):
                    arrows.setdefault((folder, to), path)
    return [f"{one} and {other} include each other: {arrows[one, other]}, {arrows[other, one]}"
            for one, other in sorted(arrows) if one < other and (other, one) in arrows
            and (one, other) not in BOTH_WAYS]


def declared(text):
    """(namespace, type or None) of each line that opens a namespace of ours or begins a type in one."""
    inside, begins = [], []
    for number, line in enumerate(text.splitlines()):
        opened = OPEN.match(line)
        if opened:
            inside.append(opened.group(1))
            begins.append(number)
            if inside[0].startswith("attnbench") and opened.group(1):
                yield "::".join(inside)[len("attnbench"):].lstrip(":"), None
        # clang-format ends all with a comment but those of one line.
        elif inside and (CLOSE.match(line) or line == "}" and begins[-1] == number - 2):
            inside.pop()
            begins.pop()
        elif inside and inside[0].startswith("attnbench") and all(inside):
            name = TYPE.match(line)
            if name:
                yield "::".join(inside)[len("attnbench"):].lstrip(":"), name.group(1) or name.group(2)


def namespace_of_folder(path, namespace):
    """The part of `namespace` that the file's folder gives it; None where it names something else."""
    folders, words = path.split("/")[:-1], namespace.split("::") if namespace else []
    stem = path.split("/")[-1].split(".")[0]
    for last in ("detail", stem, *stem.split("_")):
        if words and words[-1] == last and last not in folders:
            words.pop()
    rest = iter(folders)
    return "::".join(words) if all(word in rest for word in words) else None


def namespace_faults(files):
    """Of {path: text}: namespaces that are not their folder, or not one for all files of a folder."""
    found, folders = [], {}
    for path, text in files.items():
        for namespace, kind in declared(text):
            of_folder = namespace_of_folder(path, namespace)
            folder = path.rsplit("/", 1)[0]
            if kind is None and of_folder is None:
                found.append(f"{path}: namespace attnbench::{namespace} names no folder on the way to it")
            elif kind is not None and of_folder is not None:
                folders.setdefault(folder, {}).setdefault(of_folder, path)
    found += [f"{folder}: two namespaces: " + " and ".join(f"attnbench::{name} ({path})"
                                                          for name, path in sorted(names.items()))
              for folder, names in sorted(folders.items()) if len(names) > 1]
    return found


def type_faults(files):
    """Of {path: text}: public types of one name."""
    places = {}
    for path, text in files.items():
        if path.endswith((".hpp", ".cuh")):
            for namespace, name in declared(text):
                if name and name not in ANY and namespace not in QUALIFIED:
                    places.setdefault(name, {}).setdefault(namespace, path)
    return [f"{name} is the name of several types: " +
            ", ".join(f"attnbench::{namespace} ({path})" for namespace, path in sorted(found.items()))
            for name, found in sorted(places.items()) if len(found) > 1]


def glossary_faults(glossary, files):
    """Of the glossary's text: types that are not in the header named beside them."""
    rows = re.findall(r"`(\w+)` in `([\w./]+)` \|$", glossary, re.MULTILINE)
    if len(rows) < len(re.findall(r"^\| ", glossary, re.MULTILINE)) - 1:
        return ["docs/glossary.md: a line ends without `TYPE` in `HEADER`"]
    return [f"docs/glossary.md: there is no type {name} in {path}" for name, path in rows
            if not any(kind == name for _, kind in declared(files.get(path, "")))]


def read(root):
    """{path: text} of the production files of the tree at `root`."""
    return {path: file.read_text(encoding="utf-8")
            for folder in FOLDERS for file in sorted((root / folder).rglob("*"))
            for path in [file.relative_to(root).as_posix()]
            if file.suffix in SOURCES and not path.startswith(NOT_OURS)}


def self_test():
    """Bad arrows, namespaces and names must be seen, and good ones accepted."""
    bad = [
        ("core/a.hpp", "harness/program/suite/suite.hpp"),
        ("core/a.hpp", "attention/mechanism.hpp"),
        ("core/process/a.cpp", "harness/program/run/client/worker_client.hpp"),
        ("core/a.cpp", "torch/csrc/autograd/autograd.h"),
        ("reports/a.cpp", "harness/program/run/plan/planning.hpp"),
        ("reports/a.cpp", "tasks/data/cache.hpp"),
        ("attention/a.cpp", "tasks/task.hpp"),
        ("attention/a.cpp", "harness/measure/machine.hpp"),
        ("attention/a.hpp", "ATen/ATen.h"),
        ("attention/torch/torch.hpp", "torch/torch.h"),
        ("attention/kernels/a.hpp", "attention/mechanism.hpp"),
        ("attention/kernels/cpu/a.cpp", "ATen/ATen.h"),
        ("tasks/a.cpp", "harness/worker/child.hpp"),
        ("tasks/a.cpp", "cuda_runtime.h"),
        ("tasks/data/lra/a.cpp", "tasks/task.hpp"),
        ("tasks/data/lra/a.cpp", "attention/kernels/rows.hpp"),
        ("tasks/data/lra/a.cpp", "torch/types.h"),
        ("harness/program/suite/a.cpp", "tasks/task.hpp"),
        ("harness/program/suite/a.cpp", "attention/kernels/cuda/device.hpp"),
        ("harness/program/commands/a.cpp", "harness/worker/child.hpp"),
        ("harness/worker/a.cpp", "harness/program/run/folder/journal.hpp"),
        ("harness/worker/a.cpp", "reports/report.hpp"),
        ("harness/measure/a.cpp", "attention/mechanism.hpp"),
        ("harness/measure/a.cpp", "harness/program/suite/suite.hpp"),
        ("harness/measure/device_cuda.cpp", "cublas_v2.h"),
        ("harness/worker/a.cpp", "torch/csrc/jit/api/module.h"),
        ("harness/third/a.cpp", "core/option.hpp"),
    ]
    good = [
        ("core/a.hpp", "core/option.hpp"),
        ("reports/a.cpp", "core/failure.hpp"),
        ("attention/a.cpp", "attention/torch/torch.hpp"),
        ("attention/a.cpp", "attention/kernels/rows.hpp"),
        ("attention/torch/torch.hpp", "ATen/ATen.h"),
        ("attention/kernels/cuda/a.cu", "cuda_runtime.h"),
        ("tasks/training/a.cpp", "torch/optim/adamw.h"),
        ("tasks/lra/a.cpp", "tasks/data/cache.hpp"),
        ("harness/program/commands/a.cpp", "reports/report.hpp"),
        ("harness/program/commands/a.cpp", "tasks/data/cache.hpp"),
        ("harness/worker/a.cpp", "tasks/task.hpp"),
        ("harness/worker/a.cpp", "harness/measure/machine.hpp"),
        ("harness/measure/a.hpp", "attention/kernels/cuda/device.hpp"),
        ("harness/program/main.cpp", "nlohmann/json.hpp"),
        ("harness/program/main.cpp", "core.h"),
    ]
    wrong = [f"not seen: {path} includes {header}" for path, header in bad
             if not include_faults(path, f'#pragma once\n#include "{header}"\n')]
    wrong += [f"refused: {path} includes {header}" for path, header in good
              if include_faults(path, f"#include <{header}>\n")]

    both = {"core/text/a.hpp": '#include "core/arrays/b.hpp"\n', "core/arrays/b.hpp": '#include "core/text/a.hpp"\n'}
    if len(pair_faults(both)) != 1 or pair_faults({**both, "core/arrays/b.hpp": '#include "core/option.hpp"\n'}):
        wrong.append("folders that include each other are not told apart from others")

    def spaces(**files):
        return namespace_faults({path.replace("__", "/") + ".hpp": "".join(
            f"namespace {space} {{\nstruct S {{\n}};\n}}  // namespace\n" for space in found.split())
            for path, found in files.items()})
    for known, files in ((True, {"core__text__a": "attnbench::result"}),
                         (True, {"core__a": "attnbench", "core__b": "attnbench::run"}),
                         (True, {"tasks__data__a": "attnbench::tasks", "tasks__data__b": "attnbench::tasks::data"}),
                         (True, {"tasks__data__a": "attnbench::data::tasks"}),
                         (False, {"core__text__a": "attnbench::text", "core__protocol": "attnbench::protocol"}),
                         (False, {"harness__program__run__plan__a": "attnbench::run"})):
        if bool(spaces(**files)) != known:
            wrong.append(f"namespaces: {files} are {'not seen' if known else 'refused'}")
    same = {"core/a.hpp": "namespace attnbench {\nstruct Cell {\n};\n}  // namespace attnbench\n",
            "tasks/a.hpp": "namespace attnbench::tasks {\nclass Cell final : Base {\n};\n}  // namespace attnbench::tasks\n"}
    if len(type_faults(same)) != 1 or type_faults({"core/a.hpp": same["core/a.hpp"]}):
        wrong.append("types of one name are not told apart from others")
    table = "| word | meaning | in code |\n|---|---|---|\n| cell | a point | `Cell` in `core/a.hpp` |\n"
    if glossary_faults(table, same) or len(glossary_faults(table.replace("`Cell`", "`Point`"), same)) != 1 or \
            not glossary_faults(table + "| record | of a cell | |\n", same):
        wrong.append("the glossary's types are not looked for")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    wrong = self_test()
    files = read(root)
    if len(files) < 100:
        wrong.append(f"{root}: {len(files)} source files; expected the sources of attnbench")
    back = [one for path, text in files.items() for one in include_faults(path, text)]
    back += pair_faults(files)
    spaces, types = namespace_faults(files), type_faults(files)
    words = glossary_faults((root / "docs/glossary.md").read_text(encoding="utf-8"), files)
    for line in wrong + back + spaces + types + words:
        print(line)
    print(f"{len(files)} files, {len(back)} includes that point back, {len(spaces)} namespaces that are no "
          f"folder, {len(types)} names of several types")
    sys.exit(1 if wrong or back or spaces or types or words else 0)


if __name__ == "__main__":
    main()
