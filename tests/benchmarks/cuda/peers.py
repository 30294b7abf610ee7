#!/usr/bin/env python3
"""PyTorch's attention and flash-linear-attention, timed as attnbench_cuda_bench times ours.

  peers.py --cases NAMES --out peers.json [--filter REGEX] [--deadline SECONDS] [--repetitions N]

NAMES is what `attnbench_cuda_bench --benchmark_list_tests` prints: sizes are written down there and
nowhere else. For every case each program that can compute the same function is timed, on normal
inputs rotated over so many sets that they exceed the L2 four times. The file is Google Benchmark's
JSON; a row's name is the case's, with the peer's name in place of "attnbench". What a peer cannot do
(missing, refused, out of memory) is a row with the reason. The file is written anew after every case.

Not yet run on a GPU.
"""

import argparse
import functools
import importlib
import json
import math
import os
import re
import statistics
import sys
import time

# ---- the cases

FAMILIES = ("softmax", "causal_product", "causal_product_plain", "prefix_pool")


def parse_case(line):
    """{"name", "family", "passes", "dtype", "B": 2, …} of one of our names; None of any other line."""
    name = re.sub(r"/(iterations|manual_time|repeats|real_time).*$", "", line.strip())
    what, dtype, *sizes, program = name.split("/") if name.count("/") >= 2 else ("", "", "")
    match = re.fullmatch(r"(\w+?)_(forward_backward|forward|backward)", what)
    if program != "attnbench" or match is None or match[1] not in FAMILIES:
        return None
    numbers = {key: int(value) for key, value in (size.split(":") for size in sizes)}
    return {"name": name, "family": match[1], "passes": match[2], "dtype": dtype, **numbers}


def shapes(case):
    """Of queries, keys and values: [B, H, T, D], those of flash-linear-attention [B, T, H, width]."""
    if case["family"] == "softmax":
        return [(case["B"], case["H"], case["T"], case["D"])] * 3
    return [(case["B"], case["T"], case["H"], width) for width in (case["L"], case["L"], case["D"])]


# ---- the peers: [(name, maker)] for a case; maker() gives the function of queries, keys and values.
# It may throw: that is the peer's answer.


def peers_of(torch, case, device="cuda"):
    if case["family"] == "softmax":
        if case["window"]:
            return [("torch_flex", lambda: flexible(torch, case, device)),
                    ("sdpa_efficient", lambda: by_backend(torch, case, device, "EFFICIENT"))]
        return [("sdpa_" + name.lower(), functools.partial(by_backend, torch, case, device, name))
                for name in ("CUDNN", "FLASH", "EFFICIENT", "MATH")]
    if case["family"] == "causal_product_plain":
        return [("fla_chunk_linear_attn", lambda: plain("chunk_linear_attn")),
                ("fla_fused_chunk_linear_attn", lambda: plain("fused_chunk_linear_attn")),
                ("fla_chunk_retention", retention)]
    if case["family"] == "causal_product":
        return [("fla_chunk_linear_attn", lambda: featured(torch))]
    # No one else computes Latte: its closest kin has a gate for every latent, and no normaliser.
    return [("kin_fla_chunk_gla", lambda: gated(torch, case, device))]


def by_backend(torch, case, device, name):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = SDPBackend.MATH if name == "MATH" else getattr(SDPBackend, name + "_ATTENTION")
    attend = torch.nn.functional.scaled_dot_product_attention
    mask = None
    if case["window"]:
        t = torch.arange(case["T"], device=device)
        distance = t[:, None] - t[None, :]
        mask = (distance >= 0) & (distance < case["window"])

    def call(q, k, v):
        with sdpa_kernel(backend):
            return attend(q, k, v, attn_mask=mask, is_causal=bool(case["causal"]) and mask is None)
    return call


@functools.cache
def compiled_flex(torch):
    from torch.nn.attention.flex_attention import flex_attention
    return torch.compile(flex_attention, dynamic=False)


def flexible(torch, case, device):
    from torch.nn.attention.flex_attention import create_block_mask
    flex, window, length = compiled_flex(torch), case["window"], case["T"]
    mask = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < window), None, None, length, length,
                             device=device)
    return lambda q, k, v: flex(q, k, v, block_mask=mask)


def from_fla(module, name):
    return getattr(importlib.import_module("fla.ops." + module), name)


def plain(name):
    function = from_fla("linear_attn", name)
    return lambda q, k, v: function(q, k, v, scale=1.0, normalize=False)[0]


def featured(torch):
    function = from_fla("linear_attn", "chunk_linear_attn")
    elu = lambda x: torch.nn.functional.elu(x) + 1
    return lambda q, k, v: function(elu(q), elu(k), v, scale=1.0, normalize=True)[0]


def retention():
    function = from_fla("retention", "chunk_retention")
    return lambda q, k, v: function(q, k, v)[0]


def gated(torch, case, device):
    function = from_fla("gla", "chunk_gla")
    gate = torch.nn.functional.logsigmoid(torch.randn(shapes(case)[1], device=device))
    return lambda q, k, v: function(q, k, v, gate.to(q.dtype))[0]


# ---- timing


