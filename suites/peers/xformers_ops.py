"""xFormers' memory_efficient_attention.

Needs xformers 0.0.22 or newer, the PyTorch that it was built for, and an NVIDIA card.
"""

import torch

try:
    from xformers import ops
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    ops, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if ops is None:
        return f"xformers 0.0.22 or newer cannot be imported ({reason}): python3 -m pip install xformers"
    if not torch.cuda.is_available():
        return "xformers needs an NVIDIA card"
    return None


def attention(query, key, value, causal: bool):
    """xFormers' memory-efficient attention."""
    if causal and query.size(2) != key.size(2):
        raise NotImplementedError("its causal triangle starts at the first key")
    bias = ops.LowerTriangularMask() if causal else None
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    return ops.memory_efficient_attention(query, key, value, attn_bias=bias).transpose(1, 2)


attention.reference = "softmax"
attention.packages = ["xformers"]
attention.devices = ["cuda"]
attention.dtypes = ["float32", "float16", "bfloat16"]
