"""The cases of agree.py: mechanisms of ours, and the packages' functions that they are held to.

What a published layer does around the function (unit keys, sigmoids, rotations) is done here, as our
mechanism does it.
"""

import dataclasses
import functools
import itertools
import math
import sys
import types
from collections.abc import Callable

import torch
from torch.nn import functional

# Batch, heads, tokens, width of keys, width of values: odd ones, and more tokens than our chunks.
SIZES = ((2, 3, 37, 5, 7), (1, 2, 129, 33, 16), (1, 4, 200, 16, 31))


def plain_widths(keys, values):
    return {"query": keys, "key": keys, "value": values}


@dataclasses.dataclass
class Case:
    """One mechanism of ours against one function of a package.

    inputs: widths of the roles, as a function of the widths of keys and values.
    parameters: the mechanism's, what apply calls them: their shapes as functions of a size.
    theirs: takes the same tensors, [B, H, T, width], and parameters, and returns [B, H, T, Dv].
    """

    name: str
    mechanism: str
    against: str
    theirs: Callable
    inputs: Callable = plain_widths
    parameters: dict = dataclasses.field(default_factory=dict)
    options: dict = dataclasses.field(default_factory=dict)
    constants: tuple = ()  # parameters that are not trained: without a gradient
    shared: tuple = ()  # roles of one head, which all others share
    pattern: str = "causal"
    sizes: tuple = SIZES
    key_heads: int = 0  # of keys and values; 0 = as many as heads


def by_token(*heads_first):
    """[B, T, H, …] of [B, H, T, …]; both ways."""
    turned = tuple(x.transpose(1, 2) for x in heads_first)
    return turned[0] if len(turned) == 1 else turned


def unit(x, epsilon=1e-6):
    return x / ((x * x).sum(-1, keepdim=True) + epsilon).sqrt()


def turned(x, direction=1):
    """Pairs of channels rotated by their position, as RetNet does; an odd last one is not."""
    even = x.size(-1) // 2 * 2
    place = torch.arange(x.size(2), dtype=x.dtype)
    rate = 10000.0 ** (-torch.arange(0, even, 2, dtype=x.dtype) / max(even, 1))
    angle = direction * place[:, None] * rate
    first, second = x[..., 0:even:2], x[..., 1:even:2]
    pairs = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
    return torch.cat([torch.stack(pairs, -1).flatten(-2), x[..., even:]], -1)


def log_decay(gate, a_log, bias):
    """-exp(a_log) softplus(gate + bias), a_log and bias of each head."""
    return -a_log.exp()[:, None] * functional.softplus(gate + bias[:, None])


# ---- the packages' functions, fed as their layers feed them


def retention(query, key, value):
    from fla.ops.retention.naive import naive_retention

    return naive_retention(turned(query), turned(key), value)


def lightning(query, key, value):
    from fla.ops.simple_gla.naive import naive_recurrent_simple_gla

    heads, tokens = query.shape[1:3]
    decay = -8.0 * torch.arange(heads, dtype=query.dtype) / heads
    decay = decay[:, None].expand(query.size(0), heads, tokens)
    return by_token(naive_recurrent_simple_gla(*by_token(query, key, value, decay))[0])


def delta(query, key, value, beta):
    from fla.ops.delta_rule.naive import delta_rule_recurrence

    return delta_rule_recurrence(unit(query), unit(key), value, beta.sigmoid())[0]


def gated_delta(query, key, value, beta, gate, a_log, bias):
    from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule

    decay = log_decay(gate, a_log, bias)[..., 0]
    parts = by_token(unit(query), unit(key), value, beta.sigmoid()[..., 0], decay)
    return by_token(naive_recurrent_gated_delta_rule(*parts)[0])


def gated_delta_chunks(query, key, value, beta, gate, a_log, bias):
    from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule

    decay = log_decay(gate, a_log, bias)[..., 0]
    parts = by_token(unit(query), unit(key), value, decay, beta.sigmoid()[..., 0])
    return by_token(naive_chunk_gated_delta_rule(*parts)[0])


def kda(query, key, value, beta, gate, a_log, bias):
    from fla.ops.kda.naive import naive_recurrent_kda

    decay = log_decay(gate, a_log, bias)
    parts = by_token(unit(query), unit(key), value, decay, beta.sigmoid()[..., 0])
    return by_token(naive_recurrent_kda(*parts)[0])


