#!/usr/bin/env python3
"""What the peers by PyTorch compute, held to loops in double on the CPU. Needs PyTorch 2.5 or newer."""

import math
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import peer_case
import peer_softmax
import peers

try:
    import torch
    import torch.nn.attention.flex_attention as flex_module
except ImportError as error:
    print("needs PyTorch:", error)
    sys.exit(0)


def case_of(text):
    return peer_case.parse_case(text + "/attnbench/iterations:1/manual_time")


def softmax(values):
    most = max(values)
    weights = [math.exp(x - most) for x in values]
    return [w / sum(weights) for w in weights]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def pool_row(case, q, k, v, w, t):
    """Row t of one head, all arguments lists of rows; w holds a direction for each column."""
    if w is not None:
        columns = list(zip(*w))
        q = [[dot(x, c) for c in columns] for x in q]
        k = [[dot(x, c) - dot(x, x) / 2 for c in columns] for x in k]
    columns = list(zip(*k))
    averages = [[dot(softmax(c), u) for u in zip(*v)] for c in columns]
    normaliser = [math.log(sum(map(math.exp, c))) for c in columns]
    logits = q[t] if case["family"] == "whole_pool" else [a + b for a, b in zip(q[t], normaliser)]
    return [dot(softmax(logits), u) for u in zip(*averages)]


class Functions(unittest.TestCase):
    def inputs(self, case):
        torch.manual_seed(5)
        return [torch.randn(shape) for shape in peers.FAMILIES[case["family"]].shapes(case)]

    def test_pools_by_operations(self):
        for family in ("whole_pool", "whole_pool_normaliser", "whole_pool_directed"):
            case = case_of(f"{family}_forward/fp32/B:2/H:2/T:7/L:5/D:3")
            makers = dict(peers.peers_of(torch, case, "cpu"))
            torch.manual_seed(3)
            function = makers["torch_ops"]()
            torch.manual_seed(3)
            w = torch.randn(3, 5).tolist() if family.endswith("directed") else None
            arrays = self.inputs(case)
            out = function(*arrays)
            for b, h, t in ((0, 0, 0), (1, 0, 6), (1, 1, 3)):
                rows = [x[b, h].double().tolist() for x in arrays]
                for got, want in zip(out[b, h, t].tolist(), pool_row(case, *rows, w, t)):
                    self.assertAlmostEqual(got, want, places=5)

    def test_windows_and_biases_by_flex(self):
        # As it is: compiling it would take a minute.
        compiled, peer_softmax.compiled_flex = (peer_softmax.compiled_flex,
                                                lambda torch: flex_module.flex_attention)
        try:
            for family in ("softmax", "biased_softmax"):
                case = case_of(f"{family}_forward/fp32/B:1/H:2/T:128/D:16/causal:1/window:5")
                torch.manual_seed(3)
                function = dict(peers.peers_of(torch, case, "cpu"))["torch_flex"]()
                torch.manual_seed(3)
                bias = torch.randn(5).tolist() if family == "biased_softmax" else [0.0] * 5
                q, k, v = arrays = self.inputs(case)
                out = function(*arrays)
                for h, t in ((0, 0), (1, 3), (0, 127)):
                    seen = range(max(0, t - 4), t + 1)
                    rows = [x[0, h].double().tolist() for x in arrays]
                    weights = softmax([dot(rows[0][t], rows[1][s]) / 4 + bias[t - s] for s in seen])
                    want = [dot(weights, u) for u in zip(*(rows[2][s] for s in seen))]
                    for got, expected in zip(out[0, h, t].tolist(), want):
                        self.assertAlmostEqual(got, expected, places=5)
        finally:
            peer_softmax.compiled_flex = compiled

    def test_a_pass_gives_what_it_says_on_every_set(self):
        for text, rows in (("slots_pack_forward/fp32/B:1/H:2/T:32/L:4/D:8", [(1, 2, 4, 8)]),
                           ("slots_read_forward/fp32/B:1/H:2/T:32/L:4/D:8", [(1, 2, 32, 8)]),
                           ("whole_pool_backward/fp32/B:1/H:2/T:9/L:4/D:3",
                            [(1, 2, 9, 4), (1, 2, 9, 4), (1, 2, 9, 3)]),
                           ("softmax_forward_backward/fp32/B:1/H:2/T:9/D:8/causal:1/window:0",
                            [(1, 2, 9, 8)] * 3)):
            case = case_of(text)
            name = "sdpa_math" if "T:32" in text or "softmax" in text else "torch_ops"
            maker = dict(peers.peers_of(torch, case, "cpu"))[name]
            body, sets = peers.bodies(torch, case, maker(), "cpu", l2_bytes=4096)
            self.assertGreaterEqual(sets, 2)
            for i in range(sets):
                result = body(i)
                result = [result] if torch.is_tensor(result) else result
                self.assertEqual([tuple(x.shape) for x in result], rows)


if __name__ == "__main__":
    unittest.main()
