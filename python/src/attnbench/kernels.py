"""The kernels in the process of the caller's PyTorch: functions of tensors, and modules.

y = attnbench.attention(query, key, value, mechanism="linear", causal=True)
performer = attnbench.Mechanism("performer", heads=4, head_dim=64)
y = attnbench.scaled_dot_product_attention(query, key, value, is_causal=True)

Everything here needs PyTorch, of the version that the operators were built with, and the package's
compiled part; the rest of the package needs neither.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from attnbench.errors import OperatorsMissing

try:
    import torch
except ImportError as missing:  # the package without it reads, plans, compares and draws
    raise OperatorsMissing(
        "attnbench's kernels need PyTorch, which is not installed: python3 -m pip install torch"
    ) from missing

__all__ = ["Mechanism", "attention", "scaled_dot_product_attention"]


def _library() -> Path:
    """The operators: ATTNBENCH_OPERATORS, or beside the program that this package came with."""
    said = os.environ.get("ATTNBENCH_OPERATORS")
    if said:
        return Path(said)
    return Path(__file__).parent / "native/lib/libattnbench-operators.so"


def _built_with(library: Path) -> str:
    """The PyTorch that the operators were built with; empty where nothing says so."""
    note = library.with_suffix(".torch")
    return note.read_text(encoding="utf-8").strip() if note.is_file() else ""


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _load() -> None:
    library = _library()
    if not library.is_file():
        raise OperatorsMissing(
            f"{library}: no operators: this installation of attnbench has no compiled part; install "
            "a wheel (python3 -m pip install --only-binary attnbench attnbench), or set "
            "ATTNBENCH_OPERATORS to build/release/lib/libattnbench-operators.so of a checkout that "
            "was built with this PyTorch"
        )
    built = _built_with(library)
    if built and _minor(built) != _minor(torch.__version__):
        raise OperatorsMissing(
            f"attnbench's kernels were built with PyTorch {built}, and {torch.__version__} is "
            f"installed: python3 -m pip install 'torch=={_minor(built)}.*', or an attnbench that was "
            "built with yours"
        )
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise OperatorsMissing(
            f"{library} cannot be loaded into PyTorch {torch.__version__}"
            + (f"; it was built with {built}" if built else "")
            + f": {error}"
        ) from error


_load()
_ops = torch.ops.attnbench
_mix = _ops.mix.default


def _register_fakes() -> None:
    """What torch.compile and torch.export are told of results, without computing them."""
    register = getattr(torch.library, "register_fake", None)
    if register is None:  # before PyTorch 2.4
        return

    def mix(
        inputs: list[torch.Tensor],
        weights: list[torch.Tensor],
        key_mask: torch.Tensor | None,
        call: str,
    ) -> torch.Tensor:
        said = json.loads(call)
        query, value = inputs[said["query"]], inputs[said["value"]]
        return query.new_empty((*query.shape[:3], value.shape[3]))

    def mix_backward(
        upstream: torch.Tensor,
        inputs: list[torch.Tensor],
        weights: list[torch.Tensor],
        key_mask: torch.Tensor | None,
        call: str,
    ) -> list[torch.Tensor]:
        return [
            torch.empty_like(one, memory_format=torch.contiguous_format)
            for one in (*inputs, *weights)
        ]

    def step(
        inputs: list[torch.Tensor],
        weights: list[torch.Tensor],
        state: list[torch.Tensor],
        names: list[str],
        position: int,
        key_mask: torch.Tensor | None,
        call: str,
    ) -> torch.Tensor:
        return mix(inputs, weights, key_mask, call)

    register("attnbench::mix")(mix)
    register("attnbench::mix_backward")(mix_backward)
    register("attnbench::step")(step)


_register_fakes()


def _plain(name: str, value: Any) -> Any:
    """An option's value as JSON has it."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(name, one) for key, one in value.items()}
    if isinstance(value, _Frozen):
        return {key: _plain(name, one) for key, one in value.items}
    raise ValueError(f"{name}={value!r}: expected a finite number, a word, True or False")


