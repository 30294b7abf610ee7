"""Times of callables: by a clock of the test, the rule for disturbances, memory, and what is refused."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Generator
from typing import Any

import attnbench
import numpy as np
import pytest
from attnbench import timing
from attnbench.timing import CpuShares, CpuTimes, cpu_shares, disturbed_by, waited_for_own


class Clock:
    """Time passes in calls alone, in each as much as the next of `seconds`, over and over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.now, self.calls, self.seconds = 0.0, 0, seconds
        of_test = types.SimpleNamespace(perf_counter=lambda: self.now, process_time=lambda: 0.0)
        monkeypatch.setattr(timing, "time", of_test)
        monkeypatch.setattr(timing, "_waits", dict)
        monkeypatch.setattr(timing, "_switches", lambda: 0)
        monkeypatch.setattr(timing, "_cpu_times", lambda cpus: CpuTimes())

    def call(self) -> None:
        self.now += self.seconds[self.calls % len(self.seconds)]
        self.calls += 1


def test_the_interval_is_that_of_the_harness() -> None:
    values = [float(value) for value in range(20, 0, -1)]
    assert timing.median_interval(values[:5]) is None
    assert timing.median_interval(values[:6]) == (15, 20)
    assert timing.median_interval(values[:10]) == (12, 19)
    assert timing.median_interval(values) == (6, 15)
    assert timing.median_interval([1.0] * 5000) == (1, 1)  # 2^-5000 is no number of a machine


def test_samples_go_on_until_the_interval_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = Clock(monkeypatch, 0.003)
    found = attnbench.measure(steady.call, min_time=0.01)
    assert found.median_seconds == pytest.approx(0.003)
    assert (len(found.samples), found.calls, found.interval) == (10, 1, "order")
    assert len(attnbench.measure(steady.call, min_time=0.2).samples) >= 67
    varied = Clock(monkeypatch, 0.003, 0.005)
    found = attnbench.measure(varied.call, min_time=0.01, max_time=0.5)
    assert sum(found.samples) == pytest.approx(0.5, rel=0.02)
    bounds = (found.low_seconds, found.median_seconds, found.high_seconds)
    assert bounds[0] < bounds[2]
    assert all(0.003 <= one <= 0.005001 for one in bounds)
    assert found.disturbed == ""
    short = Clock(monkeypatch, 1e-6)
    found = attnbench.measure(short.call, min_time=0.01)
    assert found.calls == 128
    assert found.median_seconds == pytest.approx(1e-6)
    long = Clock(monkeypatch, 30.0)
    found = attnbench.measure(long.call)
    assert (found.samples, found.interval) == ((30.0,), "range")
    assert long.calls == 2


def test_preempted_samples_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, *([0.003] * 4), 0.010)
    # A switch is taken as 1 ms where the kernel does not count waits.
    monkeypatch.setattr(timing, "_switches", lambda: clock.calls // 5)
    found = attnbench.measure(clock.call, min_time=0.1)
    assert len(found.preempted) >= 2
    assert min(found.samples[place] for place in found.preempted) == pytest.approx(0.010)
    assert found.median_seconds == pytest.approx(0.003)
    assert found.high_seconds == pytest.approx(0.003)
    assert found.disturbed == ""
    monkeypatch.setattr(timing, "_switches", lambda: clock.calls)
    found = attnbench.measure(clock.call, min_time=0.1, max_time=0.2)
    assert found.disturbed.startswith("preempted (other processes interrupted")
    assert len(found.preempted) == len(found.samples)
    assert sum(found.samples) >= 0.4  # it went on, for twice its time
    assert "; disturbed: preempted" in repr(found)
    # No other process was there: the threads waited for each other.
    monkeypatch.setattr(
        timing, "_cpu_times", lambda cpus: CpuTimes(clock.now, clock.now, 0, clock.now)
    )
    assert attnbench.measure(clock.call, min_time=0.2, max_time=0.2).disturbed == ""


def test_waits_of_threads_are_those_that_no_wake_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = timing._Watch(on_cpu=True)
    waits = {"1": timing._Waited(5.0, 100), "2": timing._Waited(1.0, 7)}
    monkeypatch.setattr(timing, "_switches", lambda: 3)
    for further, times, counts in ((0.0, 0, True), (40e-6, 1, True), (40e-6, 0, False)):
        monkeypatch.setattr(timing, "_waits", lambda: waits)
        watch.begin()
        later = {**waits, "2": timing._Waited(1.0 + further, 7 + times)}
        monkeypatch.setattr(timing, "_waits", lambda later=later: later)
        assert watch.end(1e-3) is counts


def test_the_rule_is_that_of_the_harness() -> None:
    quiet = CpuShares(known=True)
    busy = CpuShares(others=0.5, others_seconds=1.0, known=True)
    assert disturbed_by(20, 2, 0.01, quiet, quiet) == ""
    assert disturbed_by(20, 11, 0.1, quiet, quiet).startswith("preempted")
    assert disturbed_by(100, 76, 0.1, quiet, quiet).startswith("preempted")
    stolen = CpuShares(stolen=0.06, stolen_seconds=0.06, known=True)
    assert disturbed_by(20, 0, 0.0, stolen, quiet).startswith("stolen (other virtual machines")
    assert disturbed_by(20, 0, 0.0, stolen._replace(stolen_seconds=0.04), quiet) == ""
    assert disturbed_by(20, 0, 0.0, quiet, busy).startswith("neighbours (other processes used 50%")
    assert disturbed_by(20, 0, 0.6, busy, CpuShares()).startswith("crowded")
    assert disturbed_by(20, 0, 0.4, busy, CpuShares()) == ""
    assert waited_for_own(0.1, quiet)
    assert not waited_for_own(0.1, busy)
    assert not waited_for_own(0.1, CpuShares())
    shares = cpu_shares(CpuTimes(10, 5, 1, 2), CpuTimes(20, 11, 2, 5))
    assert shares == CpuShares(0.1, 0.3, 1, 3, known=True)
    assert cpu_shares(CpuTimes(), CpuTimes()) == CpuShares()


def test_peak_memory_is_that_of_the_calls() -> None:
    def large() -> int:
        return len(b"1" * (96 << 20))

    def small() -> int:
        return 1

    found = attnbench.measure(large, min_time=0.01, max_time=0.02)
    if found.peak_bytes is None or found.base_bytes is None:
        pytest.skip("this kernel does not reset VmHWM")
    assert 90 << 20 < found.peak_bytes - found.base_bytes < 200 << 20
    after = attnbench.measure(small, min_time=0.01, max_time=0.02)
    assert after.peak_bytes is not None
    assert after.peak_bytes < found.peak_bytes - (60 << 20)
    assert repr(after).startswith("small: ")
    assert " MiB (+" in repr(after)


def test_a_kernel_without_the_reset_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing._PeakMemory, "_now", lambda self: (10 << 20, 1 << 20))
    found = attnbench.measure(len, [], min_time=0.01, max_time=0.02)
    assert found.peak_bytes is found.base_bytes is None
    assert "peak" not in repr(found)


