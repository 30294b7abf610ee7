"""The families without an order, for which there is no kernel but PyTorch's own operations: the same
function by them, as they are and compiled, and bidirectional linear attention as closest kin (the same
products, with elu + 1 in place of the two softmaxes). Arrays are [B, H, T, width]."""

FAMILIES = ("whole_pool", "whole_pool_normaliser", "whole_pool_directed")


def shapes(case):
    """Of queries, keys and values: logits, or the tokens that they are made of."""
    width = case["D"] if case["family"] == "whole_pool_directed" else case["L"]
    return [(case["B"], case["H"], case["T"], size) for size in (width, width, case["D"])]


def peers(torch, case, device):
    """[(name, maker)]; maker() gives the function of queries, keys and values."""
    function = lambda: pool(torch, case, device)
    found = [("torch_ops", function), ("torch_compile", lambda: torch.compile(function()))]
    if case["family"] != "whole_pool_directed":
        found.append(("kin_torch_linear", lambda: linear(torch)))
    return found


def pool(torch, case, device):
    """y_t = sum_l p_tl M_l, M_l the average of the values under softmax over tokens of k_l. p is the
    softmax over latents of q, to which log sum_s exp(k_sl) is added in the two families of exact
    Performer; the directed one makes both of tokens: x . w_l, of keys less |x|^2 / 2."""
    normaliser = case["family"] != "whole_pool"
    directions = None
    if case["family"] == "whole_pool_directed":
        directions = torch.randn(case["D"], case["L"], device=device)

    def call(q, k, v):
        if directions is not None:
            w = directions.to(q.dtype)
            q, k = q @ w, k @ w - 0.5 * k.square().sum(-1, keepdim=True)
        if normaliser:
            q = q + torch.logsumexp(k, -2, keepdim=True)
        averages = torch.softmax(k, -2).transpose(-2, -1) @ v
        return torch.softmax(q, -1) @ averages
    return call


def linear(torch):
    def call(q, k, v):
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        norm = q @ k.sum(-2, keepdim=True).transpose(-2, -1)
        return q @ (k.transpose(-2, -1) @ v) / norm
    return call
