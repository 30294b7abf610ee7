#!/usr/bin/env python3
"""What PyTorch and JAX take on this CPU for the cells of a run of ours.

  peers.py --beside RUN --program torch|jax --out peers.json [--rounds N] [--threads N]
  attnbench import peers.json --beside RUN --out JOINED && attnbench report JOINED

RUN is a run's folder or its result.json: sizes are written down there and nowhere else. For every
problem that the program can solve, once however many implementations of ours were timed on it:

  torch   softmax: scaled_dot_product_attention, its flash backend
  jax     latte, causal: the scan over tokens of Dolga et al. 2024 (Latte), Listing 1, compiled

Run it with the Python that has the program: in an environment of its own, `pip install torch` or
`pip install jax`. Method as ours: each round a fresh process, pinned to as many CPUs as threads;
normal inputs; warmed up, then at least 10 samples and 0.4 s. What cannot be done is a record with
the reason. Only scope mix, on the CPU, float32 and bfloat16.
"""

import argparse
import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

SAMPLED_SECONDS = 0.4
LEAST_SAMPLES = 10
PASSES = ("forward", "forward+backward")
DTYPES = {"float32": "float32", "bfloat16": "bfloat16"}
# Of the shell's variables, those that slow the BLAS below PyTorch or start other numbers of threads.
SPOILERS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY")


def torch_body(problem, passes):
    """One call of PyTorch's flash attention."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    dtype = getattr(torch, problem["dtype"])
    generator = torch.Generator().manual_seed(0)

    def drawn(heads, length, width, gradient):
        shape = (problem["batch"], heads, length, width)
        return torch.randn(shape, generator=generator).to(dtype).requires_grad_(gradient)

    gradient = passes == "forward+backward"
    heads, kv_heads = problem["heads"], problem["kv_heads"]
    q = drawn(heads, problem["length"], problem["head_dim"], gradient)
    k = drawn(kv_heads, problem["key_length"], problem["head_dim"], gradient)
    v = drawn(kv_heads, problem["key_length"], problem["value_dim"], gradient)
    upstream = drawn(heads, problem["length"], problem["value_dim"], False)

    def mix():
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            return scaled_dot_product_attention(
                q, k, v, is_causal=problem["pattern"] == "causal", enable_gqa=kv_heads != heads)

    def forward():
        with torch.no_grad():
            mix()

    def both():
        for leaf in (q, k, v):
            leaf.grad = None
        mix().backward(upstream)

    return both if gradient else forward


def jax_body(problem, passes):
    """The scan over tokens, compiled: one carried maximum, normaliser and sum a latent."""
    import jax
    import jax.numpy as jnp

    dtype = getattr(jnp, problem["dtype"])
    batch, heads, length = problem["batch"], problem["heads"], problem["length"]
    latents, value_dim = problem["latents_per_head"], problem["value_dim"]

    def mix(query, scores, values):
        weights = jax.nn.softmax(query.astype(jnp.float32), axis=-1)

        def token(carry, now):
            maximum, total, memory = carry
            weight, score, value = now
            risen = jnp.maximum(maximum, score)
            kept, added = jnp.exp(maximum - risen), jnp.exp(score - risen)
            total = kept * total + added
            memory = kept[..., None] * memory + added[..., None] * value[..., None, :]
            out = jnp.einsum("bhl,bhld->bhd", weight / total, memory)
            return (risen, total, memory), out

        start = (jnp.full((batch, heads, latents), -jnp.inf), jnp.zeros((batch, heads, latents)),
                 jnp.zeros((batch, heads, latents, value_dim)))
        by_token = [jnp.moveaxis(x.astype(jnp.float32), 2, 0) for x in (weights, scores, values)]
        return jnp.moveaxis(jax.lax.scan(token, start, by_token)[1], 0, 2).astype(dtype)

    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    widths = (latents, latents, value_dim, value_dim)
    query, scores, values, upstream = (
        jax.random.normal(key, (batch, heads, length, width)).astype(dtype)
        for key, width in zip(keys, widths))
    if passes == "forward":
        body = jax.jit(mix)
        return lambda: body(query, scores, values).block_until_ready()

    @jax.jit
    def both(query, scores, values, upstream):
        out, pull = jax.vjp(mix, query, scores, values)
        return out, pull(upstream)

    return lambda: jax.block_until_ready(both(query, scores, values, upstream))


PROGRAMS = {
    "torch": {"name": "PyTorch", "mechanism": "softmax", "label": "flash",
              "implementation": "scaled_dot_product_attention, flash", "body": torch_body},
    "jax": {"name": "JAX", "mechanism": "latte", "label": "latte, token scan",
            "implementation": "lax.scan", "body": jax_body},
}


def refusal(program, cell):
    """Why the program does not solve this cell's problem; empty where it does."""
    problem, settings = cell["problem"], cell["settings"]
    if cell.get("device", "cpu") != "cpu":
        return "peers on a GPU are timed by tests/benchmarks/cuda"
    if settings.get("scope", "mix") != "mix" or settings.get("pass") not in PASSES:
        return "only scope mix, forward or forward+backward"
    if problem["dtype"] not in DTYPES:
        return "only float32 and bfloat16"
    if program == "jax" and problem["pattern"] != "causal":
        return "the scan is causal"
    if program == "torch" and problem["pattern"] == "causal" and problem["length"] != problem["key_length"]:
        return "its causal triangle starts at the first key"
    return ""


