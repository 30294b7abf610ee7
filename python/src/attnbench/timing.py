"""The time of any callable in this process, with an interval and what disturbed it."""

from __future__ import annotations

import inspect
import itertools
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

# When it is enough: SamplingRule of core/protocol.hpp and harness/measure/sampler.cpp.
_RELATIVE_INTERVAL = 0.01
_LEAST_SAMPLES, _MOST_SAMPLES = 10, 2000
_WARM_UP_SECONDS = 0.05
_PATIENCE = 2  # times as long where samples are disturbed
_LEAST_SAMPLE_SECONDS = 1e-4  # shorter calls are repeated: reading the clock takes some 0.1 µs

# What counts as a disturbance: harness/measure/interference.* and disturbed_round.cpp, as shares of
# a sample's time (preempted) and of the time of CPUs.
_PREEMPTED_SHARE = 0.02
_STOLEN_LIMIT, _NEIGHBOURS_LIMIT = 0.05, 0.10
_CROWDED_OTHERS_LIMIT, _CROWDED_LOST_LIMIT = 0.45, 0.5
_LEAST_SECONDS = 0.05  # /proc/stat counts in ticks
_WAKE_SECONDS = 50e-6  # to wake a thread; the harness measures it and takes this at most
_SLICE_SECONDS = 1e-3  # of an involuntary switch where the kernel does not count waits


@dataclass(frozen=True, repr=False)
class Measurement:
    """What attnbench.measure found; all times are seconds of one call.

    median_seconds: of the samples that count. low_seconds, high_seconds: its interval, which is
    "order" (order statistics, 95 %) or, of fewer than six samples, their "range". samples: all, in
    order, each the mean of `calls` calls; preempted: places of those that other processes
    interrupted and that do not count. disturbed: why the median is not to be trusted, or "".
    peak_bytes: the most memory of the process during the calls, of which base_bytes were there
    before; None where the system does not say. Memory of a card is not in it.
    """

    name: str
    median_seconds: float
    low_seconds: float
    high_seconds: float
    interval: str
    samples: tuple[float, ...]
    calls: int
    preempted: tuple[int, ...]
    disturbed: str
    peak_bytes: int | None
    base_bytes: int | None

    def __repr__(self) -> str:
        factor, unit = next(
            one for one in _UNITS if self.median_seconds * one[0] >= 1 or one is _UNITS[-1]
        )
        middle, low, high = (
            f"{factor * seconds:.4g}"
            for seconds in (self.median_seconds, self.low_seconds, self.high_seconds)
        )
        kind = "95 %" if self.interval == "order" else "range"
        words = f"{self.name}: {middle} {unit} ({kind}: {low} to {high}), {len(self.samples)} samples"
        if self.preempted:
            words += f", {len(self.preempted)} preempted"
        if self.peak_bytes is not None:
            words += f", peak {self.peak_bytes / 2**20:.1f} MiB"
        if self.peak_bytes is not None and self.base_bytes is not None:
            words += f" (+{(self.peak_bytes - self.base_bytes) / 2**20:.1f})"
        return words + (f"; disturbed: {self.disturbed}" if self.disturbed else "")


_UNITS = ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


