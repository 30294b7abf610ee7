"""One function of tensors, measured as a cell of a run is: in fresh processes of the worker."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnbench.errors import ProgramFailed
from attnbench.program import Program, find_program
from attnbench.progress import Event, choose
from attnbench.results import Object, load
from attnbench.running import REPEATED, flag_of, measured, plain

if TYPE_CHECKING:
    from torch import Tensor

_DTYPES = ("float32", "float64", "bfloat16", "float16")
_INTERVALS = {"order": "95 %", "range": "range of the rounds", "samples": "of samples"}


@dataclass(frozen=True)
class Measurement:
    """What one call takes, times in seconds.

    status: "ok", "disturbed" where others had the CPU, or what else became of it, for the `reason`.
    timing: what was timed, "forward" or "forward+backward". median_seconds is over `rounds`, each a
    fresh process, and bounded by low_seconds and high_seconds: interval says whether by "order"
    (order statistics, 95 %), the "range" of the rounds, or the "samples" of one round.
    rounds_disturbed: how many of them are. workspace_bytes: allocated during the call beside its
    output; peak_bytes: with inputs and output. compile_seconds: what the first call, which is not
    timed, took beyond the median of later ones, as where torch.compile works. What was not measured
    is None.
    record: everything, as result.json has it.
    """

    name: str
    status: str
    reason: str
    timing: str
    median_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    interval: str
    rounds: int
    rounds_disturbed: int
    workspace_bytes: int | None
    peak_bytes: int | None
    compile_seconds: float | None
    record: dict[str, Any]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{key}={one}" for key, one in (self.record.get("problem") or {}).items())
        lines = [f"{self.name}: {sizes}"]
        if self.median_seconds and self.low_seconds and self.high_seconds:
            bounds = f"{_time(self.low_seconds)} to {_time(self.high_seconds)}"
            kind = _INTERVALS.get(self.interval, self.interval)
            lines.append(f"{self.timing} {_time(self.median_seconds)} ({bounds}, {kind})")
            lines.append(f"rounds {self.rounds}, disturbed {self.rounds_disturbed}")
            if self.compile_seconds and self.compile_seconds > 10 * self.median_seconds:
                lines.append(f"the first call, not timed, took {_time(self.compile_seconds)} more")
        if self.workspace_bytes is not None and self.peak_bytes is not None:
            lines.append(f"workspace {_size(self.workspace_bytes)}, peak {_size(self.peak_bytes)}")
        return "\n".join([*lines, f"{self.status}: {self.reason}" if self.reason else self.status])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def measure(
    fn: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    causal: bool = True,
    backward: bool | None = None,
    program: Program = None,
    progress: str | bool | Callable[[Event], None] = "auto",
    **options: Any,
) -> Measurement:
    """Measures one call of a function or class, in processes of its own: time, noise and memory.

    fn: a function or class of PyTorch as attnbench.run takes it, given query, key and value by
    these names. query: [B, H, T, D]; key: [B, G, S, D], G a divisor of H; value: [B, G, S, Dv]; S is
    T where causal. One dtype of float32, float64, bfloat16 or float16, one device, the CPU or a
    card. Sizes, dtype and device are taken of them: what is measured are contiguous tensors of
    random numbers, new for each call. backward: whether the backward pass is timed, too; None:
    where a tensor requires a gradient. Further options are flags of `attnbench run --help` and options of
    the function: rounds=9, threads=1, now=True, slope=0.5; out="runs/mine" keeps the run, which is
    else deleted. program and progress are those of attnbench.run.

    Each round warms up, and samples until the interval of its median is narrow. A disturbed
    measurement is an answer, and no error. Raises ValueError for tensors that are no call of
    attention and a callable that cannot be carried, ProgramFailed, with the reason, for a call that
    fails or is wrong, ProgramNotFound and Interrupted.

    >>> query, key, value = torch.randn(3, 1, 2, 128, 16).unbind(0)
    >>> found = attnbench.measure(near, query, key, value, rounds=1, now=True, progress="none")
    >>> found.timing, found.interval, found.rounds
    ('forward', 'samples', 1)
    """
    if not callable(fn):
        raise ValueError(f"{fn!r}: expected a function or a class; for a name: attnbench.run")
    settings = _settings(query, key, value, causal)
    wanted = any(one.requires_grad for one in (query, key, value)) if backward is None else backward
    settings["pass"] = "forward+backward" if wanted else "forward"
    if twice := sorted(settings.keys() & options.keys()):
        raise ValueError(f"{', '.join(twice)}: said by the tensors, by causal and by backward")
    for name, value in options.items():
        several = plain(value)
        if isinstance(several, list) and len(several) != 1 and flag_of(name) not in REPEATED:
            raise ValueError(f"{name}: {len(several)} values; expected one, for one cell")
    with tempfile.TemporaryDirectory(prefix="attnbench-") as folder:
        more = {"out": Path(folder) / "run", "no_report": True, "no_ceilings": True, **options}
        try:
            file = measured([fn], find_program(program), choose(progress), {**settings, **more})
        except ProgramFailed as error:
            if error.result is None:
                raise
            cell = _cell(error.result)
            kept = error.result if "out" in options else None
            reason = f"{cell['label']}: {cell['status']}: {cell.get('reason', error.message)}"
            raise ProgramFailed(error.exit_code, reason, kept) from None
        return _measurement(_cell(file))


def _settings(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> dict[str, Any]:
    """The settings of the task kernel that give tensors of these sizes. Raises ValueError."""
    named = {"query": query, "key": key, "value": value}
    for name, one in named.items():
        if not hasattr(one, "requires_grad"):
            raise ValueError(f"{name} is a {type(one).__name__}; expected a tensor of PyTorch")
        said = f"{name} is {list(one.shape)}"
        if len(one.shape) != 4:
            wanted = "[batch, heads, tokens, width]"
            raise ValueError(f"{said}: {len(one.shape)} dimensions; expected {wanted}")
        if 0 in one.shape:
            raise ValueError(f"{said}: it is empty; expected one of each at least")
    kinds: dict[str, str] = {}
    for what, expected in (("dtype", _DTYPES), ("device", ("cpu", "cuda"))):
        words = {name: str(getattr(one, what)).split(".")[-1] for name, one in named.items()}
        kinds[what] = words["query"]
        if len(set(words.values())) > 1 or kinds[what].partition(":")[0] not in expected:
            found = ", ".join(f"{name} {word}" for name, word in words.items())
            raise ValueError(f"{what}: {found}; expected one for all, of {', '.join(expected)}")
    batch, heads, length, head_dim = query.shape
    _, kv_heads, key_length, value_dim = value.shape
    if tuple(key.shape) != (batch, kv_heads, key_length, head_dim) or heads % kv_heads:
        shapes = ", ".join(f"{name} {list(one.shape)}" for name, one in named.items())
        forms = "[B, H, T, D], [B, G, S, D] and [B, G, S, Dv], G a divisor of H"
        raise ValueError(f"{shapes}: these do not fit together; expected {forms}")
    if causal and length != key_length:
        raise ValueError(f"causal: {length} queries and {key_length} keys; pass causal=False")
    crossed = {} if length == key_length else {"key_length": key_length}
    pattern = "causal" if causal else "cross" if crossed else "bidirectional"
    sizes = dict(batch=batch, heads=heads, kv_heads=kv_heads, length=length, **crossed)
    return {**sizes, "head_dim": head_dim, "value_dim": value_dim, "pattern": pattern, **kinds}


def _cell(file: Path) -> Object:
    cells: list[Object] = load(file)["attnbench"]["cells"]
    if len(cells) > 1:
        raise ValueError(f"{len(cells)} cells; expected one value of each option, not a list")
    return cells[0]


def _measurement(cell: Object) -> Measurement:
    timing = cell.get("primary", "")
    times: Object = (cell.get("timing") or {}).get(timing, {})
    rounds, memory = times.get("rounds", []), cell.get("memory") or {}
    return Measurement(
        name=cell["label"],
        status=cell["status"],
        reason=cell.get("reason", ""),
        timing=timing,
        median_seconds=times.get("median_seconds"),
        low_seconds=times.get("low_seconds"),
        high_seconds=times.get("high_seconds"),
        interval=times.get("interval", ""),
        rounds=len(rounds),
        rounds_disturbed=sum(one.get("disturbed", False) for one in rounds),
        workspace_bytes=memory.get("workspace_bytes"),
        peak_bytes=memory.get("peak_bytes"),
        compile_seconds=(cell.get("python") or {}).get("compile_seconds"),
        record=cell,
    )


def _time(seconds: float) -> str:
    return _scaled(seconds, {"s": 1, "ms": 1e-3, "µs": 1e-6})


def _size(count: int) -> str:
    return _scaled(count, {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1})


def _scaled(number: float, units: dict[str, float]) -> str:
    """Three digits, in the greatest unit that it has, else in the last one."""
    unit = next((word for word, size in units.items() if number >= size), list(units)[-1])
    return f"{number / units[unit]:.3g} {unit}"