def gla(query, key, value, gate):
    from fla.ops.gla.naive import naive_recurrent_gla

    decay = functional.logsigmoid(gate) / 16
    return by_token(naive_recurrent_gla(*by_token(query, key, value, decay))[0])


def hgrn2(query, gate, value, bound=0.0):
    """As their layer does: keys are what the forget gates, above the bound, let go."""
    from fla.ops.gla.naive import naive_recurrent_gla

    kept = bound + (1 - bound) * gate.sigmoid()
    decay = kept.log() if bound > 0 else functional.logsigmoid(gate)
    parts = by_token(functional.silu(query), 1 - kept, value, decay)
    return by_token(naive_recurrent_gla(*parts)[0])


def mamba2(query, key, value, time_step, a_log, bias, skip):
    from fla.ops.simple_gla.naive import naive_recurrent_simple_gla

    step = functional.softplus(time_step + bias[:, None])
    decay = (-a_log.exp()[:, None] * step)[..., 0]
    parts = by_token(query, key, step * value, decay)
    return by_token(naive_recurrent_simple_gla(*parts, scale=1.0)[0]) + skip[:, None] * value


def mamba(query, key, value, time_step, a_log, bias, skip, output_gate=None):
    """A head at a time: each has keys and queries of its own."""
    from transformers.models.mamba.modeling_mamba import mamba_selective_scan

    heads = []
    for h in range(value.size(1)):
        x, step, written, read = (each[:, h].mT for each in (value, time_step, key, query))
        gate = None if output_gate is None else output_gate[:, h].mT
        heads.append(mamba_selective_scan(x, step, -a_log[h].T.exp(), written, read, skip[h], gate,
                                          delta_bias=bias[h], delta_softplus=True).mT)
    return torch.stack(heads, 1)


def by_channel(parameter):
    """[H D, N] of [H, N, D]."""
    return parameter.mT.flatten(0, 1)


def constants_as_mamba(value, a_log, bias, skip, input_weight, read_weight):
    """A channel as a head: each has constants of its own, which its tokens say."""
    heads, rows, channels = a_log.shape

    def said(parameter):
        shape = value.size(0), heads * channels, value.size(2), rows
        return by_channel(parameter)[None, :, None].expand(shape)

    x = value.mT.flatten(1, 2)[..., None]
    y = mamba(said(read_weight), said(input_weight), x, torch.zeros_like(x),
              by_channel(a_log)[..., None], bias.reshape(-1, 1), skip.reshape(-1, 1))
    return y[..., 0].unflatten(1, (heads, channels)).mT


def complex_constants(value, a_log, bias, skip, input_weight, read_weight, turn, read_turn):
    """Their function in tensor operations, whose module asks for a kernel that it does not call."""
    sys.modules.setdefault("selective_scan_cuda", types.ModuleType("selective_scan_cuda"))
    from mamba_ssm.ops.selective_scan_interface import selective_scan_ref

    x = value.mT.flatten(1, 2)
    exponents = torch.complex(-by_channel(a_log).exp(), by_channel(turn))
    read = torch.complex(by_channel(read_weight), by_channel(read_turn))
    y = selective_scan_ref(x, torch.zeros_like(x), exponents, by_channel(input_weight), read,
                           skip.flatten(), delta_bias=bias.flatten(), delta_softplus=True)
    return y.unflatten(1, skip.shape).mT


def rwkv7(query, key, value, decay, learning_rate, decay_bias, rate_bias, removal, replacement):
    """As their layer does, but for the epsilon of its unit keys."""
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence

    rate = (learning_rate + rate_bias[:, None]).sigmoid()
    removed = unit(key * removal[:, None])
    written = key * (1 + (rate - 1) * replacement[:, None])
    log_decays = -math.exp(-0.5) * (decay + decay_bias[:, None]).sigmoid()
    scaled = query * query.size(-1) ** 0.5  # which they divide by
    return dplr_recurrence(scaled, written, value, -removed, removed * rate, log_decays)[0]


def fox(query, key, value, forget_gate, forget_bias, output_gate=None):
    """With an output gate as FoX (Pro) has it, the norm without weights."""
    from fla.ops.forgetting_attn.naive import naive_forgetting_attn

    log_gates = functional.logsigmoid(forget_gate + forget_bias[:, None])[..., 0]
    mixed = by_token(naive_forgetting_attn(*by_token(query, key, value, log_gates)))
    if output_gate is None:
        return mixed
    return mixed / (mixed.square().mean(-1, keepdim=True) + 1e-6).sqrt() * output_gate.sigmoid()


