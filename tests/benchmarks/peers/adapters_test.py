#!/usr/bin/env python3
"""The adapters of suites/peers/: well formed everywhere, and right where their packages are.

Each mechanism that is available is called on float32 inputs, an odd length included, and compared
with its definition in float64: values, and gradients where it has any. With a Python without
torch it ends with 77.
"""

import importlib.util
import inspect
import os
import sys
import unittest
import warnings
from pathlib import Path
from typing import NamedTuple

# They slow or break numpy's and torch's BLAS where they suit another build's.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = True
warnings.simplefilter("ignore")
try:
    import torch
except ImportError:
    print("skipped: needs torch: this Python has none")
    sys.exit(77)

FOLDER = Path(__file__).resolve().parents[3] / "suites/peers"


class Sizes(NamedTuple):
    batch: int
    heads: int
    kv_heads: int
    tokens: int
    keys: int
    width: int


WHOLE = (Sizes(2, 3, 3, 64, 64, 32), Sizes(1, 2, 2, 97, 97, 16), Sizes(2, 8, 2, 97, 97, 80))
CROSSED = (Sizes(2, 3, 3, 1, 130, 80), Sizes(1, 2, 2, 37, 101, 16), Sizes(2, 8, 2, 1, 130, 80))


def sizes_for(found, pattern):
    """Those that a mechanism takes: few do with fewer heads of keys than of queries."""
    several = CROSSED if pattern == "cross" else WHOLE
    if getattr(found, "shares_heads", False):
        return several
    return [sizes for sizes in several if sizes.kv_heads == sizes.heads]


def softmax(query, key, value, causal):
    shared = query.size(1) // key.size(1)
    key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), value)


def latte(query_logits, key_logits, value):
    """Dolga et al. 2024, eq. 10: p(l | t) times the mean of values so far by softmax over tokens."""
    shares = torch.softmax(query_logits, dim=-1)
    rows = []
    for t in range(value.size(2)):
        weights = torch.softmax(key_logits[:, :, : t + 1], dim=2)
        means = torch.einsum("bhsl,bhsd->bhld", weights, value[:, :, : t + 1])
        rows.append(torch.einsum("bhl,bhld->bhd", shares[:, :, t], means))
    return torch.stack(rows, 2)


NAMED = {"softmax": softmax, "latte": latte}