def measure(
    fn: Callable[..., object],
    *arguments: Any,
    min_time: float = 0.2,
    max_time: float | None = None,
    **keywords: Any,
) -> Measurement:
    """Times fn(*arguments, **keywords), whatever it is: of NumPy, of PyTorch, of anybody.

    Calls warm up first, for 0.05 s and twice at least, and are timed until the interval of their
    median lies within 1 % of it. min_time: seconds to sample at least; max_time: at most, and twice
    that where other processes disturb; None: the greater of 2 s and min_time. Short calls are
    repeated to samples of 0.1 ms. The caches are as warm as the calls leave them; results are thrown
    away; gradients and the garbage collector are as the caller has them. Where an argument or the
    result is a tensor on a CUDA device, each sample ends when that device has finished.

    On the CPU, samples whose threads waited for others for more than 2 % of them do not count, and
    `disturbed` says by the limits of docs/measuring.md where too few are left ("preempted"), or
    where others took the CPUs ("stolen", "neighbours", "crowded"). Peak memory is VmHWM of /proc,
    which is reset for it: the process's own ru_maxrss starts anew, too.

    This measures in the caller's process, with what its other threads do at the time. A process of
    its own for each mechanism, turns, and limits of time and memory are what attnbench.run([fn]) has.

    An exception of fn comes through. Raises ValueError for what cannot be called, for a coroutine or
    a generator as result (its work is not done yet), and for times that are none.

    >>> found = attnbench.measure(sorted, [3, 1, 2], min_time=0.01, max_time=0.1)
    >>> found.low_seconds <= found.median_seconds <= found.high_seconds
    True
    """
    if not callable(fn):
        raise ValueError(f"{fn!r} cannot be called: expected a function, a module, a method")
    least = float(min_time)
    most = max(2.0, least) if max_time is None else float(max_time)
    if not 0 < least <= most < math.inf:
        raise ValueError(
            f"min_time={min_time}, max_time={max_time}: expected 0 < min_time <= max_time, in seconds"
        )
    memory, begin = _PeakMemory(), time.perf_counter()
    result = fn(*arguments, **keywords)
    first_seconds = time.perf_counter() - begin
    _refuse_unfinished(fn, result)
    synchronize = _synchronizer([*arguments, *keywords.values(), result])
    del result
    body = _Body(fn, arguments, keywords, synchronize or (lambda: None))
    if first_seconds <= most:
        body.warm_up(most)
    watch = _Watch(synchronize is None)
    seconds, preempted = _sample(body, watch, least, most)
    disturbed = watch.reason(len(seconds), preempted)
    peak, base = memory.end()
    left_out = set() if disturbed.startswith("preempted") else set(preempted)
    counted = [one for place, one in enumerate(seconds) if place not in left_out]
    bounds = median_interval(counted)
    low, high = bounds or (min(counted), max(counted))
    return Measurement(
        name=getattr(fn, "__name__", type(fn).__name__),
        median_seconds=median(counted),
        low_seconds=low,
        high_seconds=high,
        interval="order" if bounds else "range",
        samples=tuple(seconds),
        calls=body.calls,
        preempted=tuple(preempted),
        disturbed=disturbed,
        peak_bytes=peak,
        base_bytes=base,
    )


