"""FlashLinearAttention (fla): its Triton kernels, and its naive forms in tensor operations.

Needs flash-linear-attention 0.4 or newer, which needs PyTorch 2.7; the kernels (`…_chunk`) need a
card. The naive forms go token by token and compute in float32. Each mechanism is fed as fla's own
layer feeds it: unit keys for the delta rule, sigmoids for beta, log-sigmoids for gates.
"""

import importlib
import math

import torch
from torch.nn import functional

try:
    import fla
except Exception as error:  # an old PyTorch or Triton stops it in ways of their own
    fla, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if fla is None:
        return (
            "flash-linear-attention 0.4 or newer cannot be imported "
            f"({reason}): python3 -m pip install flash-linear-attention, for PyTorch 2.7 or newer"
        )
    return None


def without_card():
    if fla is not None and not torch.cuda.is_available():
        return "fla's kernels need a card that Triton compiles for"
    return unavailable()


def function_of(place):
    """The function "ops.gla:chunk_gla" of fla."""
    module, name = place.split(":")
    return getattr(importlib.import_module("fla." + module), name)


def by_token(*heads_first):
    return [x.transpose(1, 2) for x in heads_first]


def unit(x, epsilon=1e-6):
    return x / (x.square().sum(-1, keepdim=True) + epsilon).sqrt()


def positive(x):
    return functional.elu(x) + 1


def log_decays(heads, like):
    """Of RetNet, [H]: log(1 - 2^(-5 - h))."""
    return torch.log1p(-(2.0 ** (-5.0 - torch.arange(heads, dtype=like.dtype, device=like.device))))


# ---- definitions: a state, token by token, in the inputs' own precision


def recurrence(query, key, value, decay=None, beta=None):
    """S = diag(exp(decay)) S + beta k (v - [beta] S^T k)^T, y = S^T q / sqrt(D)."""
    state = torch.zeros_like(key[:, :, 0, :, None] * value[:, :, 0, None, :])
    rows = []
    for t in range(query.size(2)):
        k, v = key[:, :, t, :, None], value[:, :, t, None, :]
        if decay is not None:
            state = state * decay[:, :, t, :, None].exp()
        if beta is not None:
            v = beta[:, :, t, :, None] * (v - (k * state).sum(-2, keepdim=True))
        state = state + k * v
        rows.append((query[:, :, t, :, None] * state).sum(-2))
    return torch.stack(rows, 2) / query.size(-1) ** 0.5


def linear_by_token(query, key, value):
    query, key = positive(query), positive(key)
    ones = torch.ones_like(value[..., :1])
    return recurrence(query, key, value) / recurrence(query, key, ones)


def retention_by_token(query, key, value):
    decay = log_decays(query.size(1), query)[:, None, None].expand(query.shape[:3] + (1,))
    return recurrence(query, key, value, decay)


def gla_by_token(query, key, value, gate):
    return recurrence(query, key, value, functional.logsigmoid(gate) / 16)


def delta_by_token(query, key, value, beta):
    return recurrence(unit(query), unit(key), value, None, beta.sigmoid())


def gated_delta_by_token(query, key, value, beta, gate):
    return recurrence(unit(query), unit(key), value, functional.logsigmoid(gate), beta.sigmoid())


def rwkv7_parts(query, key, value, decay, rate):
    """Reads, writes, values, what is erased and by which key, log decays; no learned biases."""
    erased, rate = unit(key), rate.sigmoid()
    return query, key * rate, value, -erased, erased * rate, -math.exp(-0.5) * decay.sigmoid()


def rwkv7_by_token(query, key, value, decay, rate):
    """S = diag(exp(w)) S + b (a^T S) + k v^T, y = S^T q / sqrt(D)."""
    q, k, v, a, b, w = rwkv7_parts(query, key, value, decay, rate)
    state = torch.zeros_like(k[:, :, 0, :, None] * v[:, :, 0, None, :])
    rows = []
    for t in range(q.size(2)):
        read = (a[:, :, t, :, None] * state).sum(-2, keepdim=True)
        state = state * w[:, :, t, :, None].exp() + b[:, :, t, :, None] * read
        state = state + k[:, :, t, :, None] * v[:, :, t, None, :]
        rows.append((q[:, :, t, :, None] * state).sum(-2))
    return torch.stack(rows, 2) / q.size(-1) ** 0.5


# ---- what fla's functions are called with


def linear_naive(query, key, value):
    """Linear attention, fla's naive form."""
    # Its own normalisation is a kernel: a column of ones carries the sum of weights.
    values = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    mix = function_of("ops.linear_attn.naive:naive_recurrent_linear_attn")
    mixed = mix(*by_token(positive(query), positive(key), values), scale=1.0)[0].transpose(1, 2)
    return mixed[..., :-1] / mixed[..., -1:]


def linear_chunk(query, key, value):
    """Linear attention, fla's kernel."""
    mix = function_of("ops.linear_attn:chunk_linear_attn")
    parts = by_token(positive(query), positive(key), value)
    return mix(*parts, normalize=True)[0].transpose(1, 2)


