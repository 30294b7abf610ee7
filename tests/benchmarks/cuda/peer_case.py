"""The cases that peers are timed at: names of attnbench_cuda_bench's, and rows about them."""

import re

PROGRAM = "attnbench"


def parse_case(line):
    """{"name", "what", "family", "passes", "dtype", "B": 2, …} of one of our names; None of any other
    line. The family is `what` without its pass: forward, backward, forward_backward or step."""
    name = re.sub(r"/(iterations|manual_time|repeats|real_time).*$", "", line.strip())
    parts = name.split("/")
    if len(parts) < 3 or parts[-1] != PROGRAM or parts[0].startswith("ceiling"):
        return None
    what = re.fullmatch(r"(\w+?)_(forward_backward|forward|backward|step)", parts[0])
    if what is None:
        return None
    case = {"name": name, "what": parts[0], "family": what[1], "passes": what[2],
            "dtype": parts[1]}
    for part in parts[2:-1]:
        key, _, value = part.partition(":")
        case[key] = int(value)
    return case


def rows_of(name, timings):
    base = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1,
            "repetitions": len(timings), "threads": 1, "time_unit": "us"}
    return [{**base, "repetition_index": i, "cpu_time": t["real_time"], **t}
            for i, t in enumerate(timings)]


def failure(name, reason):
    return [{"name": name, "run_name": name, "run_type": "iteration", "iterations": 0, "threads": 1,
             "repetitions": 1, "repetition_index": 0, "real_time": 0.0, "cpu_time": 0.0,
             "time_unit": "us", "error_occurred": True, "error_message": reason}]
