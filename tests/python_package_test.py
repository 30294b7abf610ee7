#!/usr/bin/env python3
"""Installs the package python/ into a private environment, type-checks it and runs its tests, and the
plots of docs/results.md.

    python_package_test.py PROGRAM ENVIRONMENT [PYTEST'S ARGUMENTS]
        PROGRAM: the built attnbench; ENVIRONMENT: a folder for a private Python environment

What it needs comes from PyPI. Where that cannot be had it ends with 77, after a line with the
reason; with CI set that is a failure.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ("hatchling", "pandas", "altair", "jsonschema", "pytest", "mypy", "pandas-stubs",
          "types-jsonschema", "nbclient", "ipykernel", "matplotlib")


def prepared(folder):
    """Makes the environment once; why it could not be made, or nothing."""
    ready = folder / ".ready"
    if ready.exists() and ready.read_text() == " ".join(NEEDED):
        return ""
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [folder / "bin/python", "-m", "pip", "install", "--quiet", *NEEDED]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return (done.stdout.strip() or "no reason given").splitlines()[-1]
    ready.write_text(" ".join(NEEDED))
    return ""


def install(python):
    """As a user does, without compiler and network; offline, so all it needs is named above."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation",
                    "--force-reinstall", "--no-deps", ROOT / "python"], check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)


def surroundings(program, cache):
    """Caches and settings of all that runs here are below the environment, not in the user's home."""
    return {**os.environ, "ATTNBENCH_TEST_PROGRAM": str(program), "PYTHONDONTWRITEBYTECODE": "1",
            "ATTNBENCH_PYTHON": "/nowhere", "OMP_WAIT_POLICY": "passive",
            "MYPYPATH": f"{ROOT / 'python/src'}:{ROOT / 'tests/python'}", "MPLBACKEND": "agg",
            **{name: str(cache / name) for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR", "IPYTHONDIR",
                                                    "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}}


def main():
    program, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    reason = prepared(folder)
    if reason:
        on_ci = bool(os.environ.get("CI"))
        print(f"{'failed' if on_ci else 'skipped'}: needs {', '.join(NEEDED)}: {reason}")
        return 1 if on_ci else 77
    python = folder / "bin/python"
    install(python)
    cache = folder / "cache"
    tests = ROOT / "tests/python"
    for command in ([python, "-m", "mypy", "--config-file", ROOT / "python/pyproject.toml",
                     "--cache-dir", cache / "mypy", ROOT / "python/src/attnbench", tests],
                    [python, "-m", "pytest", "-q", "-o", f"cache_dir={cache / 'pytest'}", tests,
                     *sys.argv[3:]]):
        done = subprocess.run(command, env=surroundings(program, cache), cwd=folder)
        if done.returncode != 0:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
