"""OpenVINO's attention on the CPU: its operator ScaledDotProductAttention, full and causal.

Needs openvino 2024.1 or newer. In float32: processors with bfloat16 products would round otherwise.
Forward only.
"""

import sys

import numpy
import torch

# Importing openvino would send a note of its use over the network from a process of its own, which
# may hang there and is no part of a measurement.
sys.modules.setdefault("openvino_telemetry", None)
try:
    import openvino
    from openvino import opset13
except Exception as error:  # a numpy or PyTorch that it does not suit stops it in other ways
    openvino, reason = None, f"{type(error).__name__}: {error}"


def unavailable():
    if openvino is None:
        return f"openvino 2024.1 or newer cannot be imported ({reason}): python3 -m pip install openvino"
    return None


class Attention(torch.nn.Module):
    """OpenVINO's attention on the CPU."""

    patterns = ["bidirectional", "causal", "cross"]
    reference = "softmax"
    packages = ["openvino"]
    devices = ["cpu"]
    dtypes = ["float32"]
    differentiable = False
    claims = ["rows_sum_to_one", "linear_in_value", "permutation_equivariant", "heads_independent"]

    def __init__(self, heads, head_dim, value_dim, causal):
        super().__init__()
        widths = {"query": head_dim, "key": head_dim, "value": value_dim}
        inputs = [opset13.parameter([-1, heads, -1, width], numpy.float32, name)
                  for name, width in widths.items()]
        output = opset13.scaled_dot_product_attention(*inputs, causal=causal)
        settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads(),
                    "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        model = openvino.Model([output], inputs, "attention")
        self.request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()

    def forward(self, query, key, value, causal: bool):
        if causal and query.size(2) != key.size(2):
            raise NotImplementedError("its causal triangle starts at the first key")
        arrays = [numpy.from_dlpack(x.detach().contiguous()) for x in (query, key, value)]
        [output] = self.request.infer(arrays, share_inputs=True).values()
        return torch.from_dlpack(output)