def scores_of(q, k, scale, causal):
    """[H, T, S] of [T, H, D] and [S, H, D]."""
    scores = torch.einsum("thd,shd->hts", q, k) * scale
    later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf) if causal else scores


def of_sequences(query_bounds, key_bounds):
    """Slices of the queries and of the keys of each sequence."""
    ends = [(*q, *k) for q, k in zip(itertools.pairwise(query_bounds.tolist()),
                                     itertools.pairwise(key_bounds.tolist()), strict=True)]
    return [(slice(q0, q1), slice(k0, k1)) for q0, q1, k0, k1 in ends]


def varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, softmax_scale, causal, **_):
    """What flash-attn's function of that name returns: outputs and logarithms of sums."""
    out, lse = torch.zeros_like(q), q.new_zeros(q.size(1), q.size(0))
    for t, s in of_sequences(cu_seqlens_q, cu_seqlens_k):
        scores = scores_of(q[t], k[s], softmax_scale, causal)
        lse[:, t] = scores.logsumexp(-1)
        out[t] = torch.einsum("hts,shd->thd", scores.softmax(-1), v[s])
    return out, lse, None, None


def varlen_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k,
                    softmax_scale, causal, **_):
    """Writes the gradients, as flash-attn's function of that name does."""
    for t, s in of_sequences(cu_seqlens_q, cu_seqlens_k):
        scores = scores_of(q[t], k[s], softmax_scale, causal)
        weights = (scores - softmax_lse[:, t, None]).exp()
        d_weights = torch.einsum("thd,shd->hts", dout[t], v[s])
        d_scores = weights * (d_weights - (dout[t] * out[t]).sum(-1).t()[..., None])
        dq[t] = torch.einsum("hts,shd->thd", d_scores, k[s]) * softmax_scale
        dk[s] = torch.einsum("hts,thd->shd", d_scores, q[t]) * softmax_scale
        dv[s] = torch.einsum("hts,thd->shd", weights, dout[t])


