#!/usr/bin/env python3
"""Installs the package python/ into a private environment, type-checks it and runs its tests, and the
plots of docs/results.md; at night (ATTNBENCH_TEST_TIER=full) its figures with the oldest Altair, too.

    python_package_test.py PROGRAM ENVIRONMENT [PYTEST'S ARGUMENTS]
        PROGRAM: the built attnbench; ENVIRONMENT: a folder for a private Python environment

What it needs comes from PyPI. Where that cannot be had it ends with 77, after a line with the
reason; with CI set that is a failure.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ("hatchling", "pandas", "altair", "jsonschema", "pytest", "mypy", "pandas-stubs",
          "types-jsonschema", "nbclient", "ipykernel", "matplotlib", "vl-convert-python",
          "xxhash")
# The oldest Altair that the package allows, and what only that one needs.
OLDEST = (*re.findall(r'"(altair)>=([\d.]+)"', (ROOT / "python/pyproject.toml").read_text())[0], "toolz")


def prepared(folder, oldest):
    """Makes the environment once, and beside it the oldest Altair where that is asked for; why it could
    not be made, or nothing."""
    ready = folder / ".ready"
    wanted = " ".join((*NEEDED, *(OLDEST if oldest else ())))
    if ready.exists() and ready.read_text().startswith(wanted):
        return ""
    name, version, helper = OLDEST
    # What is imported is compiled then; compiling all of it takes longer than the tests.
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile"]
    commands = [[sys.executable, "-m", "venv", "--clear", folder], [*pip, *NEEDED]]
    if oldest:
        commands.append([*pip, "--no-deps", "--target", folder / "oldest", f"{name}=={version}", helper])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return (done.stdout.strip() or "no reason given").splitlines()[-1]
    ready.write_text(wanted)
    return ""


def install(folder):
    """As a user does, of a copy of python/ alone, without compiler and network: all it needs is named above."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "python", copy, symlinks=True)
    python = folder / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation",
                    "--force-reinstall", "--no-deps", "--no-compile", copy], check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)


def surroundings(program, folder):
    """Caches and settings of all that runs here are in the build folder, not in the user's home."""
    cache = folder / "cache"
    return {**os.environ, "ATTNBENCH_TEST_PROGRAM": str(program), "PYTHONPYCACHEPREFIX": str(cache / "compiled"),
            "XDG_CACHE_HOME": str(folder.parent / "test_cache"),  # as of the tests of the program
            "ATTNBENCH_PYTHON": "/nowhere", "OMP_WAIT_POLICY": "passive",
            "MYPYPATH": f"{ROOT / 'python/src'}:{ROOT / 'tests/python'}", "MPLBACKEND": "agg",
            **{name: str(cache / name) for name in ("MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR",
                                                    "JUPYTER_CONFIG_DIR")}}


def main():
    program, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    oldest = os.environ.get("ATTNBENCH_TEST_TIER") == "full"
    reason = prepared(folder, oldest)
    if reason:
        on_ci = bool(os.environ.get("CI"))
        print(f"{'failed' if on_ci else 'skipped'}: needs {', '.join(NEEDED)}: {reason}")
        return 1 if on_ci else 77
    install(folder)
    python = folder / "bin/python"
    cache = folder / "cache"
    tests = ROOT / "tests/python"
    surrounding = surroundings(program, folder)
    pytest = [python, "-m", "pytest", "-q", "-o", f"cache_dir={cache / 'pytest'}", *sys.argv[3:]]
    commands = [
        ([python, "-m", "mypy", "--config-file", ROOT / "python/pyproject.toml",
          "--cache-dir", cache / "mypy", ROOT / "python/src/attnbench", tests], {}),
        ([*pytest, tests], {})]
    if oldest:
        commands.append(([*pytest, tests / "test_figure.py"], {"PYTHONPATH": str(folder / "oldest")}))
    for command, more in commands:
        code = subprocess.run(command, env={**surrounding, **more}, cwd=folder).returncode
        # 5: arguments of the caller select no test of this call.
        if code != 0 and not (code == 5 and sys.argv[3:]):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
