"""Latte as its authors have it: a scan over tokens in JAX, compiled by XLA; tensors go by DLPack.

Needs jax 0.4.30 or newer. Written from the equations (20) and (21) of Dolga et al. 2024: a running
maximum, normaliser and sum for each latent. Each call waits until JAX has finished. The backward
pass is JAX's derivative of the scan, which computes it anew.
"""

import functools

import torch

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # for the check in float64
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    jax, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if jax is None:
        return f"jax 0.4.30 or newer cannot be imported ({reason}): python3 -m pip install jax"
    return None


def scan(query_logits, key_logits, value):
    """[B, H, T, L], [B, H, T, L] and [B, H, T, D] to [B, H, T, D]."""
    exact = jnp.promote_types(value.dtype, jnp.float32)
    shares = jax.nn.softmax(query_logits.astype(exact), axis=-1)
    tokens = [jnp.moveaxis(x.astype(exact), 2, 0) for x in (shares, key_logits, value)]
    latents = key_logits.shape[:2] + key_logits.shape[3:]

    def token(carry, now):
        maximum, normaliser, total = carry
        share, logit, here = now
        risen = jnp.maximum(maximum, logit)
        kept, added = jnp.exp(maximum - risen), jnp.exp(logit - risen)
        normaliser = kept * normaliser + added
        total = kept[..., None] * total + added[..., None] * here[..., None, :]
        return (risen, normaliser, total), jnp.einsum("bhl,bhld->bhd", share / normaliser, total)

    start = (jnp.full(latents, -jnp.inf, exact), jnp.zeros(latents, exact),
             jnp.zeros((*latents, value.shape[-1]), exact))
    return jnp.moveaxis(jax.lax.scan(token, start, tokens)[1], 0, 2).astype(value.dtype)


@functools.cache
def compiled():
    """The scan, and its derivative."""

    def pulled(gradient, *inputs):
        return jax.vjp(scan, *inputs)[1](gradient)

    return jax.jit(scan), jax.jit(pulled)


def to_jax(tensors):
    return [jax.dlpack.from_dlpack(x.detach().contiguous()) for x in tensors]


class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return torch.from_dlpack(compiled()[0](*to_jax(inputs)).block_until_ready())

    @staticmethod
    def backward(ctx, gradient):
        found = compiled()[1](*to_jax([gradient, *ctx.saved_tensors]))
        return tuple(torch.from_dlpack(x.block_until_ready()) for x in found)


def latte(query_logits, key_logits, value):
    """Latte by a scan over tokens in JAX, as many latents as a head is wide."""
    return Scan.apply(query_logits, key_logits, value)


latte.citation = "Dolga et al. 2024, arXiv:2402.17512"
latte.patterns = ["causal"]
latte.roles = {"query_logits": {"source": "query_tokens", "width": "head_dim"},
               "key_logits": {"source": "key_tokens", "width": "head_dim"},
               "value": {"source": "key_tokens", "width": "value_dim"}}
latte.reference = "latte"
latte.packages = ["jax", "jaxlib"]
latte.dtypes = ["float32", "float64"]
latte.claims = ["rows_sum_to_one", "linear_in_value", "heads_independent"]
