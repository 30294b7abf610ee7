"""How a peer is timed: as attnbench_cuda_bench times ours.

Medians of samples of about 50 ms between CUDA events; replays of a CUDA graph for calls below 1 ms,
where the host's work would show, so that a peer is never charged for Python.
"""

import math
import statistics

SAMPLED_SECONDS = 50e-3
WARM_UP_SECONDS = 10e-3
REPLAY_SECONDS = 1e-3
SHORT_SECONDS = 1e-3


def order_interval(values):
    """The order-statistic interval of the median at 95 %, or None for fewer than 6 values."""
    n, tail, rank = len(values), 0.0, None
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 0.05:
            break
        rank = k
    if rank is None:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[n - 1 - rank]


def first_line(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]


class Clock:
    """Times bodies on one stream of their own: graphs are captured on it, and gradients run there."""

    def __init__(self, torch):
        self.torch = torch
        self.stream = torch.cuda.Stream()

    def timed(self, count, body):
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record(self.stream)
        for i in range(count):
            body(i)
            events[i + 1].record(self.stream)
        self.stream.synchronize()
        return [1e-3 * events[i].elapsed_time(events[i + 1]) for i in range(count)]

    def capture(self, launches, body):
        """The graph, or None with the reason where the peer cannot be captured."""
        graph = self.torch.cuda.CUDAGraph()
        try:
            with self.torch.cuda.graph(graph, stream=self.stream):
                for i in range(launches):
                    body(i)
            return graph, None
        except Exception as error:  # whatever it is, events are left
            self.torch.cuda.synchronize()
            return None, first_line(error)

    def measure(self, body, sets, repetitions):
        """body(set) queues one call. Timings of `repetitions` rounds."""
        launch = lambda i: body(i % sets)
        self.timed(3, launch)
        estimate = max(min(self.timed(3, launch)), 1e-7)
        self.timed(max(1, min(1000, math.ceil(WARM_UP_SECONDS / estimate))), launch)
        launches, graph, no_graph = 1, None, None
        if estimate < SHORT_SECONDS:
            rounds = max(1, min(64, math.ceil(REPLAY_SECONDS / (estimate * sets))))
            launches = min(rounds * sets, 256)
            graph, no_graph = self.capture(launches, launch)
            if graph is None:
                launches = 1
            else:
                graph.replay()
        one = (lambda i: graph.replay()) if graph is not None else launch
        least = 10 if estimate * launches < 10e-3 else 5
        estimate = max(min(self.timed(2, one)), 1e-7)
        count = max(least, min(200, math.ceil(SAMPLED_SECONDS / estimate)))
        timings = []
        for _ in range(repetitions):
            seconds = [x / launches for x in self.timed(count, one)]
            low, high = order_interval(seconds) or (min(seconds), max(seconds))
            timings.append({"real_time": 1e6 * statistics.median(seconds), "low_seconds": low,
                            "high_seconds": high, "minimum_seconds": min(seconds),
                            "samples": len(seconds), "launches_a_sample": launches,
                            "graph": int(graph is not None), "sets": sets})
            if no_graph:
                timings[-1]["label"] = "no graph: " + no_graph
        del graph
        return timings
