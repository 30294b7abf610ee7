"""The package performer-pytorch: FAVOR+ with its own stabilisers, full and causal.

Needs performer-pytorch 1.1. Without the package pytorch-fast-transformers its causal form is its
own cumulative sum over chunks of tokens.
"""

import torch

try:
    from performer_pytorch import FastAttention
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    FastAttention, reason = None, f"{type(error).__name__}: {error}"

EPSILON = 1e-4  # the package's, of its feature map
NORMALISER = 1e-6  # likewise, of its causal form


def unavailable():
    if FastAttention is None:
        return f"performer-pytorch 1.1 cannot be imported ({reason}): python3 -m pip install performer-pytorch"
    return None


class Definition(torch.nn.Module):
    """The same by pairs of tokens, from the features as the package has them.

    As there, no gradient passes through the maxima, which its epsilon makes a part of the value.
    """

    def __init__(self, head_dim, features: int = 256):
        super().__init__()
        self.register_buffer("projection_matrix", torch.zeros(features, head_dim))

    def exponents(self, x):
        x = x * x.size(-1) ** -0.25
        return torch.matmul(x, self.projection_matrix.T), (x**2).sum(-1, keepdim=True) / 2

    def forward(self, query, key, value, causal: bool):
        projected, square = self.exponents(query)
        highest = projected.amax(-1, keepdim=True).detach()
        of_query = torch.exp(projected - square - highest) + EPSILON
        projected, square = self.exponents(key)
        highest = projected.amax((-1, -2), keepdim=True).detach()
        of_key = torch.exp(projected - square - highest) + EPSILON
        features = of_query.size(-1)
        of_query, of_key = of_query / features**0.5, of_key / features**0.5
        weights = torch.matmul(of_query, of_key.transpose(-2, -1))
        added = torch.zeros_like(of_query[..., :1])
        if causal:
            weights = weights.tril()
            added = NORMALISER * of_query.sum(-1, keepdim=True)
        return torch.matmul(weights, value) / (weights.sum(-1, keepdim=True) + added)


class Favor(FastAttention or torch.nn.Module):
    """FAVOR+ of the package performer-pytorch."""

    citation = "Choromanski et al. 2021, arXiv:2009.14794"
    reference = Definition
    # Its backward pass leaves out the maxima, which its epsilon makes a part of the value: `check`
    # finds that its gradient is not that of its output. So the forward pass alone is timed.
    differentiable = False
    packages = ["performer-pytorch"]
    options = {"features": "random features of a head"}
    claims = ["linear_in_value"]
    growth = {"time_in_length": 1, "workspace_in_length": 1}

    def __init__(self, head_dim, causal, features: int = 256):
        super().__init__(head_dim, nb_features=features, causal=causal)

    def forward(self, query, key, value, causal: bool):
        return super().forward(query, key, value)
