"""ggml's flash attention on the CPU: its operation FLASH_ATTN_EXT, full and causal.

Needs ggml-python 0.0.45 or newer, which builds ggml for this machine as it is installed. Keys and
values stay in float32, so that the arithmetic is that of the others; language models on it mostly keep
them in float16. Its causal mask is a matrix of all pairs, made once for each length. Forward only.
"""

import ctypes

import torch

try:
    import ggml
except Exception as error:  # a library beside it that it does not suit stops it in other ways
    ggml, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if ggml is None:
        return f"ggml-python 0.0.45 or newer cannot be imported ({reason}): python3 -m pip install ggml-python"
    if not hasattr(ggml, "ggml_flash_attn_ext_get_prec"):
        return f"needs ggml-python 0.0.45 or newer; this is {ggml.__version__}"
    return None


def causal_mask(tokens):
    """float16, which the operation asks for: 0 for what a query sees, else -inf."""
    return torch.full((tokens, tokens), float("-inf"), dtype=torch.float32).triu(1).half()


class Graph:
    """The operation for tensors of these shapes, whose numbers stay in PyTorch's memory."""

    def __init__(self, query, key, value, causal):
        # Three inputs, the mask and the output.
        room = 8 * ggml.ggml_tensor_overhead() + ggml.ggml_graph_overhead()
        self.context = ggml.ggml_init(ggml.ggml_init_params(room, None, True))
        self.inputs = [self.tensor(ggml.GGML_TYPE_F32, x.shape) for x in (query, key, value)]
        mask = None
        if causal:
            self.mask = causal_mask(query.size(2))
            mask = self.tensor(ggml.GGML_TYPE_F16, (1, 1, *self.mask.shape))
            mask.contents.data = self.mask.data_ptr()
        scale = query.size(3) ** -0.5
        self.output = ggml.ggml_flash_attn_ext(self.context, *self.inputs, mask, scale, 0.0, 0.0)
        ggml.ggml_flash_attn_ext_set_prec(self.output, ggml.GGML_PREC_F32)
        self.graph = ggml.ggml_new_graph(self.context)
        ggml.ggml_build_forward_expand(self.graph, self.output)
        self.plan = ggml.ggml_graph_plan(self.graph, torch.get_num_threads(), None)
        self.work = torch.empty(max(self.plan.work_size, 1), dtype=torch.uint8)
        self.plan.work_data = ctypes.cast(self.work.data_ptr(), ctypes.POINTER(ctypes.c_uint8))

    def __del__(self):
        ggml.ggml_free(self.context)

    def tensor(self, kind, shape):
        """A tensor without memory; ggml counts its dimensions from the innermost."""
        return ggml.ggml_new_tensor_4d(self.context, kind, *reversed(shape))

    def __call__(self, query, key, value):
        rows = [x.detach().contiguous() for x in (query, key, value)]
        for tensor, numbers in zip(self.inputs, rows, strict=True):
            tensor.contents.data = numbers.data_ptr()
        batch, heads, tokens, _ = query.shape
        output = query.new_empty(batch, tokens, heads, value.size(3))
        self.output.contents.data = output.data_ptr()
        status = ggml.ggml_graph_compute(self.graph, ctypes.byref(self.plan))
        if status != ggml.GGML_STATUS_SUCCESS:
            raise RuntimeError(f"ggml_graph_compute returned {status}")
        return output.transpose(1, 2)


class Attention(torch.nn.Module):
    """ggml's flash attention on the CPU, keys and values in float32."""

    patterns = ["bidirectional", "causal", "cross"]
    reference = "softmax"
    packages = ["ggml_python"]
    devices = ["cpu"]
    dtypes = ["float32"]
    differentiable = False
    shares_heads = True
    claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant", "heads_independent"]

    def __init__(self):
        super().__init__()
        ggml.ggml_cpu_init()
        self.graphs = {}

    def forward(self, query, key, value, causal: bool):
        if any(x.dtype != torch.float32 for x in (query, key, value)):
            raise NotImplementedError("its memory is read as float32")
        if causal and query.size(2) != key.size(2):
            raise NotImplementedError("its causal mask is made for queries as many as keys")
        sizes = (query.shape, key.shape, value.shape, causal)
        if sizes not in self.graphs:
            self.graphs[sizes] = Graph(query, key, value, causal)
        return self.graphs[sizes](query, key, value)
