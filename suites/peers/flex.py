"""PyTorch's FlexAttention, compiled: causal or full, a sliding window, ALiBi.

Needs PyTorch 2.5 or newer (2.6 on the CPU). On the CPU it has no backward pass, and its first
call compiles by $CXX: what Debian 12's g++ 12.2 made of PyTorch 2.15's was right, what its clang 14
or 16 made was wrong.
"""

import os

import torch

try:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError:
    flex_attention = None

ON_CARD = torch.cuda.is_available()


def unavailable():
    least = (2, 5) if ON_CARD else (2, 6)
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if flex_attention is None or version < least:
        return f"FlexAttention needs PyTorch {least[0]}.{least[1]}, this is {torch.__version__}"
    if not ON_CARD and not has_vectors():
        return ("FlexAttention on the CPU needs AVX2 or AVX-512, and PyTorch could use neither with "
                f"its C++ compiler ({os.environ.get('CXX', 'g++')})")
    return None


def has_vectors():
    """Whether PyTorch can compile for vector units here: it tries, which takes seconds."""
    from torch._inductor.cpu_vec_isa import pick_vec_isa
    return bool(pick_vec_isa())


def past(batch, head, query, key):
    return query >= key


class Flex(torch.nn.Module):
    """What the mechanisms below share: compiled once, masks made once for each length."""

    citation = "Dong et al. 2024, arXiv:2412.05496"
    packages = ["torch"]
    differentiable = ON_CARD
    dtypes = ["float32", "bfloat16", "float16"]

    def __init__(self):
        super().__init__()
        torch._inductor.config.compile_threads = 1  # no other processes beside what is timed
        self.attend = torch.compile(flex_attention, dynamic=False)
        self.masks = {}

    def mask(self, kept, name, query, key):
        tokens, keys = query.size(2), key.size(2)
        if tokens != keys:
            raise NotImplementedError("its causal triangle starts at the first key")
        place = (name, tokens, query.device)
        if place not in self.masks:
            self.masks[place] = create_block_mask(kept, None, None, tokens, keys, query.device)
        return self.masks[place]


class Full(Flex):
    """FlexAttention, causal or full."""

    patterns = ["bidirectional", "causal", "cross"]
    reference = "softmax"
    shares_heads = True
    claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant", "heads_independent"]

    def forward(self, query, key, value, causal: bool):
        mask = self.mask(past, "causal", query, key) if causal else None
        shared = query.size(1) != key.size(1)
        return self.attend(query, key, value, block_mask=mask, enable_gqa=shared)


def distances(query, key):
    place = torch.arange(query.size(2), device=query.device)
    return place.unsqueeze(1) - torch.arange(key.size(2), device=query.device)


def by_scores(query, key, value, kept, bias):
    """Attention by its definition: all scores, in plain tensor operations."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5 + bias
    return torch.matmul(torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1), value)


def window_by_scores(query, key, value, window: int = 128):
    distance = distances(query, key)
    return by_scores(query, key, value, (distance >= 0) & (distance < window), 0.0)


class Window(Flex):
    """FlexAttention with a sliding window."""

    patterns = ["causal"]
    reference = staticmethod(window_by_scores)
    options = {"window": "keys that a query sees, itself included"}
    claims = ["rows_sum_to_one", "linear_in_value", "heads_independent"]

    def forward(self, query, key, value, window: int = 128):
        def near(batch, head, place, other):
            return (place >= other) & (place - other < window)

        mask = self.mask(near, ("window", window), query, key)
        return self.attend(query, key, value, block_mask=mask)


def slopes(heads, like):
    """Of Press et al. 2022: 2^(-8 h / H) for the heads h = 1 … H."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=like.dtype, device=like.device) / heads)


def alibi_by_scores(query, key, value):
    distance = distances(query, key)
    bias = -slopes(query.size(1), query)[:, None, None] * distance.to(query.dtype)
    return by_scores(query, key, value, distance >= 0, bias)


class ALiBi(Flex):
    """FlexAttention with ALiBi's bias."""

    patterns = ["causal"]
    reference = staticmethod(alibi_by_scores)
    claims = ["rows_sum_to_one", "linear_in_value"]

    def forward(self, query, key, value):
        slope = slopes(query.size(1), query.float())

        def biased(score, batch, head, place, other):
            return score - slope[head] * (place - other)

        mask = self.mask(past, "causal", query, key)
        return self.attend(query, key, value, score_mod=biased, block_mask=mask)
