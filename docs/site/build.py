#!/usr/bin/env python3
"""Builds the site of docs/ with MkDocs, in an environment of its own that PyPI fills once, prints the
path of its first page, and opens it on a desktop. `./attnbench docs` builds the program first.

    build.py [--build DIR]   DIR: where the site is written, emptied before; build/site by default
    --program FILE           the built attnbench; build/release/bin/attnbench by default
    --read-only              reads the command line and does nothing
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENT = ROOT / "build/docs_venv"


def prepared(environment=ENVIRONMENT, requirements=HERE / "requirements.txt"):
    """Makes the environment once for each state of what it requires; why it could not be made, or nothing."""
    ready, wanted = environment / ".ready", requirements.read_text(encoding="utf-8")
    if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
        return ""
    print(f"· preparing the packages of {requirements.relative_to(ROOT)}", file=sys.stderr)
    for command in ([sys.executable, "-m", "venv", "--clear", environment],
                    [environment / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile",
                     "--disable-pip-version-check", "-r", requirements]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return (done.stdout.strip() or "no reason given").splitlines()[-1]
    ready.write_text(wanted, encoding="utf-8")
    return ""


def build(program, folder):
    """What MkDocs says where it ends with an error or a warning: a page, a link or an anchor is not there;
    else nothing."""
    # With --quiet --strict counts no warnings. Material's notice on its successor is none.
    done = subprocess.run([ENVIRONMENT / "bin/python", "-m", "mkdocs", "build", "--strict", "--config-file",
                           HERE / "mkdocs.yml", "--site-dir", folder],
                          env={**os.environ, "ATTNBENCH_PROGRAM": str(program), "NO_MKDOCS_2_WARNING": "1"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout + f"mkdocs: exit code {done.returncode}" if done.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(prog="attnbench docs", description="Builds the documents as a site that "
                                     "needs no network and no server; its packages come from PyPI once.")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/site",
                        help="where the site is written; build/site by default")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/attnbench",
                        help=argparse.SUPPRESS)
    parser.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder, page = arguments.build.resolve(), arguments.build.resolve() / "index.html"
    # MkDocs empties the folder.
    if folder.exists() and not (folder / "objects.inv").exists() and not (folder.is_dir() and not any(folder.iterdir())):
        parser.error(f"{folder} is no site: expected a new or empty folder, or one with an earlier site")
    if arguments.read_only:
        return 0
    why = prepared()
    if why:
        print(f"attnbench: the packages of docs/site/requirements.txt are not available: {why}", file=sys.stderr)
        return 3
    why = build(arguments.program.resolve(), folder)
    if why:
        print(why, file=sys.stderr)
        return 1
    print(page)
    if sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and shutil.which("xdg-open"):
        subprocess.run(["xdg-open", page])
    return 0


if __name__ == "__main__":
    sys.exit(main())