def cases(program, result):
    """(cell, problem) for each distinct problem that is the program's."""
    seen, found = set(), []
    for cell in result["attnbench"]["cells"]:
        if cell["mechanism"] != PROGRAMS[program]["mechanism"] or "timing" not in cell:
            continue
        if cell["task"] != "kernel" or "foreign" in cell or refusal(program, cell):
            continue
        problem = dict(cell["problem"], dtype=DTYPES[cell["problem"]["dtype"]])
        problem["latents_per_head"] = cell["options"].get("latents_per_head", 0)
        key = json.dumps([problem, cell["settings"]["pass"]], sort_keys=True)
        if key not in seen:
            seen.add(key)
            found.append((cell, problem))
    return found


def about(program):
    known = {"name": PROGRAMS[program]["name"], "version": importlib.metadata.version(program)}
    if program == "torch":
        import torch
        known["version"] = torch.__version__
        known["blas"] = "mkl" if torch.backends.mkl.is_available() else "openblas or none"
        known["build"] = " ".join(torch.__config__.show().split())
    return known


def sample(program, problem, passes, threads):
    """Samples of one process, in seconds."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if program == "torch":
        import torch
        torch.set_num_threads(threads)
    body = PROGRAMS[program]["body"](problem, passes)
    for _ in range(2):
        body()
    samples, begun = [], time.perf_counter()
    while len(samples) < LEAST_SAMPLES or time.perf_counter() - begun < SAMPLED_SECONDS:
        start = time.perf_counter()
        body()
        samples.append(time.perf_counter() - start)
    return samples


def in_fresh_process(program, problem, passes, threads):
    """Samples, or a RuntimeError with the last line that the process wrote."""
    environment = {k: v for k, v in os.environ.items() if k not in SPOILERS}
    environment.update(OMP_NUM_THREADS=str(threads), JAX_PLATFORMS="cpu")
    request = json.dumps([program, problem, passes, threads])
    done = subprocess.run([sys.executable, __file__, "--sample", request], env=environment,
                          capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["ended with exit code %d" % done.returncode]
        raise RuntimeError(lines[-1])
    return json.loads(done.stdout.splitlines()[-1])


def measure(program, found, rounds, threads):
    """Records, rounds outermost: a slow minute of the machine meets all cases."""
    records = [{"beside": cell["id"], "label": PROGRAMS[program]["label"],
                "implementation": PROGRAMS[program]["implementation"],
                "seconds": {cell["settings"]["pass"]: []}} for cell, _ in found]
    for number in range(rounds):
        for record, (cell, problem) in zip(records, found):
            passes = cell["settings"]["pass"]
            if "status" in record:
                continue
            print(f"[{number + 1}/{rounds}] {record['label']} length={problem['length']} {passes}",
                  file=sys.stderr, flush=True)
            try:
                record["seconds"][passes].append(
                    in_fresh_process(program, problem, passes, threads))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                record.update(status="error", reason=str(error))
                del record["seconds"]
    return records


def read_result(path):
    path = Path(path)
    with open(path / "result.json" if path.is_dir() else path, encoding="utf-8") as file:
        result = json.load(file)
    if "attnbench" not in result:
        raise ValueError(f"{path}: no result.json of attnbench")
    return result


def main():
    if sys.argv[1:2] == ["--sample"]:
        print(json.dumps(sample(*json.loads(sys.argv[2]))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", required=True, help="a run's folder or a result.json")
    parser.add_argument("--program", required=True, choices=sorted(PROGRAMS))
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="default: as the run")
    arguments = parser.parse_args()
    try:
        result = read_result(arguments.beside)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    found = cases(arguments.program, result)
    if not found:
        parser.error(f"{arguments.beside}: no cell whose problem {arguments.program} solves")
    threads = arguments.threads or result["attnbench"]["run"].get("threads", os.cpu_count())
    document = {"schema": 1, "program": about(arguments.program), "threads": threads,
                "command": shlex.join(sys.argv),
                "records": measure(arguments.program, found, arguments.rounds, threads)}
    temporary = arguments.out + ".part"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(temporary, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