def moba(query, key, value):
    """Its choice, its combination and its gradients, with attention on a CPU for flash-attn's."""
    from fla.ops.moba import parallel

    parallel._flash_attn_varlen_forward = varlen_forward
    parallel._flash_attn_varlen_backward = varlen_backward
    parallel.flash_attn_varlen_func = varlen_forward  # asked for, and not called
    batch, heads, tokens, _ = query.shape
    packed = [by_token(x.repeat_interleave(heads // x.size(1), 1))
              .reshape(1, batch * tokens, heads, -1).contiguous() for x in (query, key, value)]
    bounds = torch.arange(batch + 1, dtype=torch.int32) * tokens
    mixed = parallel.parallel_moba(*packed, bounds, tokens, MOBA["block"], MOBA["blocks"])
    return by_token(mixed.reshape(batch, tokens, heads, -1))


def mla(query, latent, key_rotary, key_up, value_up):
    """DeepSeek V3's layer without its norm of the latent, on what its other projections would give.
    It rotates its inputs, ours are rotated: they are turned back before."""
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as theirs
    from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config

    batch, heads, tokens, width = query.shape
    content, rotary = key_up.size(-1), key_rotary.size(-1)
    config = DeepseekV3Config(hidden_size=8, num_attention_heads=heads, q_lora_rank=None,
                              num_key_value_heads=heads, kv_lora_rank=latent.size(-1),
                              qk_nope_head_dim=content, qk_rope_head_dim=rotary,
                              v_head_dim=value_up.size(-1))
    config._attn_implementation = "eager"
    layer = theirs.DeepseekV3Attention(config, 0)
    queries = torch.cat([query[..., :content], turned(query[..., content:], -1)], -1)
    queries = by_token(queries).reshape(batch, tokens, heads * width)
    compressed = torch.cat([latent, turned(key_rotary, -1)], -1)[:, 0]
    weights = torch.cat([key_up, value_up], -1)  # [heads, latent, content + value]
    del layer.q_proj, layer.kv_a_proj_with_mqa, layer.kv_b_proj
    layer.q_proj = lambda x: x[..., : heads * width]
    layer.kv_a_proj_with_mqa = lambda x: x[..., heads * width :]
    layer.kv_b_proj = lambda x: torch.einsum("bgsl,hlw->bgshw", x, weights).reshape(
        batch, 1, tokens, -1)
    layer.kv_a_layernorm = layer.o_proj = torch.nn.Identity()
    positions = theirs.DeepseekV3RotaryEmbedding(config)(query, torch.arange(tokens)[None])
    future = torch.full((tokens, tokens), -math.inf, dtype=query.dtype).triu(1)
    mixed = layer(torch.cat([queries, compressed], -1), positions, future)[0]
    return by_token(mixed.reshape(batch, tokens, heads, -1))


def nsa(query, key, value, gate_compressed, gate_selected, gate_window):
    """Its parts; means of blocks, which are a kernel there, and the window are the script's."""
    from fla.ops.nsa.naive import naive_nsa_compression, naive_nsa_selection, naive_nsa_topk

    tokens, scale, block = query.size(2), query.size(-1) ** -0.5, NSA["block"]
    q, k, v = by_token(query, key, value)
    means = [torch.stack([x[:, n:n + block].mean(1) for n in range(0, tokens, block)], 1)
             for x in (k, v)]
    compressed = naive_nsa_compression(q, *means, block, scale)[0]
    blocks = naive_nsa_topk(q, means[0], NSA["blocks"], block, scale)
    selected = naive_nsa_selection(q, k, v, blocks, block, scale)
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril().triu(1 - NSA["window"])
    shared = [x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value)]
    window = functional.scaled_dot_product_attention(query, *shared, attn_mask=seen)
    return (gate_compressed.sigmoid() * by_token(compressed)
            + gate_selected.sigmoid() * by_token(selected) + gate_window.sigmoid() * window)


def abc(query, key, value, slots):
    from fla.ops.abc.naive import naive_recurrent_abc

    return naive_recurrent_abc(query, key, value, slots)[0]


def gsa(query, key, value, slots):
    from fla.ops.gsa.naive import naive_recurrent_gsa

    decay = functional.logsigmoid(slots) / 8
    parts = by_token(query, key, value, -torch.expm1(decay), decay)
    return by_token(naive_recurrent_gsa(*parts)[0])


def linear(query, key, value, feature=lambda x: functional.elu(x) + 1, epsilon=1e-6,
           key_feature=None):
    from fla.ops.linear_attn.naive import naive_recurrent_linear_attn

    # Their own normalisation is a Triton kernel: a column of ones carries the sum of weights.
    values = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    parts = by_token(feature(query), (key_feature or feature)(key), values)
    mixed = by_token(naive_recurrent_linear_attn(*parts, scale=1.0)[0])
    total = mixed[..., -1:] + epsilon
    return mixed[..., :-1] / torch.where(total == 0, 1, total)


def relu(query, key, value):
    from fla.modules.feature_map import ReLUFeatureMap

    return linear(query, key, value, ReLUFeatureMap())


def square(query, key, value):
    """ReBased's map without its norm, all x_i x_j / sqrt(D). The epsilon is large, since without one
    a row of few keys with q.k near 0 loses its digits on both sides."""
    from fla.modules.feature_map import RebasedFeatureMap

    feature = RebasedFeatureMap(query.size(-1), normalize=False)
    return linear(query, key, value, feature, 0.1 / query.size(-1))


def taylor(query, key, value):
    from fla.modules.feature_map import TaylorFeatureMap

    return linear(query, key, value, TaylorFeatureMap(query.size(-1)))


def based(query, key, value):
    from fla.ops.based.naive import naive_parallel_based

    return naive_parallel_based(query, key, value)


def hedgehog(query, key, value, query_map, key_map):
    """Its map is written from the paper: fla's has one softmax over both signs."""

    def feature(weight):
        def both_signs(x):
            mapped = torch.einsum("hij,bhtj->bhti", weight, x)
            return torch.cat([mapped.softmax(-1), (-mapped).softmax(-1)], -1)

        return both_signs

    return linear(query, key, value, feature(query_map), 0, feature(key_map))


def nystromformer(query, key, value):
    from nystrom_attention import NystromAttention

    width = query.size(-1)
    layer = NystromAttention(width, width, 1, num_landmarks=7, pinv_iterations=6, residual=False)
    layer.to_qkv = layer.to_out = torch.nn.Identity()  # the mixing alone
    # A head at a time: it scales the first step of its inverse by the greatest sum of all heads.
    heads = [[layer(torch.cat([x[b, h] for x in (query, key, value)], -1)[None])[0]
              for h in range(query.size(1))]
             for b in range(query.size(0))]
    return torch.stack([torch.stack(row) for row in heads])


def linformer(query, key, value, E, F):
    from linformer import LinformerSelfAttention

    batch, heads, length, width = query.shape

    class Slice(torch.nn.Module):
        def __init__(self, part):
            super().__init__()
            self.part = part

        def forward(self, x):
            return x.chunk(3, -1)[self.part]

    layer = LinformerSelfAttention(heads * width, length, k=E.size(0), heads=heads)
    layer.to_q, layer.to_k, layer.to_v = Slice(0), Slice(1), Slice(2)
    layer.to_out = torch.nn.Identity()
    del layer.proj_k, layer.proj_v
    layer.proj_k, layer.proj_v = E.T, F.T
    tokens = torch.cat([by_token(x).reshape(batch, length, -1) for x in (query, key, value)], -1)
    return by_token(layer(tokens).reshape(batch, length, heads, width))


def performer(query, key, value, omega):
    from performer_pytorch import FastAttention

    layer = FastAttention(query.size(-1), nb_features=omega.size(-2))
    layer.projection_matrix = omega
    return layer(query, key, value)


def latent_widths(keys, values):
    return {"query": keys, "latent": 11, "key_rotary": rotary_of(keys)}


def rotary_of(keys):
    return 2 * ((keys + 5) // 6)


def with_gate(width):
    def widths(keys, values):
        return {**plain_widths(keys, values), "beta": 1, "gate": width or keys}

    return widths


EVEN = ((2, 3, 35, 5, 5), (1, 2, 133, 33, 33))  # as many tokens in each of 7 segments


def of_head(size):
    return size[1], 1


def of_channel(size):
    return size[1], size[3]


def of_map(size):
    return size[1], size[3], size[3]


def of_key_up(size):
    return size[1], 11, size[3] - rotary_of(size[3])


def of_value_up(size):
    return size[1], 11, size[4]


def of_projection(size):
    return 9, size[2]


def of_features(size):
    return 32, size[3]


def of_value(size):
    return size[1], size[4]


def of_state(size):
    return size[1], 9, size[4]


CHANNELS = {"a_log": of_state, "bias": of_value, "skip": of_value}
CONSTANTS = {**CHANNELS, "input_weight": of_state, "read_weight": of_state}
# Heads in pairs, values as wide as keys.
SQUARE = ((2, 6, 37, 5, 5), (1, 2, 129, 33, 33), (1, 4, 200, 16, 16))
MOBA = {"block": 9, "blocks": 3}
PAIRED = ((2, 6, 37, 5, 7), (1, 2, 129, 33, 16), (1, 4, 200, 16, 31))
NSA = {"block": 7, "blocks": 4, "window": 11}
DECAY = {"a_log": of_head, "bias": of_head}
CASES = [
    Case("retention", "retention", "fla naive_retention", retention),
    Case("retention, Lightning's decays", "retention", "fla naive_recurrent_simple_gla", lightning,
         options={"decay": "fixed"}),
    Case("DeltaNet", "delta", "fla delta_rule_recurrence", delta,
         lambda keys, values: {**plain_widths(keys, values), "beta": 1}),
    Case("Gated DeltaNet", "gated_delta", "fla naive_recurrent_gated_delta_rule", gated_delta,
         with_gate(1), DECAY),
    Case("Gated DeltaNet", "gated_delta", "fla naive_chunk_gated_delta_rule", gated_delta_chunks,
         with_gate(1), DECAY),
    Case("Kimi Delta Attention", "kda", "fla naive_recurrent_kda", kda, with_gate(0),
         {"a_log": of_head, "bias": of_channel}),
    Case("GLA", "gla", "fla naive_recurrent_gla", gla,
         lambda keys, values: {**plain_widths(keys, values), "gate": keys}),
    Case("HGRN2", "hgrn2", "fla naive_recurrent_gla", hgrn2,
         lambda keys, values: {"query": keys, "gate": keys, "value": values}),
    Case("HGRN2, gates above 0.25", "hgrn2", "fla naive_recurrent_gla",
         functools.partial(hgrn2, bound=0.25),
         lambda keys, values: {"query": keys, "gate": keys, "value": values},
         options={"lower_bound": 0.25}),
    Case("FoX", "fox", "fla naive_forgetting_attn", fox,
         lambda keys, values: {**plain_widths(keys, values), "forget_gate": 1},
         {"forget_bias": of_head}),
    Case("FoX (Pro)'s output", "fox", "fla naive_forgetting_attn, the gate ours", fox,
         lambda keys, values: {**plain_widths(keys, values), "forget_gate": 1,
                               "output_gate": values},
         {"forget_bias": of_head}, {"output": "gated"}),
    Case("Mamba (S6)", "mamba", "transformers mamba_selective_scan", mamba,
         lambda keys, values: {"query": 9, "key": 9, "value": values, "time_step": values},
         CHANNELS, {"state": 9}),
    Case("Mamba (S6), gated", "mamba", "transformers mamba_selective_scan", mamba,
         lambda keys, values: {"query": 9, "key": 9, "value": values, "time_step": values,
                               "output_gate": values},
         CHANNELS, {"state": 9, "output": "gated"}),
    Case("S4D-Real", "s4d_real", "transformers mamba_selective_scan", constants_as_mamba,
         lambda keys, values: {"value": values},
         CONSTANTS, {"state": 9}),
    Case("S4D", "s4d", "mamba-ssm selective_scan_ref", complex_constants,
         lambda keys, values: {"value": values},
         {**CONSTANTS, "turn": of_state, "read_turn": of_state}, {"state": 9}),
    Case("MoBA", "moba", "fla parallel_moba, flash-attn's part the script's", moba, options=MOBA,
         sizes=SQUARE, key_heads=2),
    Case("MLA", "mla", "transformers DeepseekV3Attention", mla, latent_widths,
         {"key_up": of_key_up, "value_up": of_value_up},
         shared=("latent", "key_rotary")),
    Case("NSA", "nsa", "fla naive_nsa_compression, _topk, _selection", nsa,
         lambda keys, values: {**plain_widths(keys, values), "gate_compressed": 1,
                               "gate_selected": 1, "gate_window": 1},
         options=NSA, sizes=PAIRED, key_heads=2),
    Case("Mamba-2 (SSD)", "mamba2", "fla naive_recurrent_simple_gla", mamba2,
         lambda keys, values: {**plain_widths(keys, values), "time_step": 1},
         {**DECAY, "skip": of_head}),
    Case("RWKV-7", "rwkv7", "fla dplr_recurrence", rwkv7,
         lambda keys, values: {**plain_widths(keys, values), "decay": keys, "learning_rate": keys},
         dict.fromkeys(("decay_bias", "rate_bias", "removal", "replacement"), of_channel)),
    Case("ABC", "abc", "fla naive_recurrent_abc", abc,
         lambda keys, values: {**plain_widths(keys, values), "slots": 9},
         options={"latents_per_head": 9}),
    Case("GSA", "gsa", "fla naive_recurrent_gsa", gsa,
         lambda keys, values: {**plain_widths(keys, values), "slots": 9},
         options={"latents_per_head": 9}),
    Case("linear", "linear", "fla naive_recurrent_linear_attn", linear),
    Case("linear, exp", "linear", "fla naive_recurrent_linear_attn",
         functools.partial(linear, feature=torch.exp, epsilon=0), options={"feature": "exp"}),
    Case("linear, relu", "linear", "fla ReLUFeatureMap", relu, options={"feature": "relu"}),
    Case("linear, polynomial", "linear", "fla RebasedFeatureMap", square,
         options={"feature": "polynomial", "epsilon": 0.1}),
    Case("linear, taylor2", "linear", "fla TaylorFeatureMap", taylor,
         options={"feature": "taylor2"}),
    Case("linear, taylor2", "linear", "fla naive_parallel_based", based,
         options={"feature": "taylor2"}),
    Case("linear, hedgehog", "linear", "fla naive_recurrent_linear_attn, the map ours", hedgehog,
         parameters={"query_map": of_map, "key_map": of_map}, options={"feature": "hedgehog"}),
    Case("Nyströmformer", "nystromformer", "nystrom-attention NystromAttention", nystromformer,
         options={"landmarks": 7}, pattern="bidirectional", sizes=EVEN),
    Case("Linformer", "linformer", "linformer LinformerSelfAttention", linformer,
         parameters={"E": of_projection, "F": of_projection}, options={"projected_length": 9},
         pattern="bidirectional", sizes=EVEN),
    Case("Performer, published form", "performer", "performer-pytorch FastAttention", performer,
         parameters={"omega": of_features}, constants=("omega",),
         options={"features": 32, "form": "published"}, pattern="bidirectional"),
]  # fmt: skip
