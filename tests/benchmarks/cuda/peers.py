#!/usr/bin/env python3
"""The peers that live in Python, timed as attnbench_cuda_bench times ours.

  peers.py --cases NAMES --out peers.json [--filter REGEX] [--deadline SECONDS] [--repetitions N]

NAMES is what `attnbench_cuda_bench --benchmark_list_tests` prints: sizes are written down there and
nowhere else. For every case each program that can compute the same function is timed: PyTorch's
scaled_dot_product_attention by backend, and flash-linear-attention's chunk kernels where it can be
imported. The file is Google Benchmark's JSON; a row's name is the case's, with the peer's name in
place of "attnbench". What a peer cannot do (missing, refused, out of memory) is a row with the
reason. The file is written anew after every case.

Method: normal inputs, rotated over so many sets that they exceed the L2 four times; CUDA events;
medians of samples of about 50 ms; replays of a CUDA graph for calls below 1 ms, where the host's
work would show, so that a peer is never charged for Python. Not yet run on a GPU: see
reports/measured/README.md.
"""

import argparse
import datetime
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

SAMPLED_SECONDS = 50e-3
WARM_UP_SECONDS = 10e-3
REPLAY_SECONDS = 1e-3
SHORT_SECONDS = 1e-3
PROGRAM = "attnbench"


def parse_case(line):
    """{"name", "what", "dtype", "B": 2, …} of one of our names; None of any other line."""
    name = re.sub(r"/(iterations|manual_time|repeats|real_time).*$", "", line.strip())
    parts = name.split("/")
    if len(parts) < 3 or parts[-1] != PROGRAM or parts[0].startswith("ceiling"):
        return None
    case = {"name": name, "what": parts[0], "dtype": parts[1]}
    for part in parts[2:-1]:
        key, _, value = part.partition(":")
        case[key] = int(value)
    return case


def order_interval(values):
    """The order-statistic interval of the median at 95 %, or None for fewer than 6 values."""
    n, tail, rank = len(values), 0.0, None
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 0.05:
            break
        rank = k
    if rank is None:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[n - 1 - rank]


class Clock:
    """Times bodies on one stream of their own: graphs are captured on it, and gradients run there."""

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
        """body(set) queues one call. Timings of `repetitions` rounds."""
        launch = lambda i: body(i % sets)
        self.timed(3, launch)
        estimate = max(min(self.timed(3, launch)), 1e-7)
        self.timed(max(1, min(1000, math.ceil(WARM_UP_SECONDS / estimate))), launch)
        launches, graph, no_graph = 1, None, None
        if estimate < SHORT_SECONDS:
            rounds = max(1, min(64, math.ceil(REPLAY_SECONDS / (estimate * sets))))
            launches = min(rounds * sets, 256)
            graph, no_graph = self.capture(launches, launch)
            if graph is None:
                launches = 1
            else:
                graph.replay()
        one = (lambda i: graph.replay()) if graph is not None else launch
        least = 10 if estimate * launches < 10e-3 else 5
        estimate = max(min(self.timed(2, one)), 1e-7)
        count = max(least, min(200, math.ceil(SAMPLED_SECONDS / estimate)))
        timings = []
        for _ in range(repetitions):
            seconds = [x / launches for x in self.timed(count, one)]
            low, high = order_interval(seconds) or (min(seconds), max(seconds))
            timings.append({"real_time": 1e6 * statistics.median(seconds), "low_seconds": low,
                            "high_seconds": high, "minimum_seconds": min(seconds),
                            "samples": len(seconds), "launches_a_sample": launches,
                            "graph": int(graph is not None), "sets": sets})
            if no_graph:
                timings[-1]["label"] = "no graph: " + no_graph
        del graph
        return timings


def first_line(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]


