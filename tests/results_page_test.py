#!/usr/bin/env python3
"""Runs the plots of docs/results.md on the tables of stored results.

    results_page_test.py PROGRAM [ENVIRONMENT]
        PROGRAM: the built attnbench; ENVIRONMENT: a folder for a private Python environment

Where this Python lacks pandas or matplotlib they are installed there, from PyPI. Where that cannot
be done it ends with 77, after a line with the reason; with CI set that is a failure.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORED = ROOT / "tests/reports/fixtures"


def blocks():
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def missing():
    return [name for name in ("pandas", "matplotlib") if importlib.util.find_spec(name) is None]


def in_private_environment():
    """Runs this again by a Python that has what is missing; the exit status of that."""
    folder = pathlib.Path(sys.argv[2])
    python = folder / "bin/python"
    if not (folder / ".ready").exists():
        for command in ([sys.executable, "-m", "venv", "--clear", folder],
                        [python, "-m", "pip", "install", "--quiet", "pandas", "matplotlib"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            if done.returncode != 0:
                return without_modules((done.stdout.strip() or "no reason given").splitlines()[-1])
        (folder / ".ready").touch()
    return subprocess.run([python, __file__, sys.argv[1]]).returncode


def without_modules(reason):
    on_ci = bool(os.environ.get("CI"))
    print(f"{'failed' if on_ci else 'skipped'}: needs {', '.join(missing())}: {reason}")
    return 1 if on_ci else 77


def main():
    if missing():
        if len(sys.argv) > 2:
            return in_private_environment()
        return without_modules(f"not installed for {sys.executable}")
    program = pathlib.Path(sys.argv[1]).resolve()
    os.environ["MPLBACKEND"] = "agg"
    with tempfile.TemporaryDirectory() as folder:
        for suite in ("quickstart", "mqar_smoke"):
            subprocess.run([program, "report", STORED / f"{suite}.json", "--no-render", "--out",
                            f"runs/{suite}-latest"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
        found = blocks()
        assert len(found) == 3, f"expected three plots, found {len(found)}"
        for block in found:
            # The stored quickstart has its passes in other tasks than the suite has now.
            text = block.replace('table.task == "training"', 'table.task == "forward"')
            text = text.replace('samples.task == "training"', 'samples.task == "forward"')
            output = re.search(r'savefig\("(.*?)"\)', text).group(1)
            counted = text + "\nassert plt.gca().has_data(), 'an empty plot'\n"
            subprocess.run([sys.executable, "-c", counted], cwd=folder, check=True)
            assert (pathlib.Path(folder) / output).stat().st_size > 5000, output
    print(f"{len(found)} plots")
    return 0


if __name__ == "__main__":
    sys.exit(main())
