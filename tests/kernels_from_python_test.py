#!/usr/bin/env python3
"""The kernels as operators of PyTorch, in the Python whose PyTorch they were built with.

    kernels_from_python_test.py [PROGRAM OPERATORS] [UNITTEST'S ARGUMENTS]
        PROGRAM: the built attnbench; OPERATORS: libattnbench-operators.so of that build
        without both, as of an installed wheel: those of the package attnbench

Ends with 77 where this Python has no PyTorch or NumPy.
"""

import doctest
import itertools
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = None
if len(sys.argv) > 2 and sys.argv[2].endswith(".so"):
    PROGRAM = sys.argv[1]
    os.environ["ATTNBENCH_OPERATORS"] = sys.argv[2]
    sys.argv[1:3] = []
    sys.path.insert(0, str(ROOT / "python/src"))

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: needs NumPy and PyTorch in {sys.executable}: {missing}")
    sys.exit(77)

import attnbench  # noqa: E402

MODERN = hasattr(torch.library, "opcheck")
FUNCTIONS = ("softmax", "window", "linear", "latte", "retention", "cosformer")
# Modules with a state, and what they need besides their sizes.
MODULES = {"softmax": {}, "window": {"window": {"left": 8, "right": 0}}, "linear": {}, "latte": {"latents_per_head": 8}, "performer": {"features": 16},
           "luna": {"latents_per_head": 4}, "lavo": {}, "rg_lru": {}, "retention": {}, "delta": {}, "fox": {}, "mla": {}, "gla": {}, "hgrn2": {}, "rwkv7": {},
           "mamba": {}, "mamba2": {}, "moba": {"block": 8}, "nsa": {"block": 8}, "abc": {}, "perceiver": {"latents_per_head": 4}, "macchiato": {"latents_per_head": 8}}


def tensors(*shape, count=3, dtype=torch.float32):
    torch.manual_seed(7)
    return tuple(torch.randn(count, *shape, dtype=torch.float64).to(dtype).unbind(0))


def inputs_of(module, tokens, dtype=torch.float64, batch=2):
    """Random inputs by role, those of gates in their range."""
    torch.manual_seed(5)
    shapes = module.input_shapes(batch, tokens)
    return {name: torch.rand(shape, dtype=torch.float64).to(dtype).mul(0.8).add(0.1) if "gate" in name or name in ("beta", "time_step")
            else torch.randn(shape, dtype=torch.float64).to(dtype) for name, shape in shapes.items()}


def in_child(queue):
    query, key, value = tensors(1, 2, 40, 8)
    torch.set_num_threads(1)  # as a DataLoader's workers have it
    queue.put(attnbench.attention(query, key, value, "linear").sum().item())