def retention_naive(query, key, value):
    """Retention without rotations, fla's naive form."""
    return function_of("ops.retention.naive:naive_retention")(query, key, value)


def retention_chunk(query, key, value):
    """Retention without rotations, fla's kernel."""
    mix = function_of("ops.retention:chunk_retention")
    return mix(*by_token(query, key, value))[0].transpose(1, 2)


def gla_naive(query, key, value, gate):
    """Gated linear attention, fla's naive form."""
    mix = function_of("ops.gla.naive:naive_recurrent_gla")
    parts = by_token(query, key, value, functional.logsigmoid(gate) / 16)
    return mix(*parts)[0].transpose(1, 2)


def gla_chunk(query, key, value, gate):
    """Gated linear attention, fla's kernel."""
    mix = function_of("ops.gla:chunk_gla")
    parts = by_token(query, key, value, functional.logsigmoid(gate) / 16)
    return mix(*parts)[0].transpose(1, 2)


def delta_naive(query, key, value, beta):
    """DeltaNet, fla's naive form."""
    mix = function_of("ops.delta_rule.naive:delta_rule_recurrence")
    return mix(unit(query), unit(key), value, beta.sigmoid())[0]


def delta_chunk(query, key, value, beta):
    """DeltaNet, fla's kernel."""
    mix = function_of("ops.delta_rule:chunk_delta_rule")
    parts = by_token(unit(query), unit(key), value, beta.sigmoid()[..., 0])
    return mix(*parts)[0].transpose(1, 2)


def gated_delta_parts(query, key, value, beta, gate):
    scalars = beta.sigmoid()[..., 0], functional.logsigmoid(gate)[..., 0]
    names = ("q", "k", "v", "beta", "g")
    return dict(zip(names, by_token(unit(query), unit(key), value, *scalars), strict=True))


def gated_delta_naive(query, key, value, beta, gate):
    """Gated DeltaNet, fla's naive form."""
    mix = function_of("ops.gated_delta_rule.naive:naive_recurrent_gated_delta_rule")
    return mix(**gated_delta_parts(query, key, value, beta, gate))[0].transpose(1, 2)


def gated_delta_chunk(query, key, value, beta, gate):
    """Gated DeltaNet, fla's kernel."""
    mix = function_of("ops.gated_delta_rule:chunk_gated_delta_rule")
    return mix(**gated_delta_parts(query, key, value, beta, gate))[0].transpose(1, 2)


def rwkv7_naive(query, key, value, decay, rate):
    """RWKV-7 without its biases, fla's naive form."""
    mix = function_of("ops.generalized_delta_rule.dplr.naive:dplr_recurrence")
    return mix(*rwkv7_parts(query, key, value, decay, rate))[0]


def rwkv7_chunk(query, key, value, decay, rate):
    """RWKV-7 without its biases, fla's kernel."""
    mix = function_of("ops.generalized_delta_rule:chunk_dplr_delta_rule")
    parts = by_token(*rwkv7_parts(query, key, value, decay, rate))
    return mix(*parts, scale=query.size(-1) ** -0.5)[0].transpose(1, 2)


THREE = {"query": {"source": "query_tokens", "width": "head_dim"},
         "key": {"source": "key_tokens", "width": "head_dim"},
         "value": {"source": "key_tokens", "width": "value_dim"}}
SCALAR = {"source": "key_tokens", "width": 1}
KINDS = {"linear": (THREE, linear_by_token, linear_naive, linear_chunk),
         "retention": (THREE, retention_by_token, retention_naive, retention_chunk),
         "gla": ({**THREE, "gate": THREE["key"]}, gla_by_token, gla_naive, gla_chunk),
         "delta": ({**THREE, "beta": SCALAR}, delta_by_token, delta_naive, delta_chunk),
         "gated_delta": ({**THREE, "beta": SCALAR, "gate": SCALAR}, gated_delta_by_token,
                         gated_delta_naive, gated_delta_chunk),
         "rwkv7": ({**THREE, "decay": THREE["key"], "rate": THREE["key"]}, rwkv7_by_token,
                   rwkv7_naive, rwkv7_chunk)}


def declare(roles, definition, naive, chunk):
    for mix in (naive, chunk):
        mix.patterns = ["causal"]
        mix.roles = roles
        mix.reference = definition
        mix.packages = ["flash-linear-attention", "fla-core"]
        mix.claims = [] if definition is retention_by_token else ["heads_independent"]
        mix.growth = {"time_in_length": 1, "workspace_in_length": 1}
    naive.dtypes = ["float32"]
    chunk.dtypes, chunk.devices = ["bfloat16", "float16"], ["cuda"]
    chunk.unavailable = without_card


for kind in KINDS.values():
    declare(*kind)
retention_naive.growth = {"time_in_length": 2, "workspace_in_length": 2}