def median_interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """The order-statistic interval of the median (median_interval of core/statistics.cpp).

    None where there are too few values for that confidence: fewer than six for 95 %.
    """
    ranked = sorted(values)
    count = len(ranked)
    # [X_(k), X_(n+1-k)] misses the median only if fewer than k values lie on one side of it.
    rank, tail = -1, 0.0
    for place in range((count + 1) // 2):
        tail += math.exp(  # P(exactly `place` heads in `count` tosses); 2^-n underflows
            math.lgamma(count + 1)
            - math.lgamma(place + 1)
            - math.lgamma(count - place + 1)
            - count * math.log(2)
        )
        if 2 * tail > 1 - confidence:
            break
        rank = place
    return (ranked[rank], ranked[count - 1 - rank]) if rank >= 0 else None


def _refuse_unfinished(fn: object, result: object) -> None:
    if inspect.iscoroutine(result):
        result.close()
    elif not inspect.isgenerator(result):
        return
    raise ValueError(
        f"{fn!r} returns a {type(result).__name__}, whose work is done later: expected a function "
        "that has finished when it returns"
    )


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from _leaves(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _synchronizer(values: Iterable[Any]) -> Callable[[], None] | None:
    """What waits for the CUDA devices of these tensors; None where they have none."""
    devices = {one.device for one in _leaves(values) if getattr(one, "is_cuda", False) is True}
    torch: Any = sys.modules.get("torch")
    if not devices or torch is None:
        return None

    def synchronize() -> None:
        for device in devices:
            torch.cuda.synchronize(device)

    return synchronize


class _Body:
    """What a sample times: `calls` calls, and the device finished."""

    def __init__(
        self,
        fn: Callable[..., object],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        synchronize: Callable[[], None],
    ) -> None:
        self._fn, self._arguments, self._keywords = fn, arguments, keywords
        self._synchronize = synchronize
        self.calls = 1

    def seconds(self) -> float:
        """Of one sample."""
        fn, arguments, keywords = self._fn, self._arguments, self._keywords
        turns = itertools.repeat(None, self.calls)
        self._synchronize()
        begin = time.perf_counter()
        for _ in turns:
            fn(*arguments, **keywords)
        self._synchronize()
        return time.perf_counter() - begin

    def warm_up(self, most: float) -> None:
        """Further calls, and how many of them make a sample."""
        begin = time.perf_counter()
        while True:
            taken = self.seconds()
            passed = time.perf_counter() - begin
            if taken < _LEAST_SAMPLE_SECONDS:
                self.calls *= 2
            elif passed >= min(_WARM_UP_SECONDS, most):
                break


def _enough(clean: int, total: int) -> bool:
    """Whether these samples represent the calls (enough_clean of sampler.cpp)."""
    return 0 < clean and total <= 4 * clean and (clean >= _LEAST_SAMPLES or total <= 2 * clean)


def _narrow(values: list[float]) -> bool:
    bounds, middle = median_interval(values), median(values)
    return bounds is not None and (
        max(bounds[1] - middle, middle - bounds[0]) <= _RELATIVE_INTERVAL * middle
    )


def _sample(
    body: _Body, watch: _Watch, least: float, most: float
) -> tuple[list[float], list[int]]:
    """Samples, in seconds of a call, and the places of the preempted ones."""
    samples: list[float] = []
    clean: list[float] = []
    preempted: list[int] = []
    next_test = _LEAST_SAMPLES  # at 10, 15, 22, … alone: to test after each would stop on luck
    begin = time.perf_counter()
    while True:
        watch.begin()
        seconds = body.seconds()
        clear = watch.end(seconds)
        samples.append(seconds / body.calls)
        if clear:
            clean.append(samples[-1])
        else:
            preempted.append(len(samples) - 1)
        passed = time.perf_counter() - begin
        enough = _enough(len(clean), len(samples))
        if clear and len(clean) == next_test:
            next_test += next_test // 2
            if enough and passed >= least and _narrow(clean):
                break
        patience = 1 if enough else _PATIENCE
        if passed >= patience * most or len(samples) >= patience * _MOST_SAMPLES:
            if passed >= least:
                break
    return samples, preempted


class _Waited(NamedTuple):
    """How long threads waited for a CPU, and how often they got one."""

    seconds: float
    times: int


def _waits() -> dict[str, _Waited]:
    """Of each thread of the process, as the kernel counts them; empty where it does not."""
    found = {}
    folder = "/proc/self/task"
    for thread in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
                _, waited, times = file.read().split()
        except (OSError, ValueError):  # it has ended, or the kernel does not count
            continue
        found[thread] = _Waited(1e-9 * int(waited), int(times))
    return found


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class CpuTimes(NamedTuple):
    """Seconds of CPUs, summed over them: all, busy, used by other virtual machines, and ours."""

    total: float = 0.0
    busy: float = 0.0
    stolen: float = 0.0
    own: float = 0.0


class CpuShares(NamedTuple):
    """What others used of CPUs between two moments: shares of their time, and seconds."""

    stolen: float = 0.0
    others: float = 0.0
    stolen_seconds: float = 0.0
    others_seconds: float = 0.0
    known: bool = False


def _cpu_times(cpus: set[int]) -> CpuTimes:
    """Zeros where /proc/stat cannot be read."""
    tick = 1 / os.sysconf("SC_CLK_TCK")
    total = busy = stolen = 0
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return CpuTimes()
    for line in lines:
        name, *fields = line.split()
        if name[:3] != "cpu" or not name[3:].isdigit() or int(name[3:]) not in cpus:
            continue
        user, nice, system, idle, waiting, irq, soft, taken = map(int, fields[:8])
        busy += user + nice + system + irq + soft
        stolen += taken
        total += user + nice + system + irq + soft + idle + waiting + taken
    return CpuTimes(tick * total, tick * busy, tick * stolen, time.process_time())


def cpu_shares(before: CpuTimes, after: CpuTimes) -> CpuShares:
    """What others used between two moments (cpu_shares of interference.cpp)."""
    total, busy, stolen, own = (b - a for a, b in zip(before, after, strict=True))
    if total <= 0:
        return CpuShares()
    others = max(0.0, busy - own)
    return CpuShares(stolen / total, min(1.0, others / total), stolen, others, known=True)


def _shared_cores(cpus: set[int]) -> set[int]:
    """These CPUs and those on the same cores; empty where no core has a second one."""
    found = set()
    shared = False
    for cpu in cpus:
        file = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            words = file.read_text(encoding="ascii").strip().split(",")
        except OSError:
            continue
        ends = [[int(end) for end in word.split("-")] for word in words]
        beside = {one for end in ends for one in range(end[0], end[-1] + 1)}
        shared = shared or len(beside) > 1
        found |= beside
    return found if shared else set()


class _Watch:
    """What other processes took from the samples. On a card it watches nothing: the device goes on
    while its host waits."""

    def __init__(self, on_cpu: bool) -> None:
        self._on_cpu = on_cpu
        self._cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._cores = _shared_cores(self._cpus)
        self._before = _cpu_times(self._cpus), _cpu_times(self._cores)
        self._passed = self._lost = 0.0
        self._waits: dict[str, _Waited] = {}
        self._switches = 0

    def begin(self) -> None:
        if self._on_cpu:
            self._waits = _waits()
            self._switches = _switches()

    def end(self, seconds: float) -> bool:
        """Whether the sample since `begin`, of so many seconds, counts (ThreadWatch::end)."""
        if not self._on_cpu:
            return True
        switches = _switches() - self._switches
        lost = _SLICE_SECONDS * switches
        if self._waits:
            none = _Waited(0, 0)  # of threads that began within
            passed = [(self._waits.get(name, none), now) for name, now in _waits().items()]
            waited = sum(now.seconds - then.seconds for then, now in passed)
            times = sum(now.times - then.times for then, now in passed)
            lost = max(0.0, waited - _WAKE_SECONDS * max(0, times - switches))
        self._passed += seconds
        self._lost += lost
        return lost <= _PREEMPTED_SHARE * seconds

    def reason(self, samples: int, preempted: list[int]) -> str:
        """What disturbed these samples as a whole, or "". Empties `preempted` where the threads waited
        for each other."""
        if not self._on_cpu:
            return ""
        shares = cpu_shares(self._before[0], _cpu_times(self._cpus))
        cores = cpu_shares(self._before[1], _cpu_times(self._cores))
        if preempted and waited_for_own(self._lost, shares):
            preempted.clear()
        lost_share = self._lost / self._passed if self._passed > 0 else 0.0
        return disturbed_by(samples, len(preempted), lost_share, shares, cores)


def waited_for_own(lost_seconds: float, shares: CpuShares) -> bool:
    """Whether threads waited for each other, not for others, which were hardly busy."""
    step = 0.02  # of what /proc/stat can tell apart
    return shares.known and shares.others_seconds + shares.stolen_seconds + step < lost_seconds / 4


def disturbed_by(
    samples: int, preempted: int, lost_share: float, shares: CpuShares, cores: CpuShares
) -> str:
    """The rule of harness/measure/disturbed_round.cpp, in words, the first of which is its own."""
    if not _enough(samples - preempted, samples):
        return f"preempted (other processes interrupted {preempted} of {samples} samples)"
    if shares.stolen > _STOLEN_LIMIT and shares.stolen_seconds > _LEAST_SECONDS:
        return f"stolen (other virtual machines used {shares.stolen:.0%} of the CPUs)"
    if cores.others > _NEIGHBOURS_LIMIT and cores.others_seconds > _LEAST_SECONDS:
        return f"neighbours (other processes used {cores.others:.0%} of cores with two threads)"
    if (
        shares.known
        and shares.others > _CROWDED_OTHERS_LIMIT
        and lost_share > _CROWDED_LOST_LIMIT
    ):
        return f"crowded (other processes used {shares.others:.0%} of the CPUs)"
    return ""


class _PeakMemory:
    """The most memory that the process has from here on: VmHWM, reset by /proc/self/clear_refs."""

    def __init__(self) -> None:
        self._known = False
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            peak, self._base = self._now()
            self._known = peak <= self._base + 2**20  # else it was not reset
        except (OSError, ValueError):
            pass

    @staticmethod
    def _now() -> tuple[int, int]:
        """VmHWM and VmRSS, in bytes."""
        found = {}
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name in ("VmHWM", "VmRSS"):
                found[name] = 1024 * int(value.split()[0])
        if len(found) < 2:
            raise ValueError("no VmHWM and VmRSS in /proc/self/status")
        return found["VmHWM"], found["VmRSS"]

    def end(self) -> tuple[int, int] | tuple[None, None]:
        """The peak, and what there was before; None where the kernel does not say."""
        return (self._now()[0], self._base) if self._known else (None, None)
