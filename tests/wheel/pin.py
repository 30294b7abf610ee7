#!/usr/bin/env python3
"""Pins the wheel to another minor version of PyTorch: pin.py 2.14 changes pyproject.toml in place."""

import pathlib
import re
import sys

FILE = pathlib.Path(__file__).resolve().parent.parent.parent / "pyproject.toml"


def pinned(text, version):
    """`text` with the requirement of torch at the minor version; ValueError for no such version."""
    found = re.fullmatch(r"(\d+)\.(\d+)", version)
    if not found:
        raise ValueError(f"{version!r}: expected a minor version such as 2.15")
    major, minor = int(found[1]), int(found[2])
    changed, count = re.subn(r'"torch>=[\d.]+,<[\d.]+"', f'"torch>={major}.{minor},<{major}.{minor + 1}"', text)
    if count != 1:
        raise ValueError(f"{FILE}: {count} requirements of torch; expected one to build with")
    return changed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    FILE.write_text(pinned(FILE.read_text(encoding="utf-8"), sys.argv[1]), encoding="utf-8")