class Values(unittest.TestCase):
    @unittest.skipIf(PROGRAM is None, "without the program of the same build")
    def test_a_call_agrees_bit_for_bit_with_apply(self):
        for name in FUNCTIONS:
            for pattern in ("causal", "bidirectional"):
                if pattern == "bidirectional" and name == "retention":
                    continue
                given = tensors(2, 3, 50, 16)
                roles = ("query_logits", "key_logits", "value") if name == "latte" else ("query", "key", "value")
                with self.subTest(name=name, pattern=pattern), tempfile.TemporaryDirectory() as folder:
                    words = []
                    for role, tensor in zip(roles, given):
                        file = os.path.join(folder, role + ".npy")
                        numpy.save(file, tensor.numpy())
                        words += ["--role", f"{role}={file}"]
                    subprocess.run([PROGRAM, "apply", name, "--pattern", pattern, "--out", folder + "/out",
                                    "--threads", str(torch.get_num_threads()), *words], check=True, capture_output=True)
                    ours = attnbench.attention(*given, name, pattern == "causal")
                    self.assertEqual(ours.numpy().tobytes(), numpy.load(folder + "/out/output.npy").tobytes())

    def test_softmax_is_softmax(self):
        query, key, value = tensors(2, 4, 33, 16, dtype=torch.float64)
        scores = query @ key.transpose(-2, -1) / 4
        hidden = torch.ones(33, 33, dtype=torch.bool).triu(1)
        want = torch.softmax(scores.masked_fill(hidden, -float("inf")), -1) @ value
        for one in (attnbench.attention(query, key, value, "softmax"),
                    attnbench.Mechanism("softmax", 4, 16)(query, key, value)):
            self.assertLess((one - want).abs().max().item(), 1e-13)

    def test_strides_key_heads_masks_and_16_bits(self):
        query, key, value = tensors(2, 4, 33, 16)
        plain = attnbench.attention(query, key, value, "softmax")
        strided = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in (query, key, value)]
        self.assertFalse(strided[0].is_contiguous())
        self.assertTrue(torch.equal(attnbench.attention(*strided, "softmax"), plain))
        shared = attnbench.attention(query, key[:, :2], value[:, :2], "softmax")
        spread = attnbench.attention(query, key[:, :2].repeat_interleave(2, 1), value[:, :2].repeat_interleave(2, 1), "softmax")
        self.assertLess((shared - spread).abs().max().item(), 1e-5)
        mask = torch.ones(2, 33, dtype=torch.bool)
        mask[:, 20:] = False
        masked = attnbench.attention(query, key, value, "softmax", False, key_mask=mask)
        short = attnbench.attention(query, key[:, :, :20], value[:, :, :20], "softmax", False)
        self.assertLess((masked - short).abs().max().item(), 1e-5)
        window = {"left": 4, "right": 0}
        seen = torch.ones(33, 33, dtype=torch.bool).tril().triu(-4)
        scores = (query @ key.transpose(-2, -1) / 4).masked_fill(~seen, -float("inf"))
        near = attnbench.attention(query, key, value, "window", window=window)
        self.assertLess((near - torch.softmax(scores, -1) @ value).abs().max().item(), 1e-5)
        narrow = attnbench.attention(*(one.bfloat16() for one in (query, key, value)), "softmax")
        self.assertEqual(narrow.dtype, torch.bfloat16)
        self.assertLess((narrow.float() - plain).abs().max().item(), 0.03)

    def test_steps_give_what_the_whole_gives(self):
        for name, options in MODULES.items():
            with self.subTest(name=name):
                module = attnbench.Mechanism(name, 2, 8, dtype=torch.float64, **options)
                inputs = inputs_of(module, 24)
                whole = module(**inputs)
                state = module.empty_state(2, 24, dtype=torch.float64)
                parts, position = [], 0
                for count in (10, 1, 1, 5, 7):
                    part = {role: one if one.size(2) != 24 else one[:, :, position:position + count]
                            for role, one in inputs.items()}
                    parts.append(module.step(**part, state=state, position=position))
                    position += count
                self.assertLess((torch.cat(parts, 2) - whole).abs().max().item(), 1e-9)

    def test_a_state_is_updated_in_place(self):
        module = attnbench.Mechanism("linear", 2, 8)
        state = module.empty_state(1, 4)
        before = {name: (one.data_ptr(), one.clone()) for name, one in state.items()}
        module.step(*tensors(1, 2, 1, 8), state=state, position=0)
        self.assertEqual({name: one.data_ptr() for name, one in state.items()}, {name: one[0] for name, one in before.items()})
        self.assertTrue(any(not torch.equal(state[name], one[1]) for name, one in before.items()))


class Gradients(unittest.TestCase):
    def test_functions_pass_gradcheck(self):
        for name in FUNCTIONS:
            with self.subTest(name=name):
                leaves = [one.requires_grad_() for one in tensors(1, 2, 7, 4, dtype=torch.float64)]
                self.assertTrue(torch.autograd.gradcheck(lambda *given, name=name: attnbench.attention(*given, name), leaves))

    def test_one_key_has_gradients_of_zero(self):
        for name, *sizes in (("softmax", (1, 2), (5, 1)), ("window", (1, 2), (1, 1))):
            for (tokens, heads), dtype in itertools.product(sizes, (torch.float32, torch.float64, torch.bfloat16)):
                with self.subTest(name=name, tokens=tokens, dtype=dtype):
                    query = torch.randn(1, 2, tokens, 4, dtype=dtype).requires_grad_()
                    key, value = (torch.randn(1, heads, 1, 4, dtype=dtype).requires_grad_() for _ in range(2))
                    with torch.no_grad():
                        query[..., 0] = float("inf")  # weights are 1 all the same
                        alone = attnbench.attention(query, key, value, name, False)
                    output = attnbench.attention(query, key, value, name, False)
                    self.assertTrue(torch.equal(output, alone))
                    self.assertTrue(torch.equal(output, value.expand(1, 2, tokens, 4)))
                    gradients = torch.autograd.grad(output.sum(), (query, key, value))
                    for gradient, of, want in zip(gradients, (query, key, value), (0, 0, 2 * tokens // heads)):
                        self.assertTrue(torch.equal(gradient, torch.full_like(of, want)))

    def test_modules_pass_gradcheck_with_their_parameters(self):
        for name, options in {"lavo": {}, "mamba2": {}, "rg_lru": {}, "performer": {"features": 4}, "linformer": {"projected_length": 3}}.items():
            with self.subTest(name=name):
                module = attnbench.Mechanism(name, 2, 4, dtype=torch.float64, causal=name != "linformer", length=6, **options)
                inputs = inputs_of(module, 6, batch=1)
                leaves = [one.requires_grad_() for one in inputs.values()]
                parameters = [one for one in module.parameters()]
                self.assertEqual(len(parameters) > 0, name != "performer")
                self.assertTrue(torch.autograd.gradcheck(
                    lambda *_, module=module, leaves=leaves: module(*leaves), (*leaves, *parameters), nondet_tol=1e-12))

    def test_training_changes_what_comes_out(self):
        module = attnbench.Mechanism("lavo", 2, 8)
        given = tensors(1, 2, 30, 8)
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            loss = module(*given).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])
        other = attnbench.Mechanism("lavo", 2, 8, seed=3)
        self.assertFalse(torch.equal(other(*given), module(*given)))
        other.load_state_dict(module.state_dict())
        self.assertTrue(torch.equal(other(*given), module(*given)))

    def test_two_modules_keep_their_weights_apart(self):
        one, two = (attnbench.Mechanism("lavo", 2, 8, seed=seed) for seed in (1, 2))
        given = tensors(1, 2, 30, 8)
        first = one(*given)
        (one(*given).square() * 1 + two(*given).square() * 0).sum().backward()
        sizes = [sum(weight.grad.abs().sum().item() for weight in module.parameters()) for module in (one, two)]
        self.assertGreater(sizes[0], 0)
        self.assertEqual(sizes[1], 0)
        self.assertTrue(torch.equal(one(*given), first))


