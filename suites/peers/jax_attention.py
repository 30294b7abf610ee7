"""JAX's attention as XLA compiles it for the CPU: jax.nn.dot_product_attention, full and causal.

Needs jax 0.4.31 or newer. The function takes [B, T, H, D], so transposing to and from [B, H, T, D]
is compiled with it, and part of its time; its softmax is in float32 whatever it is given. Each call
waits until JAX has finished. The backward pass is JAX's derivative, from what its forward pass has
kept; tensors go by DLPack.
"""

import functools
import os

import torch

try:
    import jax

    attend = jax.nn.dot_product_attention
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    jax, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if jax is None:
        return f"jax 0.4.31 or newer cannot be imported ({reason}): python3 -m pip install jax"
    return None


@functools.cache
def compiled(causal):
    """The attention, the one that also keeps what its derivative needs, and the derivative."""
    # XLA starts its threads at the first call, and asks this variable for their number.
    os.environ["NPROC"] = str(torch.get_num_threads())

    def attention(query, key, value):
        by_token = [x.swapaxes(1, 2) for x in (query, key, value)]
        return attend(*by_token, is_causal=causal, implementation="xla").swapaxes(1, 2)

    return (jax.jit(attention), jax.jit(lambda *inputs: jax.vjp(attention, *inputs)),
            jax.jit(lambda pull, gradient: pull(gradient)))


def to_jax(tensor):
    return jax.dlpack.from_dlpack(tensor.detach().contiguous())


class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, causal, *inputs):
        arrays = [to_jax(x) for x in inputs]
        plain, keeping, ctx.derivative = compiled(causal)
        if any(ctx.needs_input_grad):
            output, ctx.pull = keeping(*arrays)
        else:
            output = plain(*arrays)
        return torch.from_dlpack(output.block_until_ready())

    @staticmethod
    def backward(ctx, gradient):
        found = ctx.derivative(ctx.pull, to_jax(gradient))
        return (None, *(torch.from_dlpack(x.block_until_ready()) for x in found))


def attention(query, key, value, causal: bool):
    """JAX's dot_product_attention, compiled by XLA."""
    if causal and query.size(2) != key.size(2):
        raise NotImplementedError("its causal triangle starts at the first key")
    if value.size(3) != key.size(3):
        raise NotImplementedError("its values are as wide as its keys")
    return Attend.apply(causal, query, key, value)


attention.patterns = ["bidirectional", "causal", "cross"]
attention.reference = "softmax"
attention.packages = ["jax", "jaxlib"]
attention.devices = ["cpu"]
attention.dtypes = ["float32"]
attention.shares_heads = True
attention.claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant",
                    "heads_independent"]