@dataclass(frozen=True)
class _Frozen:
    """A mapping that can be looked up, such as a window's {"left": 8, "right": 0}."""

    items: tuple[tuple[str, Any], ...]


def _frozen(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, _Frozen(tuple(sorted(value.items()))) if isinstance(value, Mapping) else value)
        for name, value in sorted(options.items())
    )


def _text(
    mechanism: str,
    implementation: str,
    pattern: str,
    options: Mapping[str, Any],
    roles: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
    query: int = 0,
    value: int = 0,
) -> str:
    call = {
        "mechanism": mechanism,
        "implementation": implementation,
        "pattern": pattern,
        "options": {name: _plain(name, one) for name, one in options.items()},
        "roles": roles,
        "weights": weights,
        "query": query,
        "value": value,
    }
    return json.dumps(call, sort_keys=True)


def _pattern(causal: bool, tokens: int, keys: int) -> str:
    if causal:
        return "causal"
    return "bidirectional" if tokens == keys else "cross"


def _places(roles: list[dict[str, Any]]) -> tuple[int, int]:
    """Which inputs give the output's batch, heads and tokens, and which its width."""
    names = [role["name"] for role in roles]
    query = next((i for i, role in enumerate(roles) if role["tokens"] == "query"), 0)
    return query, names.index("value") if "value" in names else query


@lru_cache(maxsize=512)
def _attention_call(
    mechanism: str, implementation: str, pattern: str, options: tuple[tuple[str, Any], ...]
) -> tuple[str, tuple[int, ...]]:
    """The text of a call of query, key and value, and which of these each role is."""
    chosen = dict(options)
    bare = _text(mechanism, implementation, pattern, chosen)
    sizes = [1, 1, 1, 64, 64, 64, 64]
    said = json.loads(_ops.describe(bare, sizes, torch.float32))
    roles = said["roles"]
    names = [role["name"] for role in roles]
    if said["weights"]:
        weights = ", ".join(one["name"] for one in said["weights"])
        raise ValueError(
            f"{said['mechanism']} has weights ({weights}), which a function has no place for; "
            f'make a module: attnbench.Mechanism("{mechanism}", heads=…, head_dim=…)'
        )
    order = []
    for role in roles:
        if role["tokens"] == "query":
            order.append(0)
        elif role["name"] == "value":
            order.append(2)
        elif role["tokens"] == "key":
            order.append(1)
    if sorted(order) != [0, 1, 2]:
        raise ValueError(
            f"{said['mechanism']} takes {', '.join(names)}, and not a query, a key and a value; "
            f'make a module: attnbench.Mechanism("{mechanism}", heads=…, head_dim=…)'
        )
    query, value = _places(roles)
    return (
        _text(mechanism, implementation, pattern, chosen, tuple(names), (), query, value),
        tuple(order),
    )


def _constant_call(
    mechanism: str, implementation: str, pattern: str, options: tuple[tuple[str, Any], ...]
) -> tuple[str, tuple[int, ...]]:
    return _attention_call(mechanism, implementation, pattern, options)


_is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

if hasattr(torch, "compiler") and hasattr(torch.compiler, "assume_constant_result"):
    # torch.compile takes the text as it is, and does not trace how it came to be.
    torch.compiler.assume_constant_result(_constant_call)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mechanism: str = "latte",
    causal: bool = True,
    implementation: str = "auto",
    *,
    key_mask: torch.Tensor | None = None,
    **options: Any,
) -> torch.Tensor:
    """Attention by a mechanism of query, key and value, with gradients.

    query: [B, H, T, D]; key: [B, G, S, D], G a divisor of H where the mechanism shares key heads;
    value: [B, G, S, Dv]; one dtype of float32, float64, bfloat16 or float16, one device, any
    strides. For latte query and key are the scores of its latents, [B, H, T, L]. key_mask: [B, S]
    bool, True for real tokens. mechanism: a name or alias of `attnbench list`, as in "linear";
    options: its own, as in chunk=64. Returns [B, H, T, Dv].

    Raises ValueError for what cannot be meant, and NotImplementedError, with the reason, for what
    the mechanism or the implementation does not support.

    >>> import torch, attnbench
    >>> query, key, value = torch.randn(3, 1, 2, 128, 16).unbind(0)
    >>> attnbench.attention(query, key, value, "linear").shape
    torch.Size([1, 2, 128, 16])
    """
    pattern = "causal" if causal else _pattern(False, query.size(-2), key.size(-2))
    call, order = _constant_call(
        mechanism, implementation, pattern, _frozen(options) if options else ()
    )
    given = (query, key, value)
    result: torch.Tensor = _mix([given[i] for i in order], [], key_mask, call)
    return result


