#!/usr/bin/env python3
"""Times of the kernels as a Python program sees them, beside PyTorch's scaled_dot_product_attention.

    kernels_from_python.py [--lengths 128,512,2048] [--rounds 9] [--threads N] [--drop-in]

Each row is measured in turns (one call of each side, then the other first), so that both see the
same machine: the median of each side, the median of the ratios of pairs, and the ratios' quartiles.
`--drop-in` times attnbench.scaled_dot_product_attention over a grid of sizes in place of the table.
"""

import argparse
import itertools
import statistics
import time

import torch
import torch.nn.functional as F

import attnbench


def inputs(batch, heads, length, width, dtype, gradient):
    torch.manual_seed(0)
    return [one.requires_grad_(gradient) for one in torch.randn(3, batch, heads, length, width).to(dtype).unbind(0)]


def work(function, given, gradient):
    if not gradient:
        return lambda: function(*given)
    upstream = torch.randn_like(given[2])

    def both():
        torch.autograd.grad(function(*given), given, upstream)

    return both


def seconds_of(call, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def in_turns(ours, theirs, rounds):
    """Medians of both, and of theirs over ours with its quartiles."""
    for call in (ours, theirs, ours, theirs):
        call()
    repeats = [max(1, int(0.02 / max(1e-7, seconds_of(call, 1)))) for call in (ours, theirs)]
    times = ([], [])
    for i in range(rounds):
        for side in ((0, 1), (1, 0))[i % 2]:
            times[side].append(seconds_of((ours, theirs)[side], repeats[side]))
    ratios = [b / a for a, b in zip(*times)]
    return statistics.median(times[0]), statistics.median(times[1]), statistics.quantiles(ratios, n=4)


def text_of(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def row(name, ours, theirs, rounds):
    a, b, (low, middle, high) = in_turns(ours, theirs, rounds)
    print(f"| {name} | {text_of(a)} | {text_of(b)} | {middle:.2f} ({low:.2f} to {high:.2f}) |", flush=True)
    return low, middle, high


def table(lengths, rounds):
    print("| call | attnbench | PyTorch's SDPA | ratio (quartiles) |\n|---|---|---|---|")
    for length, (gradient, causal) in itertools.product(lengths, ((False, False), (False, True), (True, False), (True, True))):
        given = inputs(1, 8, length, 64, torch.float32, gradient)
        kind = f"{'causal' if causal else 'full'}, {'forward and backward' if gradient else 'forward'}, {length}"
        theirs = work(lambda *x, c=causal: F.scaled_dot_product_attention(*x, is_causal=c), given, gradient)
        names = ("softmax", "latte", "linear") if causal else ("softmax",)
        for name in names:
            ours = work(lambda *x, n=name, c=causal: attnbench.attention(*x, n, c), given, gradient)
            row(f"{name}, {kind}", ours, theirs, rounds)


def drop_in(lengths, rounds):
    """All sizes at which it is slower by more than the noise: none should be."""
    slower = 0
    print("| call | attnbench | PyTorch's SDPA | ratio (quartiles) |\n|---|---|---|---|")
    for length, width, (batch, heads), gradient, causal in itertools.product(
            lengths, (32, 64, 128), ((1, 1), (1, 8), (4, 4)), (False, True), (False, True)):
        given = inputs(batch, heads, length, width, torch.float32, gradient)
        ours = work(lambda *x, c=causal: attnbench.scaled_dot_product_attention(*x, is_causal=c), given, gradient)
        theirs = work(lambda *x, c=causal: F.scaled_dot_product_attention(*x, is_causal=c), given, gradient)
        _, _, high = row(f"[{batch}, {heads}, {length}, {width}]{' causal' if causal else ''}{' backward' if gradient else ''}", ours, theirs, rounds)
        slower += high < 0.97
    print(f"{slower} slower")


def overhead():
    query, key, value = inputs(1, 1, 1, 8, torch.float32, False)
    with torch.inference_mode():
        for name, call in (("attnbench.attention, linear", lambda: attnbench.attention(query, key, value, "linear")),
                           ("attnbench.attention, softmax", lambda: attnbench.attention(query, key, value, "softmax")),
                           ("F.scaled_dot_product_attention", lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True)),
                           ("torch.matmul", lambda: torch.matmul(query, key.transpose(-2, -1)))):
            call()
            found = [seconds_of(call, 2000) for _ in range(9)]
            print(f"{name} of one token: {statistics.median(found) * 1e6:.1f} µs ({min(found) * 1e6:.1f} to {max(found) * 1e6:.1f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="128,512,2048")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--drop-in", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    lengths = [int(word) for word in chosen.lengths.split(",")]
    print(f"PyTorch {torch.__version__}, {chosen.threads} threads, float32")
    if chosen.drop_in:
        drop_in(lengths, chosen.rounds)
        return
    overhead()
    print("\nsizes [1, 8, T, 64]; latte with 64 latents")
    table(lengths, chosen.rounds)


if __name__ == "__main__":
    main()
