#!/usr/bin/env python3
"""Checks that each file of ours that a comment or a document names is there.

Judged are words that begin with a folder of ours, as `core/sizes.*`, and in comments also the bare
names of sources and documents, as `sizes.hpp`. Prints names that lead nowhere, and then ends with 1.

    comments_test.py [ROOT]      ROOT: the root of the sources
"""

import fnmatch
import os
import pathlib
import re
import sys

# The comments of each kind of file; a document is read as a whole.
SLASHES, HASH, WHOLE = re.compile(r"(?<!:)//.*"), re.compile(r'(?:^|\s)#.*|""".*'), re.compile(".*")
COMMENTS = {".cpp": SLASHES, ".hpp": SLASHES, ".cu": SLASHES, ".cuh": SLASHES, ".py": HASH,
            ".sh": HASH, ".cmake": HASH, ".txt": HASH, ".yml": HASH, ".md": WHOLE}
BARE = re.compile(r"(?<![\w…./*<>{}$-])[\w./-]+\.(?:cpp|hpp|cuh?|py|md)\b(?![./*]\w)")
BUILT = {"build", "runs", ".git", ".venv", "__pycache__"}
# The history tells of what is gone; templates are read where users put them.
NOT_JUDGED = ("CHANGELOG.md", "harness/program/templates/", "tests/comments_test.py")
# Files of examples and of other programs. A word in capitals, as in NAME.cpp, stands for any.
FOREIGN = {"near.py", "mine.py", "bad.py", "fla.py", "mine.json", "fading.cpp", "sdp_utils.cpp",
           "xnpy.hpp", "compare.py", "version.py", "listops.py", "pathfinder.py", "speed.yml"}


def tree_of(root):
    """Files and folders of the tree, as paths from its root."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - BUILT)
        yield from (pathlib.Path(folder, name).relative_to(root).as_posix()
                    for name in folders + files)


def leads_nowhere(name, tree):
    """Whether `name` is no path of the tree, nor the end of one."""
    if name.split("/")[-1] in FOREIGN or re.search(r"(?:^|[/_])(?!README|NOTES)[A-Z]{2,}[/_.]", name):
        return False
    pattern = re.compile("(?:.*/)?" + fnmatch.translate(name.rstrip("/.")))
    return not any(pattern.match(path) for path in tree)


def faults(tree, read):
    """["PATH:LINE: NAME is not there", …] of the texts that `read` returns for paths of `tree`."""
    top = "|".join(sorted({re.escape(path.split("/")[0]) for path in tree if "/" in path}))
    ours = re.compile(rf"(?<![\w…./*<>{{}}$-])(?:{top})/[\w./*-]*(?:\.\w+|\.\*|/)(?![\w{{<$*])")
    found, known = [], {}
    for path in tree:
        comments = COMMENTS.get(pathlib.PurePath(path).suffix)
        if not comments or path.startswith(NOT_JUDGED):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            for said in comments.findall(line):
                names = ours.findall(said) + (BARE.findall(said) if comments != WHOLE else [])
                for name in sorted(set(names)):
                    if name not in known:
                        known[name] = leads_nowhere(name, tree)
                    if known[name]:
                        found.append(f"{path}:{number}: {name} is not there")
    return found


def main():
    texts = {"core/a.hpp": "// core/b.* and core/c.hpp\n// a.hpp, d.hpp, NAME.cpp\nint core/e.hpp;",
             "core/b.cpp": "", "README.md": "core/ and core/f.md, g.md"}
    seen = faults(["core", *texts], texts.get)
    wrong = [f"seen were {seen}"] if [line.split()[1] for line in seen] != [
        "core/c.hpp", "d.hpp", "core/f.md"] else []
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    tree = list(tree_of(root))
    wrong += faults(tree, lambda path: (root / path).read_text(encoding="utf-8"))
    print(*wrong, f"{len(tree)} files and folders, {len(wrong)} faults", sep="\n")
    sys.exit(1 if wrong or len(tree) < 100 else 0)


if __name__ == "__main__":
    main()
