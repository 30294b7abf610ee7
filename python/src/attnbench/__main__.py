"""The command `attnbench` of a wheel: hands over to the program inside the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attnbench.program import hand_over_this_python


def main() -> None:
    """Becomes the program; its worker and its pictures are made by this Python."""
    program = Path(__file__).parent / "native/bin/attnbench"
    if not program.is_file():
        sys.exit(
            f"attnbench: {program} is missing: this is the Python package alone, without the program; "
            "install a wheel (python3 -m pip install attnbench), or use the launcher of a checkout"
        )
    hand_over_this_python(os.environ)
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