def test_a_device_has_finished_when_a_sample_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(synchronize=waited.append)
    monkeypatch.setitem(sys.modules, "torch", torch)
    clock = Clock(monkeypatch, 0.003)
    # The host waits for others all the time: the device goes on.
    monkeypatch.setattr(timing, "_switches", lambda: clock.calls)

    def on(device: str) -> Any:
        return types.SimpleNamespace(is_cuda=device != "cpu", device=device)

    def made(*inputs: Any, device: str = "cpu", **keywords: Any) -> Any:
        clock.call()
        return on(device)

    calls: tuple[tuple[list[Any], dict[str, Any], str], ...] = (
        ([on("cuda:1")], {}, "cuda:1"),
        ([{"query": [on("cpu"), on("cuda:0")]}], {}, "cuda:0"),
        ([np.zeros(3)], {"device": "cuda:2"}, "cuda:2"),  # of the result
    )
    for arguments, keywords, device in calls:
        waited.clear()
        before = clock.calls
        found = attnbench.measure(made, *arguments, min_time=0.01, **keywords)
        assert set(waited) == {device}
        assert len(waited) == 2 * (clock.calls - before - 1)  # before and after each
        assert found.disturbed == ""
    waited.clear()
    attnbench.measure(made, on("cpu"), min_time=0.01)
    assert not waited


def test_what_cannot_be_measured_is_refused() -> None:
    def broken(value: int) -> float:
        return 1 / value

    async def later() -> None:
        pass

    def one_by_one() -> Generator[int]:
        yield 1

    with pytest.raises(ZeroDivisionError):
        attnbench.measure(broken, 0)
    not_callable: Any = 3
    with pytest.raises(ValueError, match="3 cannot be called"):
        attnbench.measure(not_callable)
    unfinished: tuple[Callable[[], object], ...] = (later, one_by_one)
    for fn in unfinished:
        with pytest.raises(ValueError, match=r"returns a (coroutine|generator), whose work is don"):
            attnbench.measure(fn)
    times: tuple[dict[str, float], ...] = (
        {"min_time": 0},
        {"min_time": -1},
        {"min_time": float("nan")},
        {"max_time": float("inf")},
        {"min_time": 2, "max_time": 1},
    )
    for bad in times:
        with pytest.raises(ValueError, match="expected 0 < min_time <= max_time"):
            attnbench.measure(broken, 1, **bad)


def test_real_calls_are_measured() -> None:
    square = np.ones((64, 64))
    found = attnbench.measure(np.matmul, square, square, min_time=0.01, max_time=0.05)
    assert 0 < found.low_seconds <= found.median_seconds <= found.high_seconds
    assert found.samples
    assert repr(found).startswith("matmul: ")
    assert "\n" not in repr(found)
    with pytest.raises(AttributeError):
        found.median_seconds = 0  # type: ignore[misc]