def load(file):
    spec = importlib.util.spec_from_file_location("peer_" + file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = {file.stem: load(file) for file in sorted(FOLDER.glob("*.py"))}


def mechanisms():
    """What a suite may name: whatever declares a reference, with its unavailable()."""
    for stem, module in MODULES.items():
        for name, found in vars(module).items():
            if getattr(found, "reference", None) is not None and callable(found):
                own = getattr(found, "unavailable", None) or getattr(module, "unavailable", None)
                yield f"{stem}.py:{name}", found, own


def called(function, available):
    """`function` with those of `available` that it takes by name."""
    names = inspect.signature(function).parameters
    return function(**{k: v for k, v in available.items() if k in names})


def made(found, sizes, causal):
    """The mechanism as a callable; a class gets the sizes that it asks for."""
    if not inspect.isclass(found):
        return found
    own = {"heads": sizes.heads, "kv_heads": sizes.kv_heads, "head_dim": sizes.width,
           "value_dim": sizes.width, "length": sizes.tokens, "key_length": sizes.keys,
           "causal": causal}
    torch.manual_seed(7)
    return called(found, own)


def definition_of(found, mixer, sizes, causal):
    if isinstance(found.reference, str):
        return NAMED[found.reference]
    definition = made(found.reference, sizes, causal)
    if isinstance(definition, torch.nn.Module):
        held = {k: v for k, v in mixer.state_dict().items() if k in definition.state_dict()}
        if set(held) != set(definition.state_dict()):
            raise AssertionError(f"the definition has more than {sorted(held)}")
        definition.load_state_dict(held)
        definition.double()
    return definition


def inputs_of(found, sizes, differentiable):
    batch, heads, kv_heads, tokens, keys, width = sizes
    roles = getattr(found, "roles", dict.fromkeys(("query", "key", "value"), {}))
    generator = torch.Generator().manual_seed(3)
    drawn = {}
    for name, role in roles.items():
        columns = role["width"] if isinstance(role.get("width"), int) else width
        rows = (heads, tokens) if name.startswith("query") else (kv_heads, keys)
        shape = (batch, *rows, columns)
        drawn[name] = torch.randn(shape, generator=generator).requires_grad_(differentiable)
    return drawn


def relative(ours, exact):
    return ((ours.double() - exact).abs().max() / exact.abs().max()).item()


class Declared(unittest.TestCase):
    """What must hold where no package is installed."""

    def test_every_file_declares_mechanisms(self):
        files = {place.split(":")[0] for place, _, _ in mechanisms()}
        self.assertEqual(files, {f"{stem}.py" for stem in MODULES})

    def test_every_mechanism_says_why_it_is_not_available(self):
        for place, found, unavailable in mechanisms():
            with self.subTest(place):
                self.assertTrue(callable(unavailable), "no unavailable()")
                reason = unavailable()
                self.assertTrue(reason is None or "need" in reason or "pip install" in reason)

    def test_every_mechanism_says_what_it_is(self):
        for place, found, _ in mechanisms():
            with self.subTest(place):
                self.assertTrue(getattr(found, "title", None) or found.__doc__)
                self.assertTrue(found.packages)
                takes = inspect.signature(found.forward if inspect.isclass(found) else found)
                self.assertTrue("causal" in takes.parameters or found.patterns)


class Right(unittest.TestCase):
    """Against the definition in float64; a test for each mechanism, added below."""

    def compare(self, place, found, sizes, causal):
        mixer = made(found, sizes, causal)
        definition = definition_of(found, mixer, sizes, causal)
        differentiable = getattr(found, "differentiable", True)
        inputs = inputs_of(found, sizes, differentiable)
        exact = {k: x.detach().double().requires_grad_() for k, x in inputs.items()}
        forward = mixer.forward if isinstance(mixer, torch.nn.Module) else mixer
        output = called(forward, {**inputs, "causal": causal})
        of_definition = getattr(definition, "forward", definition)
        expected = called(of_definition, {**exact, "causal": causal})
        self.assertEqual(output.shape, expected.shape)
        self.assertEqual(output.dtype, torch.float32)
        errors = {"value": relative(output.detach(), expected.detach())}
        if differentiable:
            upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(5))
            ours = torch.autograd.grad(output, list(inputs.values()), upstream)
            theirs = torch.autograd.grad(expected, list(exact.values()), upstream.double())
            for name, own, other in zip(inputs, ours, theirs, strict=True):
                errors["gradient of " + name] = relative(own, other)
        worst = max(errors, key=errors.get)
        print(f"{place} {'causal' if causal else 'full'} {tuple(sizes)}: {worst} {errors[worst]:.1e}")
        self.assertLess(errors[worst], 2e-5, errors)


def test_of(place, found, unavailable):
    def test(self):
        reason = unavailable()
        if reason is None and "cuda" in getattr(found, "devices", []):
            reason = "for cards alone"
        if reason is not None:
            self.skipTest(f"{place}: {reason}")
        for pattern in getattr(found, "patterns", ["bidirectional", "causal"]):
            for sizes in sizes_for(found, pattern):
                with self.subTest(place, sizes=sizes, pattern=pattern):
                    self.compare(place, found, sizes, pattern == "causal")

    return test


for place_of, mechanism, why_not in mechanisms():
    name_of = "test_" + place_of.replace(".py:", "_")
    setattr(Right, name_of, test_of(place_of, mechanism, why_not))

if __name__ == "__main__":
    unittest.main()
