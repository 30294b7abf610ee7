"""Hugging Face transformers: Mamba's selective scan in tensor operations, token by token.

Needs transformers 5 or newer, of which it is the form where mamba-ssm's kernels are not installed.
Published models have one key and query for all channels: kv_heads=1. Decays are e^(-n delta).
"""

import torch
from torch.nn import functional

try:
    from transformers.models.mamba.modeling_mamba import mamba_selective_scan
except Exception as error:  # an old PyTorch stops it in ways of its own
    mamba_selective_scan, reason = None, f"{type(error).__name__}: {error}"

STATE = 16


def unavailable():
    if mamba_selective_scan is None:
        return (
            f"transformers 5 or newer cannot be imported ({reason}): "
            "python3 -m pip install transformers"
        )
    return None


def rates(like):
    return -torch.arange(1, STATE + 1, dtype=like.dtype, device=like.device)


def mamba_by_token(query, key, value, time_step):
    """h_n = e^(-n delta) h_n + delta x B_n, y = sum_n C_n h_n + x, in the inputs' precision."""
    shared = value.size(1) // key.size(1)
    query, key = query.repeat_interleave(shared, 1), key.repeat_interleave(shared, 1)
    step = functional.softplus(time_step)
    state = torch.zeros_like(value[:, :, 0, :, None] * key[:, :, 0, None, :])
    rows = []
    for t in range(value.size(2)):
        delta = step[:, :, t, :, None]
        written = delta * value[:, :, t, :, None] * key[:, :, t, None, :]
        state = state * (delta * rates(value)).exp() + written
        rows.append((state * query[:, :, t, None, :]).sum(-1))
    return torch.stack(rows, 2) + value


def mamba_naive(query, key, value, time_step):
    """Mamba's selective scan, transformers' form without kernels."""
    groups, width = key.size(1), value.size(3)

    def channels(x, group):
        return x.unflatten(1, (groups, -1))[:, group].transpose(2, 3).flatten(1, 2)

    outputs = []
    for g in range(groups):
        x, step = channels(value, g), channels(time_step, g)
        rate = rates(x).expand(x.size(1), -1)
        read, written = query[:, g].transpose(1, 2), key[:, g].transpose(1, 2)
        skip = torch.ones_like(rate[:, 0])
        y = mamba_selective_scan(x, step, rate, written, read, skip, delta_softplus=True)
        outputs.append(y.unflatten(1, (-1, width)).transpose(2, 3))
    return torch.cat(outputs, 1)


mamba_naive.patterns = ["causal"]
mamba_naive.roles = {"query": {"source": "key_tokens", "width": STATE},
                     "key": {"source": "key_tokens", "width": STATE},
                     "value": {"source": "query_tokens", "width": "value_dim"},
                     "time_step": {"source": "query_tokens", "width": "value_dim"}}
mamba_naive.reference = mamba_by_token
mamba_naive.packages = ["transformers"]
mamba_naive.claims = ["heads_independent"]
mamba_naive.growth = {"time_in_length": 1, "workspace_in_length": 1}
mamba_naive.dtypes = ["float32"]
