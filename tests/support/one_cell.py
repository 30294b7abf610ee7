#!/usr/bin/env python3
"""One round of one cell by the worker alone, without a supervisor: prints the worker's messages.

    one_cell.py PROGRAM SUITE… REGEX     PROGRAM: the built attnbench; SUITE…: what `attnbench plan` takes;
                                         the first cell that REGEX finds, as --only would

$DEBUGGER ("gdb --args", "valgrind") precedes the worker. Ends with 1 where the cell is not ok.
"""

import json
import os
import socket
import subprocess
import sys


def main():
    program, *suite, only = sys.argv[1:]
    plan = json.loads(subprocess.check_output([program, "plan", *suite, "--only", only, "--json"]))[0]
    cell = {key: value for key, value in plan["cells"][0].items() if key != "forecast"}
    ours, theirs = socket.socketpair()
    worker = [f"{program}-worker", "--socket", str(theirs.fileno())]
    subprocess.Popen(os.environ.get("DEBUGGER", "").split() + worker, pass_fds=[theirs.fileno()])
    theirs.close()
    answer = {}
    stream = ours.makefile("rw")
    for message in ({"type": "hello", "protocol": 1, "plugins": [], "threads": 1, "device": "cpu"},
                    {"type": "run", "cell": cell, "round": 0, "seed": 1, "pinned": False,
                     "measure": {}, "checkpoint": "", "binary": ""}):
        print(json.dumps(message), file=stream, flush=True)
        for line in stream:
            print(line, end="")
            answer = json.loads(line)
            if answer["type"] not in ("heartbeat", "progress", "loading"):
                break
    return 0 if answer.get("status") == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
