"""The package flash-attn: FlashAttention, full, causal and with a window.

Needs flash-attn 2.3 or newer (its window), a PyTorch with CUDA and an NVIDIA card of Ampere or newer.
"""

import torch

try:
    from flash_attn import flash_attn_func
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    flash_attn_func, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if flash_attn_func is None:
        return f"flash-attn 2.3 or newer cannot be imported ({reason}): python3 -m pip install flash-attn"
    if not torch.cuda.is_available():
        return "flash-attn needs an NVIDIA card of Ampere or newer"
    return None


def by_token(*heads_first):
    """[B, T, H, D] of [B, H, T, D]: a view."""
    return (x.transpose(1, 2) for x in heads_first)


def full(query, key, value, causal: bool):
    """FlashAttention of the package flash-attn."""
    query, key, value = by_token(query, key, value)
    return flash_attn_func(query, key, value, causal=causal).transpose(1, 2)


def window(query, key, value, window: int = 128):
    """FlashAttention with a sliding window, of the package flash-attn."""
    query, key, value = by_token(query, key, value)
    near = (window - 1, 0)
    return flash_attn_func(query, key, value, causal=True, window_size=near).transpose(1, 2)


def window_by_scores(query, key, value, window: int = 128):
    shared = query.size(1) // key.size(1)
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    place = torch.arange(query.size(2), device=query.device)
    distance = place.unsqueeze(1) - place
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    hidden = (distance < 0) | (distance >= window)
    return torch.matmul(torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1), value)


def declare(function):
    function.citation = "Dao 2023, arXiv:2307.08691"
    function.packages = ["flash-attn"]
    function.devices = ["cuda"]
    function.dtypes = ["float16", "bfloat16"]
    function.shares_heads = True


declare(full)
declare(window)
full.reference = "softmax"
window.reference = window_by_scores
window.patterns = ["causal"]
window.options = {"window": "keys that a query sees, itself included"}
