"""PyTorch's scaled_dot_product_attention: a mechanism for each of its backends, and one compiled.

Needs PyTorch 2.3 or newer. On the CPU PyTorch has `flash` and `math`; `efficient` and `cudnn` need
an NVIDIA card. `Compiled` is torch.compile of the function, which chooses the backend itself: the
first call of each size compiles.
"""

import torch
from torch.nn import functional

try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    SDPBackend = None


PATTERNS = ["bidirectional", "causal", "cross"]


def too_old():
    if SDPBackend is None:
        return f"needs PyTorch 2.3 or newer, which chooses the backend; this is {torch.__version__}"
    return None


def without_card():
    if too_old() is None and not torch.cuda.is_available():
        return "this backend of PyTorch needs an NVIDIA card"
    return too_old()


def attend(query, key, value, causal):
    """PyTorch's function; heads of keys and values may be fewer."""
    if causal and query.size(2) != key.size(2):
        raise NotImplementedError("its causal triangle starts at the first key")
    shared = {} if query.size(1) == key.size(1) else {"enable_gqa": True}
    return functional.scaled_dot_product_attention(query, key, value, is_causal=causal, **shared)


def through(backend, title, unavailable, dtypes=None):
    """The mechanism that lets PyTorch use that backend alone."""

    def attention(query, key, value, causal: bool):
        if backend == "FLASH_ATTENTION" and query.is_cuda and query.dtype.itemsize > 2:
            raise NotImplementedError("its kernel for cards takes float16 and bfloat16")
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            return attend(query, key, value, causal)

    attention.title = title
    attention.patterns = PATTERNS
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


class Compiled(torch.nn.Module):
    """PyTorch's attention, compiled."""

    patterns = PATTERNS
    reference = "softmax"
    packages = ["torch"]
    unavailable = staticmethod(too_old)
    shares_heads = True

    def __init__(self):
        super().__init__()
        # In this process: others would run beside what is timed.
        torch._inductor.config.compile_threads = 1
        self.attend = torch.compile(attend, dynamic=False)

    def forward(self, query, key, value, causal: bool):
        return self.attend(query, key, value, causal)