class Surroundings(unittest.TestCase):
    def test_inference_mode_threads_and_forks(self):
        query, key, value = tensors(1, 2, 40, 8)
        want = attnbench.attention(query, key, value, "linear")
        with torch.inference_mode():
            self.assertTrue(torch.equal(attnbench.attention(query, key, value, "linear"), want))
        found = []
        threads = [threading.Thread(target=lambda: found.append(attnbench.attention(query, key, value, "linear"))) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertTrue(all(torch.equal(one, want) for one in found) and len(found) == 4)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=in_child, args=(queue,))
        child.start()
        self.assertAlmostEqual(queue.get(timeout=60), want.sum().item(), places=3)
        child.join()

    def test_autocast_leaves_the_mix_alone(self):
        query, key, value = tensors(1, 2, 40, 8)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = attnbench.attention(query, key, value, "latte", implementation="composite")
        self.assertEqual(inside.dtype, torch.float32)
        self.assertTrue(torch.equal(inside, attnbench.attention(query, key, value, "latte", implementation="composite")))

    @unittest.skipUnless(MODERN, "PyTorch before 2.4 has no opcheck")
    def test_opcheck_compile_and_export(self):
        given = [one.requires_grad_() for one in tensors(1, 2, 12, 4)]
        call, order = attnbench.kernels._attention_call("linear", "auto", "causal", ())
        torch.library.opcheck(torch.ops.attnbench.mix.default, ([given[i] for i in order], [], None, call))
        module = attnbench.Mechanism("lavo", 2, 4)
        compiled = torch.compile(lambda *x: attnbench.attention(*x, "latte") + module(*x), fullgraph=True, backend="aot_eager")
        want = attnbench.attention(*given, "latte") + module(*given)
        got = compiled(*given)
        self.assertLess((got - want).abs().max().item(), 1e-5)
        leaves = [*given, *module.parameters()]
        for a, b in zip(torch.autograd.grad(got.square().sum(), leaves), torch.autograd.grad(want.square().sum(), leaves)):
            self.assertLess((a - b).abs().max().item(), 1e-4)
        exported = torch.export.export(module, tuple(one.detach() for one in given))
        self.assertTrue(torch.equal(exported.module()(*(one.detach() for one in given)), module(*given)))

    @unittest.skipUnless(hasattr(torch.nn.functional, "scaled_dot_product_attention"), "PyTorch before 2.0")
    def test_the_drop_in_is_what_it_replaces(self):
        theirs = torch.nn.functional.scaled_dot_product_attention
        query, key, value = tensors(2, 4, 70, 16)
        self.assertTrue(attnbench.kernels._ours_is_faster(query, key, value))
        self.assertFalse(attnbench.kernels._ours_is_faster(query[:, :, :8], key[:, :, :8], value[:, :, :8]))
        mask = torch.randn(70, 70)
        for more in ({}, {"is_causal": True}, {"attn_mask": mask}, {"scale": 0.3}, {"scale": 0.3, "is_causal": True}):
            with self.subTest(more=more):
                ours = attnbench.scaled_dot_product_attention(query, key, value, **more)
                self.assertLess((ours - theirs(query, key, value, **more)).abs().max().item(), 1e-5)
        flat = [one[0, 0] for one in (query, key, value)]
        self.assertTrue(torch.equal(attnbench.scaled_dot_product_attention(*flat), theirs(*flat)))


