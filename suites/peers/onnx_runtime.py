"""onnxruntime's attention on the CPU: its own operator MultiHeadAttention, and ONNX's Attention.

Needs onnxruntime 1.18 or newer and onnx; ONNX's operator, of opset 23, onnxruntime 1.23. Its own
takes [B, T, H D], so transposing to and from [B, H, T, D] is part of the graph, and of its time;
ONNX's takes [B, H, T, D], and fewer heads of keys and values than of queries. Forward only.
"""

import numpy
import torch

try:
    import onnx
    import onnxruntime
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    onnxruntime, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if onnxruntime is None:
        return f"onnxruntime 1.18 or newer cannot be imported ({reason}): python3 -m pip install onnxruntime onnx"
    return None


def too_old():
    if unavailable() is not None:
        return unavailable()
    if tuple(int(part) for part in onnxruntime.__version__.split(".")[:2]) < (1, 23):
        return f"ONNX's Attention needs onnxruntime 1.23 or newer, this is {onnxruntime.__version__}"
    return None


def declared(name, heads, width):
    """A tensor of the graph, of any batch and any number of tokens."""
    shape = ["batch", heads, None, width]
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def own_graph(heads, head_dim, value_dim, causal):
    """Transposes, the operator, and a transpose back."""
    node = onnx.helper.make_node
    merged = numpy.array([0, 0, -1], dtype=numpy.int64)
    split = numpy.array([0, 0, heads, value_dim], dtype=numpy.int64)
    steps = []
    for name in ("query", "key", "value"):
        steps.append(node("Transpose", [name], [name + "_by_token"], perm=[0, 2, 1, 3]))
        steps.append(node("Reshape", [name + "_by_token", "merged"], [name + "_merged"]))
    steps += [node("MultiHeadAttention", ["query_merged", "key_merged", "value_merged"], ["mixed"],
                   domain="com.microsoft", num_heads=heads, unidirectional=int(causal)),
              node("Reshape", ["mixed", "split"], ["mixed_by_token"]),
              node("Transpose", ["mixed_by_token"], ["output"], perm=[0, 2, 1, 3])]

    inputs = [declared("query", heads, head_dim), declared("key", heads, head_dim),
              declared("value", heads, value_dim)]
    constants = [onnx.numpy_helper.from_array(merged, "merged"),
                 onnx.numpy_helper.from_array(split, "split")]
    output = declared("output", heads, value_dim)
    whole = onnx.helper.make_graph(steps, "attention", inputs, [output], constants)
    versions = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(whole, opset_imports=versions, ir_version=8)


def standard_graph(heads, kv_heads, head_dim, value_dim, causal):
    """The operator alone."""
    inputs = [declared("query", heads, head_dim), declared("key", kv_heads, head_dim),
              declared("value", kv_heads, value_dim)]
    step = onnx.helper.make_node("Attention", ["query", "key", "value"], ["output"],
                                 is_causal=int(causal))
    output = declared("output", heads, value_dim)
    whole = onnx.helper.make_graph([step], "attention", inputs, [output])
    return onnx.helper.make_model(whole, opset_imports=[onnx.helper.make_opsetid("", 23)],
                                  ir_version=10)


class Session(torch.nn.Module):
    """What the mechanisms below share: a model of onnxruntime, and its call."""

    patterns = ["bidirectional", "causal", "cross"]
    packages = ["onnxruntime", "onnx"]
    devices = ["cpu"]
    dtypes = ["float32"]
    differentiable = False
    claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant", "heads_independent"]

    def __init__(self, model):
        super().__init__()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), settings,
                                                    providers=["CPUExecutionProvider"])

    def forward(self, query, key, value, causal: bool):
        if causal and query.size(2) != key.size(2):
            raise NotImplementedError("its causal triangle starts at the first key")
        arrays = {"query": query, "key": key, "value": value}
        arrays = {k: numpy.from_dlpack(x.detach().contiguous()) for k, x in arrays.items()}
        return torch.from_dlpack(self.session.run(["output"], arrays)[0])


class Attention(Session):
    """onnxruntime's attention on the CPU."""

    reference = "softmax"

    def __init__(self, heads, head_dim, value_dim, causal):
        super().__init__(own_graph(heads, head_dim, value_dim, causal))


class Standard(Session):
    """ONNX's Attention in onnxruntime on the CPU."""

    reference = "softmax"
    unavailable = staticmethod(too_old)
    shares_heads = True

    def __init__(self, heads, kv_heads, head_dim, value_dim, causal):
        super().__init__(standard_graph(heads, kv_heads, head_dim, value_dim, causal))
