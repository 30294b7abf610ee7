#!/usr/bin/env python3
"""Makes a wheel portable: repair.py WHEEL FOLDER grafts the libraries that it needs, but for PyTorch's and
CUDA's, which are those of the package torch, and Python's, which is the process that runs the worker."""

import pathlib
import subprocess
import sys

# PyTorch's, and what PyTorch brings.
EXCLUDED = ("libtorch*.so", "libc10*.so", "libgomp.so*", "libcudart.so*", "libcublas*.so*", "libnv*.so*", "libpython*.so*")


def main(wheel, folder):
    words = [word for name in EXCLUDED for word in ("--exclude", name)]
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", *words, "--wheel-dir", folder, wheel], check=True)
    print(*pathlib.Path(folder).glob("*.whl"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
