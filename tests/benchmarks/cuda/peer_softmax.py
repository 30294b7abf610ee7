"""Exact attention by PyTorch: scaled_dot_product_attention by backend, and flex_attention where a
window or a bias asks for it. Arrays are [B, H, rows, D]. The slots of Luna, Perceiver and Linformer
are attention of few queries to many keys (pack) and of many to few (read)."""

import functools

FAMILIES = ("softmax", "biased_softmax", "slots_pack", "slots_read")


def shapes(case):
    """Of queries, keys and values."""
    queries = case["L"] if case["family"] == "slots_pack" else case["T"]
    keys = case["L"] if case["family"] == "slots_read" else case["T"]
    return [(case["B"], case["H"], rows, case["D"]) for rows in (queries, keys, keys)]


def peers(torch, case, device):
    """[(name, maker)]; maker() gives the function of queries, keys and values."""
    if case.get("window"):
        flex = [("torch_flex", lambda: flexible(torch, case, device))]
        if case["family"] == "biased_softmax":
            return flex
        return flex + by_backend(torch, case, device, ["efficient"])
    return by_backend(torch, case, device, ["cudnn", "flash", "efficient", "math"])


def by_backend(torch, case, device, names):
    return [("sdpa_" + name, functools.partial(with_backend, torch, case, device, name))
            for name in names]


def with_backend(torch, case, device, name):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
               "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}[name]
    attend = torch.nn.functional.scaled_dot_product_attention
    mask = None
    if case.get("window"):
        t = torch.arange(case["T"], device=device)
        distance = t[:, None] - t[None, :]
        mask = (distance >= 0) & (distance < case["window"])
    causal = bool(case.get("causal")) and mask is None

    def call(q, k, v):
        with sdpa_kernel(backend):
            return attend(q, k, v, attn_mask=mask, is_causal=causal)
    return call


@functools.cache
def compiled_flex(torch):
    from torch.nn.attention.flex_attention import flex_attention
    return torch.compile(flex_attention, dynamic=False)


def flexible(torch, case, device):
    """A causal window; of the biased family with one number for each distance, shared by heads."""
    from torch.nn.attention.flex_attention import create_block_mask
    window = case["window"]
    flex = compiled_flex(torch)
    mask = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < window), None, None,
                             case["T"], case["T"], device=device)
    if case["family"] != "biased_softmax":
        return lambda q, k, v: flex(q, k, v, block_mask=mask)
    bias = torch.randn(window, device=device)

    def biased(score, b, h, q, k):
        return score + bias[(q - k).clamp(0, window - 1)]
    return lambda q, k, v: flex(q, k, v, score_mod=biased, block_mask=mask)
