"""The package linformer: attention to projected keys and values, full.

Needs linformer 0.2. Its layer projects one input to query, key and value; here these come from the
role, so that what is timed is the mixing alone: the layer gets all three side by side and each
projection is a slice.
"""

import torch

try:
    from linformer import LinformerSelfAttention
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    LinformerSelfAttention, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if LinformerSelfAttention is None:
        return f"linformer 0.2 cannot be imported ({reason}): python3 -m pip install linformer"
    return None


class Slice(torch.nn.Module):
    """The part of a token's numbers that is its query, key or value."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return x.chunk(3, dim=-1)[self.part]


class Definition(torch.nn.Module):
    """softmax(Q (E K)^T / sqrt(D)) F V, with the package's names for E and F."""

    def __init__(self, length, projected_length: int = 256):
        super().__init__()
        self.proj_k = torch.nn.Parameter(torch.zeros(length, projected_length))
        self.proj_v = torch.nn.Parameter(torch.zeros(length, projected_length))

    def forward(self, query, key, value):
        keys = torch.einsum("bhtd,tl->bhld", key, self.proj_k[: key.size(2)])
        values = torch.einsum("bhtd,tl->bhld", value, self.proj_v[: value.size(2)])
        scores = torch.matmul(query, keys.transpose(-2, -1)) / query.size(-1) ** 0.5
        return torch.matmul(torch.softmax(scores, dim=-1), values)


class SelfAttention(LinformerSelfAttention or torch.nn.Module):
    """Linformer of the package linformer."""

    citation = "Wang et al. 2020, arXiv:2006.04768"
    patterns = ["bidirectional"]
    reference = Definition
    packages = ["linformer"]
    options = {"projected_length": "keys and values that a query sees"}
    claims = ["linear_in_value"]
    growth = {"time_in_length": 1, "workspace_in_length": 1}

    def __init__(self, heads, head_dim, length, projected_length: int = 256):
        super().__init__(heads * head_dim, length, k=projected_length, heads=heads)
        self.to_q, self.to_k, self.to_v = Slice(0), Slice(1), Slice(2)
        self.to_out = torch.nn.Identity()

    def forward(self, query, key, value):
        batch, heads, length, width = query.shape
        by_token = [x.transpose(1, 2).reshape(batch, length, -1) for x in (query, key, value)]
        mixed = super().forward(torch.cat(by_token, dim=-1))
        return mixed.reshape(batch, length, heads, width).transpose(1, 2)
