"""Files that options name as outputs, and texts that options name as inputs."""

import gzip
import io
import os
import random as randoms
import tarfile
import zipfile

from kind import FIXTURE, Kind
from oracle import Case

THEIRS = "somebody's\n"
# Of each thing that may have an output's name: how it is made in the folder of the case, and the
# file that must then hold what it held.
PLACES = {
    "new": lambda folder: None,
    "empty": lambda folder: (folder / "out").write_text(""),
    "theirs": lambda folder: (folder / "out").write_text(THEIRS),
    "linked": lambda folder: ((folder / "file").write_text(THEIRS),
                              os.symlink("file", folder / "out")),
    "dangling": lambda folder: os.symlink("nowhere", folder / "out"),
    "loop": lambda folder: os.symlink("out", folder / "out"),
    "device": lambda folder: os.symlink("/dev/null", folder / "out"),
    "folder": lambda folder: (folder / "out").mkdir(),
}
COMMANDS = [["compare", str(FIXTURE), str(FIXTURE), "--markdown"],
            ["compare", str(FIXTURE), str(FIXTURE), "--junit"],
            ["report", str(FIXTURE), "--csv"]]


class Outputs(Kind):
    """Options that name an output, where something of that name is there already."""

    def case(self, random, folder):
        place = random.choice(list(PLACES))
        PLACES[place](folder)
        forced = random.random() < 0.3
        name = random.choice(["out"] * 9 + ["/dev/stdout"])
        words = [*random.choice(COMMANDS), name, *(["--force"] if forced else [])]

        def check(outcome):
            found = []
            was_link = place in ("linked", "dangling", "loop", "device")
            if was_link and not (folder / "out").is_symlink():
                found.append(("a link was replaced", place))
            if place == "folder" and not (folder / "out").is_dir():
                found.append(("a folder was replaced", place))
            file = folder / ("file" if place == "linked" else "out")
            kept = place not in ("theirs", "linked") or file.read_text() == THEIRS
            if not kept and not (forced and name == "out"):
                found.append(("somebody's file was replaced", place))
            refused = name == "out" and not forced and place in ("theirs", "linked")
            if refused and outcome.exit_code != 2:
                found.append(("somebody's file was not seen", f"exit code {outcome.exit_code}"))
            return found

        return Case(words, check=check)


def tarred(data):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("text")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def zipped(data):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text", data)
    return stream.getvalue()


TEXT = "".join(f"Line {i}: naïve bytes of a text.\n" for i in range(200)).encode()
NOISE = randoms.Random(1).randbytes(6000)
# Name, content, and whether a model may learn from it without --raw.
SOURCES_OF_TEXT = [
    ("text", TEXT, True), ("text.gz", gzip.compress(TEXT), True), ("text.tar", tarred(TEXT), True),
    ("text.tar.gz", gzip.compress(tarred(TEXT)), True), ("text.zip", zipped(TEXT), True),
    ("twice.gz", gzip.compress(gzip.compress(TEXT)), False), ("noise", NOISE, False),
    ("zeros", bytes(2000), False), ("wide", TEXT.decode().encode("utf-16"), False),
    ("cut.gz", gzip.compress(TEXT)[:-20], False), ("cut.zip", zipped(TEXT)[:40], False),
    ("text.7z", b"7z\xbc\xaf\x27\x1c" + NOISE, False), ("named.rar", TEXT, False),
    ("inner.tar", tarred(zipped(TEXT)), False), ("odd.tar", b"x" + tarred(TEXT)[1:], False),
]


class Texts(Kind):
    """What `data lm --from` learns from: texts as they are and packed, and what is none."""

    def case(self, random, folder):
        name, data, good = random.choice(SOURCES_OF_TEXT)
        whole = random.random() < 0.7
        if not whole:  # a folder, in which it stands beside a text
            (folder / "texts").mkdir()
            (folder / "texts" / "a").write_bytes(TEXT)
        (folder / ("" if whole else "texts") / name).write_bytes(data)
        # Of a folder's files gzip alone is unpacked.
        good = good and (whole or name in ("text", "text.gz"))

        def check(outcome):
            if outcome.exit_code == 2 and not good:
                return [] if name.removesuffix(".gz") in outcome.err else [("no file in the message", outcome.err)]
            if outcome.exit_code == 0 and good:
                return []
            return [("a text is none" if good else "what is no text is learned from",
                     f"{name}: exit code {outcome.exit_code}")]

        return Case(["data", "lm", "--from", name if whole else "texts", "--out", "data"],
                    check=check)
