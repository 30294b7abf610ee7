#!/usr/bin/env python3
"""The scripts around attnbench_cuda_bench, as far as they need no GPU."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare_peers
import peer_case
import peer_clock
import peers

CASE = "softmax_forward/bf16/B:2/H:16/T:8192/D:128/causal:1/window:0"


def row(name, microseconds, **more):
    return {"name": name, "run_type": "iteration", "real_time": microseconds, "time_unit": "us",
            "low_seconds": 0.9e-6 * microseconds, "high_seconds": 1.1e-6 * microseconds, **more}


def failed(name, reason):
    return {"name": name, "run_type": "iteration", "real_time": 0, "time_unit": "us",
            "error_occurred": True, "error_message": reason}


def rows(*entries):
    return compare_peers.rows_of({"benchmarks": list(entries)})


class Cases(unittest.TestCase):
    def test_a_name_of_ours_is_read_and_others_are_not(self):
        case = peer_case.parse_case(CASE + "/attnbench/iterations:1/manual_time\n")
        self.assertEqual(case["name"], CASE + "/attnbench")
        self.assertEqual((case["what"], case["dtype"], case["T"], case["causal"]),
                         ("softmax_forward", "bf16", 8192, 1))
        for other in ["", "ceiling_copy/attnbench", "ceiling_gemm/bf16/N:8192/cublas", "x",
                      "softmax_sideways/bf16/B:1/attnbench"]:
            self.assertIsNone(peer_case.parse_case(other))

    def test_a_pass_is_told_from_the_family(self):
        for what, family, passes in [("softmax_forward_backward", "softmax", "forward_backward"),
                                     ("whole_pool_directed_forward", "whole_pool_directed",
                                      "forward"),
                                     ("causal_product_plain_backward", "causal_product_plain",
                                      "backward"), ("prefix_pool_step", "prefix_pool", "step")]:
            case = peer_case.parse_case(f"{what}/bf16/B:1/attnbench")
            self.assertEqual((case["family"], case["passes"]), (family, passes))

    def names(self, text):
        return [name for name, _ in peers.peers_of(None, peer_case.parse_case(text + "/attnbench"),
                                                   "cpu")]

    def test_who_stands_beside_a_case(self):
        sizes = "/bf16/B:1/H:2/T:8/L:4/D:4"
        self.assertEqual(self.names("whole_pool_backward" + sizes),
                         ["torch_ops", "torch_compile", "kin_torch_linear"])
        self.assertEqual(self.names("whole_pool_directed_forward" + sizes),
                         ["torch_ops", "torch_compile"])
        self.assertEqual(self.names("slots_pack_forward" + sizes),
                         ["sdpa_cudnn", "sdpa_flash", "sdpa_efficient", "sdpa_math"])
        self.assertEqual(self.names("biased_softmax_forward/fp32/B:1/H:2/T:8/D:4/causal:1/window:4"),
                         ["torch_flex"])
        self.assertEqual(self.names("prefix_pool_step" + sizes), [])
        self.assertEqual(self.names("lavo_forward" + sizes), [])

    def test_the_interval_of_a_median_is_that_of_order_statistics(self):
        self.assertIsNone(peer_clock.order_interval([1, 2, 3, 4, 5]))
        self.assertEqual(peer_clock.order_interval([6, 5, 4, 3, 2, 1]), (1, 6))
        self.assertEqual(peer_clock.order_interval(list(range(1, 11))), (2, 9))

    def test_a_failure_is_a_row_with_its_reason(self):
        entry = peer_case.failure("x/peer", "out of memory")[0]
        self.assertEqual(compare_peers.Row([entry]).error, "out of memory")


class PretendedTorch:
    """As much of torch.cuda as a Clock needs, on a clock that is turned by hand."""

    def __init__(self, captures=True):
        torch = self
        torch.now, torch.capturing = 0.0, None

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self, stream):
                self.at = torch.now

            def elapsed_time(self, other):
                return 1e3 * (other.at - self.at)

        class Graph:
            def replay(self):
                torch.now += self.seconds

        class Capture:
            def __init__(self, graph, stream):
                self.graph = graph

            def __enter__(self):
                if not captures:
                    raise RuntimeError("operation not permitted when stream is capturing")
                torch.capturing = 0.0

            def __exit__(self, *_):
                self.graph.seconds, torch.capturing = torch.capturing, None

        class Stream:
            def synchronize(self):
                pass

        self.cuda = type("cuda", (), {"Event": Event, "CUDAGraph": Graph, "graph": Capture,
                                      "Stream": Stream, "synchronize": staticmethod(lambda: None)})

    def launch(self, seconds, host_seconds):
        if self.capturing is None:
            self.now += max(seconds, host_seconds)
        else:
            self.capturing += seconds


class Clocks(unittest.TestCase):
    def measure(self, seconds, host_seconds=0.0, sets=3, captures=True):
        torch, used = PretendedTorch(captures), []

        def body(i):
            used.append(i)
            torch.launch(seconds, host_seconds)
        timings = peer_clock.Clock(torch).measure(body, sets, 2)
        self.assertEqual(set(used), set(range(sets)))
        return timings

    def test_a_long_call_is_timed_by_events(self):
        timings = self.measure(4e-3)
        self.assertEqual(len(timings), 2)
        self.assertAlmostEqual(timings[0]["real_time"], 4000)
        self.assertEqual((timings[0]["graph"], timings[0]["samples"]), (0, 13))

    def test_a_short_call_is_not_charged_for_the_hosts_work(self):
        timing = self.measure(8e-6, host_seconds=260e-6)[0]
        self.assertAlmostEqual(timing["real_time"], 8)
        self.assertEqual(timing["graph"], 1)

    def test_what_cannot_be_captured_is_timed_by_events_and_says_so(self):
        timing = self.measure(8e-6, host_seconds=260e-6, captures=False)[0]
        self.assertAlmostEqual(timing["real_time"], 260)
        self.assertIn("not permitted", timing["label"])


class Tables(unittest.TestCase):
    def table(self, ours, theirs, everything=False):
        return compare_peers.table(ours, theirs, "", everything)

    def test_the_ratio_is_the_peers_time_over_ours(self):
        ours = rows(*[row(CASE + "/attnbench/iterations:1/manual_time", t) for t in (90, 100, 120)])
        theirs = rows(row(CASE + "/sdpa_cudnn", 50), row(CASE + "/sdpa_math", 1000))
        _, lines, notes = self.table(ours, theirs)
        self.assertEqual(notes, [])
        self.assertEqual(lines, [[CASE, "100.0 us", "", "", "sdpa_cudnn", "50.0 us",
                                  "0.50 (0.34-0.68)"]])
        self.assertEqual(len(self.table(ours, theirs, everything=True)[1]), 2)

    def test_aggregates_are_not_counted_again(self):
        found = rows(row(CASE + "/attnbench", 100),
                     {**row(CASE + "/attnbench_mean", 7), "run_type": "aggregate"})
        self.assertEqual(list(found), [CASE])

    def test_what_failed_is_said(self):
        _, lines, notes = self.table(
            rows(row(CASE + "/attnbench", 100), failed("a/attnbench", "CUDA says no")),
            rows(failed(CASE + "/sdpa_flash", "refused"), row("b/sdpa_cudnn", 3)))
        self.assertEqual(len(lines), 1)
        self.assertEqual(notes, [CASE + ": sdpa_flash: refused", "a: ours: CUDA says no",
                                 "b: ours not there; sdpa_cudnn: 3.0 us"])

    def test_latte_stands_beside_its_kin(self):
        _, lines, _ = self.table(
            rows(row("prefix_pool_forward/bf16/T:8/attnbench", 10)),
            rows(row("causal_product_plain_forward/bf16/T:8/fla_chunk_linear_attn", 30)))
        self.assertEqual(lines[0][4], "kin fla_chunk_linear_attn")

    def test_files_are_merged_with_the_first_ones_context(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for i in (1, 2):
                (folder / f"{i}.json").write_text(
                    json.dumps({"context": {"part": i}, "benchmarks": [row(f"{i}/x", i)]}))
            compare_peers.merge(folder / "all.json", [folder / "1.json", folder / "2.json"])
            merged = json.loads((folder / "all.json").read_text())
        self.assertEqual(merged["context"], {"part": 1})
        self.assertEqual([entry["name"] for entry in merged["benchmarks"]], ["1/x", "2/x"])

    def test_of_a_file_that_was_cut_off_the_whole_rows_are_read(self):
        whole = json.dumps({"context": {}, "benchmarks": [row("a/x", 1), row("b/x", 2)]}, indent=2)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "cut.json"
            path.write_text(whole[:whole.index('"b/x"')])
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(len(compare_peers.read(path)["benchmarks"]), 1)
            path.write_text(whole[:10])
            self.assertRaises(ValueError, compare_peers.read, path)

    def test_a_table_is_shown(self):
        header, lines, _ = self.table(rows(row(CASE + "/attnbench", 1500)), {})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            compare_peers.show(header, lines, markdown=True)
        self.assertIn(f"| {CASE} | 1.500 ms |", out.getvalue())


if __name__ == "__main__":
    unittest.main()
