"""PyTorch's scaled_dot_product_attention, one mechanism for each of its backends.

Needs PyTorch 2.3 or newer. On the CPU PyTorch has `flash` and `math`; `efficient` and `cudnn` need
an NVIDIA card.
"""

import torch
from torch.nn import functional

try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    SDPBackend = None


def too_old():
    if SDPBackend is None:
        return f"needs PyTorch 2.3 or newer, which chooses the backend; this is {torch.__version__}"
    return None


def without_card():
    if too_old() is None and not torch.cuda.is_available():
        return "this backend of PyTorch needs an NVIDIA card"
    return too_old()


def through(backend, title, unavailable, dtypes=None):
    """The mechanism that lets PyTorch use that backend alone."""

    def attention(query, key, value, causal: bool):
        if causal and query.size(2) != key.size(2):
            raise NotImplementedError("its causal triangle starts at the first key")
        if backend == "FLASH_ATTENTION" and query.is_cuda and query.dtype.itemsize > 2:
            raise NotImplementedError("its kernel for cards takes float16 and bfloat16")
        shared = {} if query.size(1) == key.size(1) else {"enable_gqa": True}
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=causal,
                                                           **shared)

    attention.title = title
    attention.reference = "softmax"
    attention.packages = ["torch"]
    attention.unavailable = unavailable
    attention.shares_heads = backend in ("FLASH_ATTENTION", "MATH")
    if dtypes:
        attention.dtypes = dtypes
        attention.devices = ["cuda"]
    return attention


HALF = ["float16", "bfloat16"]

flash = through("FLASH_ATTENTION", "PyTorch's flash attention", too_old)
math = through("MATH", "PyTorch's attention by matrix products", too_old)
efficient = through("EFFICIENT_ATTENTION", "PyTorch's memory-efficient attention", without_card,
                    [*HALF, "float32"])
cudnn = through("CUDNN_ATTENTION", "cuDNN's attention in PyTorch", without_card, HALF)
