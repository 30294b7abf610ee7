#!/usr/bin/env python3
"""Makes a wheel portable: repair.py WHEEL FOLDER grafts the libraries that it needs, but for PyTorch's and
CUDA's, which are those of the package torch, and Python's, which is the process that runs the worker.

Ends with 1 where a program or library in it, ours or grafted, needs a newer glibc or libstdc++ than those of
manylinux_2_34 (LIMITS): Ubuntu 22.04 and Fedora 35 have them.

    repair.py --needs FILE...      the same of files; ends with 77 where glibc here is too new to tell
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# PyTorch's, and what PyTorch brings.
EXCLUDED = ("libtorch*.so", "libc10*.so", "libgomp.so*", "libcudart.so*", "libcublas*.so*", "libnv*.so*", "libpython*.so*")
LIMITS = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
# With a newer one even strtol has a new symbol.
NEWEST_GLIBC_TO_TELL = (2, 36)
UNDEFINED = re.compile(r"\*UND\*\s+[0-9a-f]+\s+\(?([A-Z]+)_([0-9.]+)\)?\s+(\S+)$", re.MULTILINE)


def version(text):
    return tuple(int(part) for part in text.split("."))


def too_new(symbols):
    """["GLIBC_2.36 for arc4random_buf", …] of what `objdump -T` prints of a file."""
    return [f"{library}_{needed} for {name}" for library, needed, name in UNDEFINED.findall(symbols)
            if library in LIMITS and version(needed) > LIMITS[library]]


def needs_of(file):
    return too_new(subprocess.run(["objdump", "-T", str(file)], check=True, capture_output=True, text=True).stdout)


def refused(files):
    """Prints what the files need beyond LIMITS; whether one does."""
    needs = [f"{name} needs {need}" for name, file in files for need in needs_of(file)]
    print(*needs, sep="\n", end="\n" * bool(needs))
    return bool(needs)


def parts_of(wheel, folder):
    """(name, file) of each program and library in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                if member.read(4) != b"\x7fELF":
                    continue
            yield name, archive.extract(name, folder)


def repair(wheel, folder):
    words = [word for name in EXCLUDED for word in ("--exclude", name)]
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", *words, "--wheel-dir", folder, wheel], check=True)
    made = list(pathlib.Path(folder).glob("*.whl"))
    print(*made)
    with tempfile.TemporaryDirectory() as unpacked:
        return refused([part for one in made for part in parts_of(one, unpacked)])


def main(words):
    if words[0] != "--needs":
        return int(repair(*words))
    found = platform.libc_ver()
    if found[0] != "glibc" or version(found[1]) > NEWEST_GLIBC_TO_TELL or not shutil.which("objdump"):
        print(f"skipped: needs objdump and glibc {'.'.join(map(str, NEWEST_GLIBC_TO_TELL))} or older: {' '.join(found)}")
        return 77
    return int(refused([(file, file) for file in words[1:]]))


if __name__ == "__main__":
    if len(sys.argv) < 3 or (sys.argv[1] != "--needs" and len(sys.argv) != 3):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
