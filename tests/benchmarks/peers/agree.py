#!/usr/bin/env python3
"""Holds our mechanisms to implementations that we did not write, in float64: values and gradients.

  agree.py --program build/release/bin/attnbench [--only RE] [--markdown FILE]

Run it with a Python that has torch, flash-linear-attention (its naive forms), transformers,
nystrom-attention, linformer, performer-pytorch and mamba-ssm (its form without a kernel, and
einops) from PyPI. For each case of agree_cases.py and each size the same random numbers go through
`attnbench apply`, in each of our implementations that takes them, and through the package's own
function; compared are the output and the gradients of all inputs and parameters, each by max |a -
b| / max |b|. Ends with 1 where a difference exceeds 1e-9.

Naive forms that compute in float32 whatever they are given are called while torch.float32 and
Tensor.float mean float64: their code is the package's.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

# They slow or break numpy's and torch's BLAS where they suit another build's.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
warnings.filterwarnings("ignore", message="Triton is not supported")

import numpy
import torch
from agree_cases import CASES

TOLERANCE = 1e-9


@contextlib.contextmanager
def in_double():
    """float32 means float64, for functions that ask for it by name."""
    narrow = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = narrow
        torch.set_default_dtype(torch.float32)


def drawn(case, size, generator):
    """Inputs and parameters, as leaves."""
    batch, heads, tokens, keys, values = size

    def leaf(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    shared = {name: case.key_heads or heads for name in ("key", "value")}
    inputs = {
        name: leaf(batch, 1 if name in case.shared else shared.get(name, heads), tokens, width)
        for name, width in case.inputs(keys, values).items()
    }
    parameters = {name: leaf(*shape(size)) for name, shape in case.parameters.items()}
    return inputs, parameters


def their_results(case, inputs, parameters, upstream):
    """The package's output, and gradients of all leaves."""
    with in_double():
        output = case.theirs(**inputs, **parameters)
        assert output.dtype == torch.float64, f"{case.against} left float64"
        output.backward(upstream)  # torch.autograd.grad refuses fla's checkpoints
    leaves = {**inputs, **parameters}
    return output.detach().numpy(), {k: leaf.grad.numpy() for k, leaf in leaves.items()}


def our_results(program, case, implementation, arrays, folder):
    """Output and gradients of `attnbench apply`; a text with the reason where it refuses."""
    words = [program, "apply", case.mechanism, "--pattern", case.pattern]
    words += ["--implementation", implementation, "--check-rows", "0"]
    words += ["--gradient", folder / "upstream.npy", "--out", folder / implementation]
    for name, array in arrays.items():
        numpy.save(folder / f"{name}.npy", array)
        if name == "upstream":
            continue
        flag = "--param" if name in case.parameters else "--role"
        words += [flag, f"{name}={folder / name}.npy"]
    for key, value in case.options.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    out = folder / implementation
    gradients = {}
    for name in arrays:
        of_parameter = out / f"gradients/parameter.{name}.npy"
        of_role = out / f"gradients/{name}.npy"
        for file in (of_parameter, of_role):
            if file.exists():
                gradients[name] = numpy.load(file)
    return numpy.load(out / "output.npy"), gradients


def difference(ours, theirs):
    return float(numpy.abs(ours.reshape(theirs.shape) - theirs).max() / numpy.abs(theirs).max())


def implementations(program, mechanism):
    described = subprocess.run([program, "describe", mechanism, "--json"], capture_output=True,
                               text=True, check=True)
    return [each["name"] for each in json.loads(described.stdout)["implementations"]]


def compared(program, case, size, seed):
    """Worst difference of values, of gradients, and in which of our implementations."""
    generator = torch.Generator().manual_seed(seed)
    inputs, parameters = drawn(case, size, generator)
    batch, heads, tokens, _, values = size
    upstream = torch.randn((batch, heads, tokens, values), generator=generator, dtype=torch.float64)
    output, gradients = their_results(case, inputs, parameters, upstream)
    arrays = {k: x.detach().numpy() for k, x in {**inputs, **parameters}.items()}
    arrays["upstream"] = upstream.numpy()
    worst, ran, refused = [0.0, 0.0], [], {}
    for implementation in implementations(program, case.mechanism):
        with tempfile.TemporaryDirectory() as folder:
            ours = our_results(program, case, implementation, arrays, Path(folder))
        if isinstance(ours, str):
            refused[implementation] = ours
            continue
        ran.append(implementation)
        gradients = {k: g for k, g in gradients.items() if k not in case.constants}
        missing = set(gradients) - set(ours[1])
        if missing:
            raise RuntimeError(f"{case.name}/{implementation}: no gradient of {sorted(missing)}")
        worst[0] = max(worst[0], difference(ours[0], output))
        worst[1] = max(worst[1], *(difference(ours[1][k], g) for k, g in gradients.items()))
    if not ran:
        raise RuntimeError(f"{case.name} {size}: nothing ran: {refused}")
    return worst, ran, refused


def versions():
    names = ("torch flash-linear-attention transformers nystrom-attention linformer "
             "performer-pytorch mamba-ssm").split()
    found = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built attnbench")
    parser.add_argument("--only", default="", help="a regular expression over the cases' names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", help="write the table to this file")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    lines = ["| ours | held to | implementations | B, H, T, D, Dv | values | gradients |",
             "|:--|:--|:--|:--|--:|--:|"]
    failed = 0
    for case in (c for c in CASES if re.search(arguments.only, f"{c.name} {c.mechanism}")):
        for size in case.sizes:
            worst, ran, refused = compared(program, case, size, arguments.seed)
            for implementation, reason in refused.items():
                print(f"  {case.mechanism}/{implementation}: {reason}", file=sys.stderr)
            failed += max(worst) > TOLERANCE
            sizes = ", ".join(str(n) for n in size)
            row = f"| {case.name} | {case.against} | {', '.join(ran)} | {sizes} "
            lines.append(row + f"| {worst[0]:.1e} | {worst[1]:.1e} |")
            print(lines[-1], flush=True)
    print(versions())
    if arguments.markdown:
        Path(arguments.markdown).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
