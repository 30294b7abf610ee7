#!/usr/bin/env python3
"""The gate on what the device code takes: no kernel may spill, unless it is listed with a reason.

  resources.py --allowed FILE --out cuda_resources.txt OBJECT…

Reads what ptxas said of every kernel when it was compiled (OBJECT.ptxas, see cmake/keep_ptxas.sh),
writes it as a table, a line a kernel and architecture, and fails where a kernel spills registers or
keeps arrays in local memory (a stack frame), which costs more than any other mistake; and where
ptxas gives advice. --allowed lists the exceptions for stack and spills, a line each:

  REGEX-OF-NAME  ARCHITECTURE-OR-*  STACK-BYTES  SPILL-BYTES  why this kernel may

An exception that no kernel needs fails too: it would hide the next mistake. Where not all of its
architectures were compiled (* is all of them), nothing tells whether it is needed, which is said and
no failure. Exit code: 0 all as it should be, 1 a kernel takes too much, 2 nothing to read.
"""

import argparse
import pathlib
import re
import subprocess
import sys


# Of a build for all cards.
ALL_ARCHITECTURES = {"sm_80", "sm_90"}


class Kernel:
    def __init__(self, symbol, architecture):
        self.symbol, self.architecture, self.name = symbol, architecture, symbol
        self.registers = self.stack = self.stores = self.loads = self.shared = 0
        self.complete = False


def kernels_of(text):
    """The kernels of one object. ptxas names the kernel, then its stack and spills, then the rest."""
    kernels, current = [], None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            current = Kernel(*match.groups())
            kernels.append(current)
        elif match := re.search(
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            # Functions that were not inlined are reported too: their spills count for the kernel.
            if current:
                stack, stores, loads = map(int, match.groups())
                current.stack = max(current.stack, stack)
                current.stores += stores
                current.loads += loads
        elif match := re.search(r"Used (\d+) registers", line):
            if current:
                current.registers = int(match.group(1))
                shared = re.search(r"(\d+) bytes smem", line)
                current.shared = int(shared.group(1)) if shared else 0
                current.complete = True
    return kernels


def demangle(kernels):
    try:
        names = subprocess.run(["c++filt"], input="\n".join(k.symbol for k in kernels), text=True,
                               capture_output=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return
    if len(names) != len(kernels):
        return
    for kernel, name in zip(kernels, names):
        name = name.replace("(anonymous namespace)::", "").replace("attnbench::kernels::", "")
        kernel.name = name[:name.index("(")] if "(" in name and "<(" not in name else name
        kernel.name = re.sub(r"^void ", "", kernel.name)


class Allowance:
    def __init__(self, line):
        pattern, self.architecture, stack, spills, self.why = line.split(None, 4)
        self.pattern, self.stack, self.spills = re.compile(pattern), int(stack), int(spills)
        self.line, self.used = line, False

    def covers(self, kernel):
        return (self.pattern.search(kernel.name) and self.architecture in ("*", kernel.architecture)
                and kernel.stack <= self.stack and max(kernel.stores, kernel.loads) <= self.spills)

    def can_be_judged_by(self, compiled):
        """Whether architectures that were compiled could show that it is needed: all of its own."""
        return (ALL_ARCHITECTURES if self.architecture == "*" else {self.architecture}) <= compiled


def exceptions_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        return [Allowance(line) for line in lines if line.strip() and not line.startswith("#")]
    except (ValueError, re.error) as error:
        raise SystemExit(f"{path}: a line is not REGEX ARCHITECTURE STACK SPILLS REASON: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allowed", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    try:
        texts = [pathlib.Path(x + ".ptxas").read_text(encoding="utf-8") for x in options.objects]
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    kernels = [kernel for text in texts for kernel in kernels_of(text)]
    # An object without kernels has a report, too.
    if not all("ptxas info" in x for x in texts) or not all(k.complete for k in kernels):
        print("a report of ptxas is empty or cut off", file=sys.stderr)
        return 2
    demangle(kernels)
    exceptions = exceptions_of(options.allowed)
    kernels.sort(key=lambda k: (k.name, k.architecture))
    lines = ["registers  static shared  stack  spill stores  spill loads  architecture  kernel"]
    faults = [line for text in texts for line in text.splitlines() if re.search(r"\(C\d+\)", line)]
    for k in kernels:
        lines.append(f"{k.registers:9}  {k.shared:13}  {k.stack:5}  {k.stores:12}  {k.loads:11}  "
                     f"{k.architecture:12}  {k.name}")
        if k.stack or k.stores or k.loads:
            covering = [e for e in exceptions if e.covers(k)]
            for exception in covering:
                exception.used = True
            if not covering:
                faults.append(f"{k.name} ({k.architecture}): {k.stack} bytes of stack, "
                              f"{k.stores} + {k.loads} bytes spilled")
    compiled = {k.architecture for k in kernels}
    unused = [e for e in exceptions if not e.used]
    stale = [e for e in unused if e.can_be_judged_by(compiled)]
    faults += [f"no kernel needs this exception any more: {e.line}" for e in stale]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    if len(stale) < len(unused):
        print(f"{len(unused) - len(stale)} exceptions not looked at: only {', '.join(sorted(compiled))} "
              "were compiled")
    print(f"{len(kernels)} kernels, {len(faults)} faults; all numbers: {options.out}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
