"""onnxruntime's attention on the CPU: its operator MultiHeadAttention, full and causal.

Needs onnxruntime 1.18 or newer and onnx. The operator takes [B, T, H D], so transposing to and from
[B, H, T, D] is part of the graph, and of its time. Forward only.
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


def graph(heads, head_dim, value_dim, causal):
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

    def declared(name, width):
        shape = ["batch", heads, None, width]
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    inputs = [declared("query", head_dim), declared("key", head_dim), declared("value", value_dim)]
    constants = [onnx.numpy_helper.from_array(merged, "merged"),
                 onnx.numpy_helper.from_array(split, "split")]
    whole = onnx.helper.make_graph(steps, "attention", inputs, [declared("output", value_dim)],
                                   constants)
    versions = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(whole, opset_imports=versions, ir_version=8)


class Attention(torch.nn.Module):
    """onnxruntime's attention on the CPU."""

    reference = "softmax"
    packages = ["onnxruntime", "onnx"]
    devices = ["cpu"]
    dtypes = ["float32"]
    differentiable = False
    claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant", "heads_independent"]

    def __init__(self, heads, head_dim, value_dim, causal):
        super().__init__()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = torch.get_num_threads()
        model = graph(heads, head_dim, value_dim, causal)
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), settings,
                                                    providers=["CPUExecutionProvider"])

    def forward(self, query, key, value, causal: bool):
        if causal and query.size(2) != key.size(2):
            raise NotImplementedError("its causal triangle starts at the first key")
        arrays = {"query": query, "key": key, "value": value}
        arrays = {k: numpy.from_dlpack(x.detach().contiguous()) for k, x in arrays.items()}
        return torch.from_dlpack(self.session.run(["output"], arrays)[0])