class Mechanism(torch.nn.Module):
    """A mechanism as a module, with its parameters: what mixes heads, without projections.

    name: a name or alias of `attnbench list`; heads H, head_dim D, value_dim Dv (D by default),
    kv_heads G (H by default); length: tokens that a mechanism with weights by position is made for
    (linformer); seed: of the parameters; options: the mechanism's own.
    `roles` names the inputs of forward in their order, each [B, H, tokens, width].

    Raises ValueError and NotImplementedError as attnbench.attention does.

    >>> import torch, attnbench
    >>> performer = attnbench.Mechanism("performer", heads=2, head_dim=16, features=32)
    >>> performer.roles
    ('query', 'key', 'value')
    >>> performer(*torch.randn(3, 1, 2, 128, 16).unbind(0)).shape
    torch.Size([1, 2, 128, 16])
    """

    def __init__(
        self,
        name: str,
        heads: int,
        head_dim: int,
        *,
        kv_heads: int | None = None,
        value_dim: int | None = None,
        length: int = 256,
        causal: bool = True,
        implementation: str = "auto",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self._name, self._implementation, self._causal = name, implementation, bool(causal)
        self._options = dict(options)
        self._sizes = [
            1,
            heads,
            heads if kv_heads is None else kv_heads,
            length,
            length,
            head_dim,
            head_dim if value_dim is None else value_dim,
        ]
        bare = _text(name, implementation, _pattern(causal, 1, 1), options)
        self._bare = bare
        said = json.loads(_ops.describe(bare, self._sizes, dtype))
        fed = [role["name"] for role in said["roles"] if role["fed"]]
        if fed and "before" in options:
            raise ValueError(
                f"before={options['before']!r}: {name} runs it on tokens, before they are projected "
                f"to {', '.join(fed)}, which are this module's inputs; leave it out"
            )
        self.roles: tuple[str, ...] = tuple(role["name"] for role in said["roles"])
        self._places = _places(said["roles"])
        tensors = _ops.initial_weights(bare, self._sizes, dtype, torch.device(device), seed)
        names = []
        for one, tensor in zip(said["weights"], tensors, strict=True):
            if "." in one["name"]:
                continue  # of what runs before the projection
            names.append(one["name"])
            if one["parameter"]:
                self.register_parameter(one["name"], torch.nn.Parameter(tensor))
            else:
                self.register_buffer(one["name"], tensor)
        self._names = tuple(names)
        self._calls = {
            pattern: _text(
                name, implementation, pattern, options, self.roles, self._names, *self._places
            )
            for pattern in ("causal", "bidirectional", "cross")
        }

    def extra_repr(self) -> str:
        sizes = dict(heads=self._sizes[1], head_dim=self._sizes[5], causal=self._causal)
        return ", ".join(
            [repr(self._name), *(f"{k}={v!r}" for k, v in {**sizes, **self._options}.items())]
        )

    def input_shapes(self, batch: int, tokens: int) -> dict[str, tuple[int, ...]]:
        """The shape of each role's tensor for so many tokens, by name."""
        sizes = [batch, *self._sizes[1:3], tokens, tokens, *self._sizes[5:]]
        said = json.loads(_ops.describe(self._bare, sizes, torch.float32))
        return {role["name"]: tuple(role["shape"]) for role in said["roles"]}

    def _inputs(self, given: tuple[torch.Tensor, ...], named: Mapping[str, Any]) -> list[Any]:
        if not named:
            if len(given) == len(self.roles):
                return list(given)
        roles = dict(zip(self.roles, given, strict=False))
        for name, tensor in named.items():
            if name not in self.roles:
                raise ValueError(
                    f"{self._name} has no role {name!r}; there are: {', '.join(self.roles)}"
                )
            if name in roles:
                raise ValueError(f"the role {name} is given twice, by place and by name")
            roles[name] = tensor
        missing = [name for name in self.roles if name not in roles]
        if missing or len(given) > len(self.roles):
            raise ValueError(
                f"{self._name} takes {', '.join(self.roles)}; "
                + (f"missing: {', '.join(missing)}" if missing else f"{len(given)} were given")
            )
        return [roles[name] for name in self.roles]

    def _weights(self) -> list[torch.Tensor]:
        return [getattr(self, name) for name in self._names]

    def forward(
        self, *inputs: torch.Tensor, key_mask: torch.Tensor | None = None, **named: torch.Tensor
    ) -> torch.Tensor:
        """Mixes whole sequences: the roles in their order or by name, [B, H, T, Dv] comes out."""
        given = self._inputs(inputs, named)
        tokens, keys = (given[i].size(-2) for i in self._places)
        pattern = _pattern(self._causal, tokens, keys)
        result: torch.Tensor = _mix(given, self._weights(), key_mask, self._calls[pattern])
        return result

    def empty_state(
        self,
        batch: int,
        capacity: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> dict[str, torch.Tensor]:
        """The decoding state before the first token, for up to `capacity` tokens, by name."""
        sizes = [batch, *self._sizes[1:]]
        call = self._calls["causal"]
        names = _ops.state_names(call, sizes, dtype)
        tensors = _ops.empty_state(call, sizes, dtype, torch.device(device), capacity)
        return dict(zip(names, tensors, strict=True))

    def step(
        self,
        *inputs: torch.Tensor,
        state: Mapping[str, torch.Tensor],
        position: int,
        key_mask: torch.Tensor | None = None,
        **named: torch.Tensor,
    ) -> torch.Tensor:
        """Continues from `state`, which holds `position` tokens, and updates it in place.

        inputs: the roles of the next tokens, [B, H, tokens, width] each. No gradients.
        """
        if not self._causal:
            raise NotImplementedError(f"{self._name}: only the causal pattern continues from a state")
        names = sorted(state)
        result: torch.Tensor = _ops.step(
            self._inputs(inputs, named),
            self._weights(),
            [state[name] for name in names],
            names,
            position,
            key_mask,
            self._calls["causal"],
        )
        return result


# Of the sizes that tests/benchmarks/python/kernels_from_python.py --drop-in measures, softmax's tiles
# were faster on all with so many tokens and no wider heads; with 4 and 16 tokens they were not.
_LEAST_TOKENS = 64
_GREATEST_WIDTH = 128


def _ours_is_faster(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return bool(
        query.device.type == "cpu"
        and query.dtype == torch.float32
        and query.dim() == 4
        and query.shape == key.shape
        and value.dim() == 4
        and key.shape[:3] == value.shape[:3]
        and query.size(2) >= _LEAST_TOKENS
        and max(query.size(3), value.size(3)) <= _GREATEST_WIDTH
    )


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """PyTorch's function of this name, by our kernel where that is not slower.

    Everything else (masks, dropout, a scale, other devices and dtypes) is handed over to PyTorch.

    >>> import torch, attnbench
    >>> query, key, value = torch.randn(3, 1, 2, 128, 16).unbind(0)
    >>> ours = attnbench.scaled_dot_product_attention(query, key, value, is_causal=True)
    >>> theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    >>> torch.allclose(ours, theirs, atol=1e-5)
    True
    """
    if (
        attn_mask is None
        and dropout_p == 0
        and scale is None
        and not enable_gqa
        and not _is_compiling()  # a compiler knows PyTorch's own, and fuses it
        and _ours_is_faster(query, key, value)
    ):
        return attention(query, key, value, "softmax", is_causal)
    more: dict[str, Any] = {} if scale is None else {"scale": scale}
    if enable_gqa:
        more["enable_gqa"] = True
    result: torch.Tensor = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, **more
    )
    return result