class Peers:
    """What can be timed for a case: (peer's name, function of one set's inputs)."""

    def __init__(self):
        import torch
        self.torch = torch
        self.missing = {}
        self.versions = {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version()),
                         "cuda": str(torch.version.cuda)}
        try:
            import triton
            self.versions["triton"] = triton.__version__
        except Exception as error:
            self.missing["triton"] = first_line(error)
        try:
            import fla
            self.versions["flash-linear-attention"] = fla.__version__
        except Exception as error:
            self.missing["fla"] = first_line(error)
        torch.backends.cuda.matmul.allow_tf32 = False
        self.flex = None

    def of(self, case):
        """[(name, maker)]; maker() gives the function. It may throw: that is the peer's answer."""
        if case["what"].startswith("softmax_"):
            return self.softmax(case)
        if case["what"].endswith("_step"):
            return []
        if case["what"].startswith(("causal_product", "prefix_pool")):
            return self.recurrent(case)
        return []

    def softmax(self, case):
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        causal, window = bool(case["causal"]), case["window"]
        attend = torch.nn.functional.scaled_dot_product_attention

        def sdpa(backend):
            def make():
                mask = None
                if window:
                    t = torch.arange(case["T"], device="cuda")
                    distance = t[:, None] - t[None, :]
                    mask = (distance >= 0) & (distance < window)

                def call(q, k, v):
                    with sdpa_kernel(backend):
                        return attend(q, k, v, attn_mask=mask, is_causal=causal and mask is None)
                return call
            return make

        def flex():
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            if self.flex is None:
                self.flex = torch.compile(flex_attention, dynamic=False)
            seen = lambda b, h, q, k: (q >= k) & (q - k < window)
            mask = create_block_mask(seen, None, None, case["T"], case["T"], device="cuda")
            return lambda q, k, v: self.flex(q, k, v, block_mask=mask)

        if window:
            return [("torch_flex", flex), ("sdpa_efficient", sdpa(SDPBackend.EFFICIENT_ATTENTION))]
        return [("sdpa_cudnn", sdpa(SDPBackend.CUDNN_ATTENTION)),
                ("sdpa_flash", sdpa(SDPBackend.FLASH_ATTENTION)),
                ("sdpa_efficient", sdpa(SDPBackend.EFFICIENT_ATTENTION)),
                ("sdpa_math", sdpa(SDPBackend.MATH))]

    def recurrent(self, case):
        """Arrays are [B, T, H, D] here, as these kernels want them."""
        torch = self.torch
        elu = lambda x: torch.nn.functional.elu(x) + 1
        plain = {"scale": 1.0, "normalize": False}

        def from_fla(module, name):
            import importlib
            return getattr(importlib.import_module("fla.ops." + module), name)

        def linear(name, featured):
            def make():
                function = from_fla("linear_attn", name)
                if featured:
                    return lambda q, k, v: function(elu(q), elu(k), v, scale=1.0, normalize=True)[0]
                return lambda q, k, v: function(q, k, v, **plain)[0]
            return make

        def retention():
            function = from_fla("retention", "chunk_retention")
            return lambda q, k, v: function(q, k, v)[0]

        def gla():
            function = from_fla("gla", "chunk_gla")
            shape = (case["B"], case["T"], case["H"], case["L"])
            gate = torch.nn.functional.logsigmoid(torch.randn(shape, device="cuda")).to(
                torch.bfloat16 if case["dtype"] == "bf16" else torch.float16)
            return lambda q, k, v: function(q, k, v, gate)[0]

        if case["what"].startswith("causal_product_plain"):
            return [("fla_chunk_linear_attn", linear("chunk_linear_attn", False)),
                    ("fla_fused_chunk_linear_attn", linear("fused_chunk_linear_attn", False)),
                    ("fla_chunk_retention", retention)]
        if case["what"].startswith("causal_product"):
            return [("fla_chunk_linear_attn", linear("chunk_linear_attn", True))]
        # No one else computes Latte. Its closest kin: a gate for every latent, and no normaliser.
        return [("fla_chunk_gla", gla)]


def bodies(torch, case, function):
    """(body, sets): body(set) queues one call of the case's pass."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[case["dtype"]]
    batch, heads, length, dim = case["B"], case["H"], case["T"], case["D"]
    width = case.get("L", dim)
    if case["what"].startswith("softmax_"):
        shapes = [(batch, heads, length, dim)] * 3
    else:
        shapes = [(batch, length, heads, width)] * 2 + [(batch, length, heads, dim)]
    passes = case["what"].split("_", 1)[1]
    needs_gradient = "backward" in passes
    bytes_a_set = dtype.itemsize * batch * heads * length * (2 * width + 2 * dim)
    if needs_gradient:
        bytes_a_set *= 2
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(256, math.ceil(4 * l2 / bytes_a_set)))
    draw = lambda shape: torch.randn(shape, device="cuda", dtype=dtype)
    inputs = [[draw(s).requires_grad_(needs_gradient) for s in shapes] for _ in range(sets)]
    gradients = [draw(shapes[2]) for _ in range(sets)] if needs_gradient else None
    if not needs_gradient:
        def body(i):
            with torch.no_grad():
                function(*inputs[i])
    elif passes.endswith("forward_backward"):
        def body(i):
            torch.autograd.grad(function(*inputs[i]), inputs[i], gradients[i])
    else:
        outputs = [function(*x) for x in inputs]
        def body(i):
            torch.autograd.grad(outputs[i], inputs[i], gradients[i], retain_graph=True)
    return body, sets


def rows_of(name, timings):
    base = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1,
            "repetitions": len(timings), "threads": 1, "time_unit": "us"}
    return [{**base, "repetition_index": i, "cpu_time": t["real_time"], **t}
            for i, t in enumerate(timings)]


def failure(name, reason):
    return [{"name": name, "run_name": name, "run_type": "iteration", "iterations": 0, "threads": 1,
             "repetitions": 1, "repetition_index": 0, "real_time": 0.0, "cpu_time": 0.0,
             "time_unit": "us", "error_occurred": True, "error_message": reason}]


def context_of(peers):
    torch = peers.torch
    properties = torch.cuda.get_device_properties(0)
    context = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
               "executable": " ".join(sys.argv), "num_cpus": os.cpu_count(), "mhz_per_cpu": 0,
               "cpu_scaling_enabled": False, "caches": [], "load_avg": list(os.getloadavg()),
               "library_build_type": "release", "program": "python peers", "card": properties.name,
               "multiprocessors": str(properties.multi_processor_count),
               "l2_bytes": str(properties.L2_cache_size)}
    context.update(peers.versions)
    for name, reason in peers.missing.items():
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
        peers = Peers()
        if not peers.torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
    except Exception as error:
        print("peers.py:", first_line(error), file=sys.stderr)
        return 3
    torch, clock = peers.torch, Clock(peers.torch)
    document = {"context": context_of(peers), "benchmarks": []}
    matched = 0
    for case in cases:
        for peer, maker in peers.of(case):
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
