#!/usr/bin/env python3
"""The peers that live in Python, timed as attnbench_cuda_bench times ours.

  peers.py --cases NAMES --out peers.json [--filter REGEX] [--deadline SECONDS] [--repetitions N]

NAMES is what `attnbench_cuda_bench --benchmark_list_tests` prints: sizes are written down there and
nowhere else. For every case each program that can compute the same function is timed (peer_softmax,
peer_recurrent and peer_pools say which), on normal inputs rotated over so many sets that they exceed
the L2 four times. The file is Google Benchmark's JSON; a row's name is the case's, with the peer's
name in place of "attnbench". What a peer cannot do (missing, refused, out of memory) is a row with the
reason. The file is written anew after every case.

Not yet run on a GPU: see reports/measured/README.md.
"""

import argparse
import datetime
import json
import math
import os
import re
import subprocess
import sys
import time

import peer_pools
import peer_recurrent
import peer_softmax
from peer_case import failure, parse_case, rows_of
from peer_clock import Clock, first_line

FAMILIES = {family: module for module in (peer_softmax, peer_recurrent, peer_pools)
            for family in module.FAMILIES}


class Found:
    """PyTorch, and what else is there: versions, and the reasons for what is missing."""

    def __init__(self):
        import torch
        self.torch = torch
        self.missing = {}
        self.versions = {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version()),
                         "cuda": str(torch.version.cuda)}
        for module, name in (("triton", "triton"), ("fla", "flash-linear-attention")):
            try:
                self.versions[name] = __import__(module).__version__
            except Exception as error:
                self.missing[module] = first_line(error)
        torch.backends.cuda.matmul.allow_tf32 = False


def peers_of(torch, case, device="cuda"):
    """[(name, maker)] for a case; maker() gives the function of one set's inputs. It may throw: that
    is the peer's answer."""
    family = FAMILIES.get(case["family"])
    return family.peers(torch, case, device) if family else []


def bodies(torch, case, function, device="cuda", l2_bytes=None):
    """(body, sets): body(set) queues one call of the case's pass."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[case["dtype"]]
    shapes = FAMILIES[case["family"]].shapes(case)
    result = shapes[0][:-1] + shapes[2][-1:]
    needs_gradient = "backward" in case["passes"]
    bytes_a_set = dtype.itemsize * sum(math.prod(shape) for shape in shapes + [result])
    if needs_gradient:
        bytes_a_set *= 2
    if l2_bytes is None:
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(256, math.ceil(4 * l2_bytes / bytes_a_set)))
    draw = lambda shape: torch.randn(shape, device=device, dtype=dtype)
    inputs = [[draw(s).requires_grad_(needs_gradient) for s in shapes] for _ in range(sets)]
    gradients = [draw(result) for _ in range(sets)] if needs_gradient else None
    if not needs_gradient:
        def body(i):
            with torch.no_grad():
                return function(*inputs[i])
    elif case["passes"] == "forward_backward":
        def body(i):
            return torch.autograd.grad(function(*inputs[i]), inputs[i], gradients[i])
    else:
        outputs = [function(*x) for x in inputs]
        def body(i):
            return torch.autograd.grad(outputs[i], inputs[i], gradients[i], retain_graph=True)
    return body, sets


def context_of(found):
    torch = found.torch
    properties = torch.cuda.get_device_properties(0)
    context = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
               "executable": " ".join(sys.argv), "num_cpus": os.cpu_count(), "mhz_per_cpu": 0,
               "cpu_scaling_enabled": False, "caches": [], "load_avg": list(os.getloadavg()),
               "library_build_type": "release", "program": "python peers", "card": properties.name,
               "multiprocessors": str(properties.multi_processor_count),
               "l2_bytes": str(properties.L2_cache_size)}
    context.update(found.versions)
    for name, reason in found.missing.items():
        context["no_" + name] = reason
    try:
        context["driver"] = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], text=True,
            capture_output=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    return context


def settle(torch):
    """Gives memory back between cases. After a fault every call throws, and so will the next case."""
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        pass


def write(path, document):
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--filter", default="", help="only cases or peers whose full name matches")
    parser.add_argument("--deadline", type=float, default=300, help="seconds for all of it")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    begin = time.monotonic()
    with open(options.cases, encoding="utf-8") as file:
        cases = [case for case in map(parse_case, file) if case]
    try:
        found = Found()
        if not found.torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
    except Exception as error:
        print("peers.py:", first_line(error), file=sys.stderr)
        return 3
    torch, clock = found.torch, Clock(found.torch)
    document = {"context": context_of(found), "benchmarks": []}
    matched = 0
    for case in cases:
        for peer, maker in peers_of(torch, case):
            name = case["name"].rsplit("/", 1)[0] + "/" + peer
            if not re.search(options.filter, name):
                continue
            matched += 1
            if time.monotonic() - begin > options.deadline:
                rows = failure(name, "not reached in the time given")
            else:
                try:
                    with torch.cuda.stream(clock.stream):
                        body, sets = bodies(torch, case, maker())
                        torch.cuda.synchronize()
                        rows = rows_of(name, clock.measure(body, sets, options.repetitions))
                        del body
                except Exception as error:
                    rows = failure(name, first_line(error))
                settle(torch)
            document["benchmarks"] += rows
            print(f'{rows[0].get("error_message") or "%.1f us" % rows[0]["real_time"]:>12}  {name}',
                  flush=True)
        write(options.out, document)
    write(options.out, document)
    return 0 if matched else 2


if __name__ == "__main__":
    sys.exit(main())
