"""Runs the worker's library in this Python, once its PyTorch is known to be the one it was built with."""

import ctypes
import importlib.metadata
import pathlib
import signal
import sys

LIBRARIES = pathlib.Path(__file__).resolve().parent.parent.parent / "lib"


def minor(version):
    return ".".join(version.split("+")[0].split(".")[:2])


def fault():
    """Why this Python cannot run the worker; empty where it can."""
    built = (LIBRARIES / "libattnbench-operators.torch").read_text(encoding="utf-8").strip()
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return (f"{sys.executable} has no PyTorch, which attnbench's worker needs: python3 -m pip install "
                f"'torch=={minor(built)}.*'")
    if minor(found) != minor(built):
        return (f"attnbench's worker was built with PyTorch {built}, and {found} is installed: python3 -m pip install "
                f"'torch=={minor(built)}.*', or an attnbench that was built with yours")
    return ""


def main():
    reason = fault()
    if reason:
        sys.exit(f"attnbench: {reason}")
    sys.path.pop(0)  # this file's folder: a user's `import worker` must not find it
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    library = ctypes.PyDLL(str(LIBRARIES / "libattnbench-worker.so"), mode=ctypes.RTLD_GLOBAL)
    words = [word.encode() for word in ("attnbench-worker", *sys.argv[1:])]
    return library.attnbench_worker(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))


sys.exit(main())