def bodies(torch, case, function, device="cuda", l2_bytes=None):
    """(body, sets): body(set) queues one call of the case's pass."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[case["dtype"]]
    inputs_of = shapes(case)
    result = inputs_of[0][:-1] + inputs_of[2][-1:]
    needs_gradient = "backward" in case["passes"]
    bytes_a_set = dtype.itemsize * sum(math.prod(shape) for shape in inputs_of + [result])
    bytes_a_set *= 2 if needs_gradient else 1
    l2_bytes = l2_bytes or torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(256, math.ceil(4 * l2_bytes / bytes_a_set)))
    draw = lambda shape: torch.randn(shape, device=device, dtype=dtype)
    inputs = [[draw(s).requires_grad_(needs_gradient) for s in inputs_of] for _ in range(sets)]
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


def first_line(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]


def order_interval(values):
    """The order-statistic interval of the median of sorted values at 95 %; all of fewer than 6."""
    n, tail, rank = len(values), 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 0.05:
            break
        rank = k
    return values[rank], values[n - 1 - rank]


class Clock:
    """Medians of samples of about 50 ms between CUDA events, on one stream of their own; replays of a
    CUDA graph for calls below 1 ms, so that a peer is never charged for Python."""

    def __init__(self, torch):
        self.torch = torch
        self.stream = torch.cuda.Stream()

    def timed(self, count, body):
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record(self.stream)
        for i in range(count):
            body(i)
            events[i + 1].record(self.stream)
        self.stream.synchronize()
        return [1e-3 * events[i].elapsed_time(events[i + 1]) for i in range(count)]

    def capture(self, launches, body):
        """The graph, or None with the reason where the peer cannot be captured."""
        graph = self.torch.cuda.CUDAGraph()
        try:
            with self.torch.cuda.graph(graph, stream=self.stream):
                for i in range(launches):
                    body(i)
            return graph, None
        except Exception as error:  # whatever it is, events are left
            self.torch.cuda.synchronize()
            return None, first_line(error)

    def measure(self, body, sets, repetitions):
        """body(set) queues one call. A row's numbers for each of `repetitions` rounds."""
        launch = lambda i: body(i % sets)
        self.timed(3, launch)
        estimate = max(min(self.timed(3, launch)), 1e-7)
        self.timed(max(1, min(1000, math.ceil(10e-3 / estimate))), launch)
        launches, graph, no_graph = 1, None, None
        if estimate < 1e-3:
            rounds = max(1, min(64, math.ceil(1e-3 / (estimate * sets))))
            graph, no_graph = self.capture(min(rounds * sets, 256), launch)
            if graph is not None:
                launches = min(rounds * sets, 256)
                graph.replay()
        one = (lambda i: graph.replay()) if graph is not None else launch
        count = max(10, min(200, math.ceil(50e-3 / max(min(self.timed(2, one)), 1e-7))))
        timings = []
        for _ in range(repetitions):
            seconds = sorted(x / launches for x in self.timed(count, one))
            low, high = order_interval(seconds)
            timings.append({"real_time": 1e6 * statistics.median(seconds), "low_seconds": low,
                            "high_seconds": high, "samples": count, "sets": sets,
                            "graph": int(graph is not None)})
            if no_graph:
                timings[-1]["label"] = "no graph: " + no_graph
        return timings


def rows_of(name, timings):
    return [{"name": name, "run_name": name, "run_type": "iteration", "iterations": 1, "threads": 1,
             "repetitions": len(timings), "repetition_index": i, "time_unit": "us",
             "cpu_time": t["real_time"], **t} for i, t in enumerate(timings)]


def failure(name, reason):
    return rows_of(name, [{"real_time": 0.0, "error_occurred": True, "error_message": reason}])


def settle(torch):
    """Gives memory back between cases. After a fault every call throws, and so will the next case."""
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        pass


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
        import torch
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
    except Exception as error:
        print("peers.py:", first_line(error), file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = False
    context = {"card": torch.cuda.get_device_name(0), "torch": torch.__version__,
               "cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    for module in ("triton", "fla"):
        try:
            context[module] = importlib.import_module(module).__version__
        except Exception as error:
            context["no_" + module] = first_line(error)
    clock, rows = Clock(torch), []
    for case in cases:
        for peer, maker in peers_of(torch, case):
            name = case["name"].rsplit("/", 1)[0] + "/" + peer
            if not re.search(options.filter, name):
                continue
            if time.monotonic() - begin > options.deadline:
                found = failure(name, "not reached in the time given")
            else:
                try:
                    with torch.cuda.stream(clock.stream):
                        body, sets = bodies(torch, case, maker())
                        torch.cuda.synchronize()
                        found = rows_of(name, clock.measure(body, sets, options.repetitions))
                        del body
                except Exception as error:
                    found = failure(name, first_line(error))
                settle(torch)
            rows += found
            print(f'{found[0].get("error_message") or "%.1f us" % found[0]["real_time"]:>12}  {name}',
                  flush=True)
        with open(options.out + ".part", "w", encoding="utf-8") as file:
            json.dump({"context": context, "benchmarks": rows}, file, indent=1)
        os.replace(options.out + ".part", options.out)
    return 0 if rows else 2


if __name__ == "__main__":
    sys.exit(main())
