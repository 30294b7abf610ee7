#!/usr/bin/env python3
"""Examples per second of one training, ours beside the same model in PyTorch's Python.

  plain_pytorch.py --attnbench PROGRAM [--steps N] [--slices N] [--threads N] [--out FILE]

The cell is the smallest of Zoology's Figure 2 (suites/zoology_figure_2.json, profile smallest): 8192
tokens, length 64, 4 pairs, width 64, two blocks, batch 512. The Python code is the usual one: a
DataLoader over precomputed examples, logits of every position, cross-entropy over labelled positions,
scaled_dot_product_attention, PyTorch's AdamW. Both train N steps in turns, each slice from new
weights, on the same number of threads. PyTorch's examples per second are over all steps of a slice
but the first two, data included, scoring excluded; ours are those of the record, over all steps. The
ratio is the median over pairs of slices of ours over theirs.

Run it with a Python that has torch: in an environment of its own, `pip install torch`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VOCABULARY, LENGTH, PAIRS, WIDTH, BLOCKS, BATCH = 8192, 64, 4, 64, 2, 512
LEARNING_RATE = 2.15e-3
WARM_UP_STEPS = 2
UNLABELLED = -100


def examples(torch, count, generator):
    """Tokens and labels [count, LENGTH], distributed as in tasks/mqar/recall.hpp."""
    half, context = VOCABULARY // 2, 2 * PAIRS
    keys = 1 + torch.rand(count, half - 1, generator=generator).topk(PAIRS, 1).indices
    values = half + torch.rand(count, half, generator=generator).topk(PAIRS, 1).indices
    slots = (LENGTH - context) // 2
    weights = torch.arange(1, slots + 1, dtype=torch.float) ** (0.01 - 1)
    rings = -torch.rand(count, slots, generator=generator).log() / weights
    places = context + 2 * rings.topk(PAIRS, 1, largest=False).indices
    tokens = torch.zeros(count, LENGTH, dtype=torch.long)
    tokens[:, 0:context:2] = keys
    tokens[:, 1:context:2] = values
    tokens.scatter_(1, places, keys)
    labels = torch.full((count, LENGTH), UNLABELLED).scatter_(1, places, values)
    return tokens, labels


def model_of(torch):
    """Zoology's model without biases of attention's projections and without attention dropout."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.projections = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)

        def forward(self, x):
            q, k, v = self.projections(x).unsqueeze(1).chunk(3, -1)
            return self.out(
                functional.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(1))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Embedding(LENGTH, WIDTH)
            self.mixes = nn.ModuleList(Attention() for _ in range(BLOCKS))
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * BLOCKS + 1))
            self.dropout = nn.Dropout(0.1)
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, ids):
            x = self.dropout(self.tokens(ids) + self.positions.weight)
            for i, mix in enumerate(self.mixes):
                x = x + mix(self.norms[2 * i](x))
                x = x + self.norms[2 * i + 1](x)
            return functional.linear(self.norms[-1](x), self.tokens.weight)

    return Model()


def theirs(torch, steps, seed):
    """Examples per second of `steps` steps after the warm-up, and the last loss."""
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    data = TensorDataset(*examples(torch, BATCH * (steps + WARM_UP_STEPS), generator))
    model = model_of(torch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.1)
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=UNLABELLED)
    for step, (tokens, labels) in enumerate(DataLoader(data, batch_size=BATCH, shuffle=True)):
        if step == WARM_UP_STEPS:
            begin = time.monotonic()
        optimiser.zero_grad()
        loss = loss_of(model(tokens).flatten(0, 1), labels.flatten())
        loss.backward()
        optimiser.step()
        value = loss.item()
    return BATCH * steps / (time.monotonic() - begin), value


def command_of(program, folder, steps, threads, seed):
    """Our run of the same steps, with the least possible scoring."""
    suite = Path(__file__).resolve().parents[3] / "suites" / "zoology_figure_2.json"
    settings = {"train_examples": BATCH * steps, "epochs": 1, "validation_examples": 1,
                "test_examples": 1, "learning_rate": LEARNING_RATE, "checkpoint_seconds": 3600}
    words = [program, "run", str(suite), "--profile", "smallest", "--out", folder, "--threads",
             str(threads), "--seed", str(seed), "--no-ceilings", "--no-report", "--progress",
             "plain"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    return words


def ours(program, steps, threads, seed):
    with tempfile.TemporaryDirectory() as parent:
        folder = str(Path(parent) / "run")
        done = subprocess.run(command_of(program, folder, steps, threads, seed),
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program} ended with {done.returncode}: {done.stderr}")
        result = json.loads((Path(folder) / "result.json").read_text())
        return speed_of(result)


def speed_of(result):
    """Examples per second and the mean loss of the only cell of a result."""
    (cell,) = result["attnbench"]["cells"]
    if cell["status"] != "ok":
        sys.exit(f"our cell has the status {cell['status']}: {cell.get('reason', '')}")
    return cell["metrics"]["examples_per_second"], cell["training"]["curve"][-1]["loss"]


def summary(pairs):
    """Median and range of both, and of the ratios of the pairs."""
    def spread(numbers):
        return {"median": statistics.median(numbers), "low": min(numbers), "high": max(numbers)}

    return {"ours_examples_per_second": spread([mine for mine, _ in pairs]),
            "pytorch_examples_per_second": spread([other for _, other in pairs]),
            "ratio": spread([mine / other for mine, other in pairs])}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnbench", required=True, help="our program, as it was built")
    parser.add_argument("--steps", type=int, default=30, help="of a slice (default 30)")
    parser.add_argument("--slices", type=int, default=3, help="of each (default 3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", help="file for the numbers, as JSON")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.slices < 1 or arguments.threads < 1:
        parser.error("steps, slices and threads are 1 or more")
    import torch

    torch.set_num_threads(arguments.threads)
    pairs = []
    for seed in range(arguments.slices):
        mine, my_loss = ours(arguments.attnbench, arguments.steps, arguments.threads, seed)
        other, their_loss = theirs(torch, arguments.steps, seed)
        pairs.append((mine, other))
        print(f"slice {seed}: ours {mine:.0f}/s (loss {my_loss:.3f}), PyTorch {torch.__version__} "
              f"{other:.0f}/s (loss {their_loss:.3f}), ratio {mine / other:.2f}", flush=True)
    numbers = summary(pairs)
    numbers.update(threads=arguments.threads, steps=arguments.steps, torch=torch.__version__)
    print(json.dumps(numbers, indent=1))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