class Examples(unittest.TestCase):
    @unittest.skipUnless(hasattr(torch.nn.functional, "scaled_dot_product_attention"), "PyTorch before 2.0")
    def test_examples_of_the_docstrings(self):
        failed, tried = doctest.testmod(attnbench.kernels)
        self.assertEqual(failed, 0)
        self.assertGreaterEqual(tried, 10)

    def test_the_public_names_are_documented(self):
        for name in attnbench.kernels.__all__:
            self.assertTrue(getattr(attnbench, name).__doc__, name)


class Refusals(unittest.TestCase):
    def refused(self, error, words, *given, **more):
        with self.assertRaises(error) as caught:
            attnbench.attention(*given, **more)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_each_bad_input_says_what_was_expected(self):
        query, key, value = tensors(2, 4, 33, 16)
        good = (query, key, value)
        self.refused(ValueError, ["query", "[4, 33, 16]", "3 dimensions", "[batch, heads, tokens, width]"], *(one[0] for one in good), mechanism="linear")
        self.refused(ValueError, ["empty"], *(one[:, :, :0] for one in good), mechanism="linear")
        self.refused(ValueError, ["Int", "float32, float64, bfloat16 or float16"], *(one.int() for one in good), mechanism="linear")
        self.refused(ValueError, ["value", "Double", "one dtype"], query, key, value.double(), mechanism="linear")
        self.refused(ValueError, ["one batch size"], query[:1], key, value, mechanism="linear")
        self.refused(ValueError, ["as many key tokens as query tokens"], query[:, :, :5], key, value, mechanism="linear")
        self.refused(ValueError, ["key_mask", "expected [2, 33]"], *good, mechanism="linear", key_mask=torch.ones(2, 5, dtype=torch.bool))
        self.refused(ValueError, ["key_mask", "Float"], *good, mechanism="linear", key_mask=torch.ones(2, 33))
        self.refused(ValueError, ["linera", "linear"], *good, mechanism="linera")
        self.refused(ValueError, ["chunck", "chunk"], *good, mechanism="linear", chunck=3)
        self.refused(ValueError, ["chunk", "nan"], *good, mechanism="linear", chunk=float("nan"))
        self.refused(ValueError, ["lavo has weights", "attnbench.Mechanism"], *good, mechanism="lavo")
        self.refused(ValueError, ["beta", "attnbench.Mechanism"], *good, mechanism="delta")
        self.refused(ValueError, ["no implementation fsat"], *good, mechanism="linear", implementation="fsat")
        self.refused(NotImplementedError, ["bidirectional is undefined"], *good, mechanism="retention", causal=False)

    def test_modules_refuse_wrong_roles_and_weights(self):
        query, key, value = tensors(1, 2, 20, 8)
        module = attnbench.Mechanism("lavo", 2, 8)
        with self.assertRaisesRegex(ValueError, "takes query, key, value; missing: value"):
            module(query, key)
        with self.assertRaisesRegex(ValueError, "has no role 'valeu'"):
            module(query, key, valeu=value)
        with self.assertRaisesRegex(ValueError, "given twice"):
            module(query, key, value, key=key)
        with self.assertRaisesRegex(ValueError, "the weight bases is Double"):
            attnbench.Mechanism("lavo", 2, 8).double()(query, key, value)
        with self.assertRaisesRegex(NotImplementedError, "continues from a state"):
            attnbench.Mechanism("softmax", 2, 8, causal=False).step(query, key, value, state={}, position=0)
        with self.assertRaisesRegex(ValueError, "before"):
            attnbench.Mechanism("latte", 2, 8, before="short_convolution")

    def test_other_operators_are_refused_in_one_sentence(self):
        library = attnbench.kernels._library()
        if not library.is_file():
            self.skipTest("the operators are not where this test looks")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / library.name
            copy.write_bytes(b"no library")
            code = "import attnbench; attnbench.attention"
            for note, words in (("1.9.0", ["were built with PyTorch 1.9.0", torch.__version__, "pip install 'torch==1.9.*'"]),
                                (torch.__version__, ["cannot be loaded into PyTorch"])):
                copy.with_suffix(".torch").write_text(note)
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env={
                    **os.environ, "ATTNBENCH_OPERATORS": str(copy), "PYTHONPATH": os.pathsep.join(sys.path)})
                self.assertNotEqual(done.returncode, 0)
                for word in words:
                    self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
