"""Renders the Vega-Lite specifications of a folder: NAME.vl.json becomes NAME.svg and NAME.png.

usage: render.py FOLDER [--formats svg,png,pdf] [--bundle FILE] [--kept FOLDER] [--tables FOLDER]

--bundle writes the JavaScript (Vega, Vega-Lite, Vega-Embed) that a page needs to draw them itself,
which takes longer than the pictures: --kept is a folder that holds it from one call to the next.
--tables also writes NAME.parquet beside each NAME.csv of that folder, where pyarrow is installed.
Needs vl-convert-python and nothing else: no browser, no network. Exit status 3 where it is missing.
"""

import argparse
import contextlib
import importlib.metadata
import os
import pathlib
import sys


def render(module, spec, formats):
    stem = spec.name.removesuffix(".vl.json")
    svg = module.vegalite_to_svg(spec.read_text(encoding="utf-8"))
    for form in formats:
        output = spec.with_name(f"{stem}.{form}")
        if form == "svg":
            output.write_text(svg, encoding="utf-8")
        elif form == "png":
            output.write_bytes(module.svg_to_png(svg, scale=2))
        elif form == "pdf":
            output.write_bytes(module.svg_to_pdf(svg))


def bundle_of(module, kept):
    """The JavaScript of this version of the module, made anew where `kept` does not have it."""
    file = kept and kept / f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    if not file:
        return module.javascript_bundle()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8")
    bundle = module.javascript_bundle()
    new = file.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # a full or read-only disk costs the time alone
        kept.mkdir(parents=True, exist_ok=True)
        new.write_text(bundle, encoding="utf-8")
        new.replace(file)
    with contextlib.suppress(OSError):
        new.unlink(missing_ok=True)
    return bundle


def write_parquet(folder):
    """Returns what went wrong, a line for each table."""
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        return []
    failures = []
    for table in sorted(folder.glob("*.csv")):
        try:
            pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), table.with_suffix(".parquet"))
        except (pyarrow.ArrowException, OSError) as error:
            failures.append(f"{table.name}: {error}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--formats", default="svg,png")
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--kept", type=pathlib.Path)
    parser.add_argument("--tables", type=pathlib.Path)
    arguments = parser.parse_args()
    unwritten = write_parquet(arguments.tables) if arguments.tables else []
    for failure in unwritten:
        print(failure, file=sys.stderr)
    try:
        import vl_convert
    except ImportError:
        print("vl-convert-python is not installed", file=sys.stderr)
        return 3
    formats = [form for form in arguments.formats.split(",") if form]
    failed = 1 if unwritten else 0
    for spec in sorted(arguments.folder.glob("*.vl.json")):
        try:
            render(vl_convert, spec, formats)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # one bad figure, panics included, must not cost the others
            failed = 1
            print(f"{spec.name}: {error}", file=sys.stderr)
    if arguments.bundle:
        arguments.bundle.write_text(bundle_of(vl_convert, arguments.kept), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
