"""The causal families by flash-linear-attention's chunk kernels. Arrays are [B, T, H, width] here, as
these kernels want them. No one else computes Latte: its closest kin has a gate for every latent, and
no normaliser."""

import importlib

FAMILIES = ("causal_product", "causal_product_plain", "prefix_pool")


def shapes(case):
    """Of queries, keys and values."""
    return [(case["B"], case["T"], case["H"], width)
            for width in (case["L"], case["L"], case["D"])]


def from_fla(module, name):
    return getattr(importlib.import_module("fla.ops." + module), name)


def peers(torch, case, device):
    """[(name, maker)]; maker() gives the function of queries, keys and values."""
    if case["passes"] == "step":
        return []
    if case["family"] == "causal_product_plain":
        return [("fla_chunk_linear_attn", lambda: plain("chunk_linear_attn")),
                ("fla_fused_chunk_linear_attn", lambda: plain("fused_chunk_linear_attn")),
                ("fla_chunk_retention", retention)]
    if case["family"] == "causal_product":
        return [("fla_chunk_linear_attn", lambda: featured(torch))]
    return [("fla_chunk_gla", lambda: gated(torch, case, device))]


def plain(name):
    function = from_fla("linear_attn", name)
    return lambda q, k, v: function(q, k, v, scale=1.0, normalize=False)[0]


def featured(torch):
    function = from_fla("linear_attn", "chunk_linear_attn")
    elu = lambda x: torch.nn.functional.elu(x) + 1
    return lambda q, k, v: function(elu(q), elu(k), v, scale=1.0, normalize=True)[0]


def retention():
    function = from_fla("retention", "chunk_retention")
    return lambda q, k, v: function(q, k, v)[0]


def gated(torch, case, device):
    function = from_fla("gla", "chunk_gla")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[case["dtype"]]
    shape = (case["B"], case["T"], case["H"], case["L"])
    gate = torch.nn.functional.logsigmoid(torch.randn(shape, device=device)).to(dtype)
    return lambda q, k, v: function(q, k, v, gate)[0]
