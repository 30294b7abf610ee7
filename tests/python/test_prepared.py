"""Prepared data as arrays, beside what the program shows of the same file."""

from __future__ import annotations

import builtins
import subprocess
from pathlib import Path
from typing import Any

import attnbench
import numpy as np
import pytest

SYMBOLS = "_ 0 1 2 3 4 5 6 7 8 9 [MIN [MAX [MED [SM ]".split()


def prepare_listops(program: str, folder: Path, train: int = 60, longest: int = 40) -> str:
    """What the program shows of the rows for training: a class and a text on each line."""
    settings = {"train_examples": train, "validation_examples": 5, "test_examples": 5}
    settings |= {"length_minimum": 3, "length_maximum": longest}
    words = [f"--set={name}={value}" for name, value in settings.items()]
    command = [program, "data", "lra.listops", *words, f"--out={folder}", f"--show={train}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_rows_are_those_that_the_program_shows(program: str, tmp_path: Path) -> None:
    shown = [line.split("\t") for line in prepare_listops(program, tmp_path, 1200).splitlines()]
    found = attnbench.data("lra.listops", tmp_path)
    texts = [" ".join(SYMBOLS[id] for id in row) for row in found.train.documents()]
    labels = [found.classes[label] for label in found.train.labels]
    assert len(texts) == 1200  # more than a block
    assert [[label, text] for label, text in zip(labels, texts, strict=True)] == [
        line for line in shown if len(line) == 2
    ]
    assert f"content {found.content_hash}" in ["\t".join(line) for line in shown]
    assert repr(found) == (
        "lra.listops: train 1,200, validation 5, test 5 rows, 10 classes, 16 ids"
    )
    padded = found.train.padded(50)
    assert padded.shape == (1200, 50)
    assert padded.dtype == np.uint8
    assert ((padded != 0).sum(axis=1) == found.train.lengths[:, 0]).all()
    assert (padded[padded != 0] == found.train.tokens).all()
    assert (found.train.padded(4, truncate=True) == padded[:, :4]).all()
    with pytest.raises(ValueError, match=r"length is 4: expected at least that, or truncate=True"):
        found.train.padded(4)


def test_texts_are_their_bytes(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {"train": (b"good film", b"\xff\x00 bad"), "test": (b"fine", b"poor")}
    for split, texts in contents.items():
        for name, text in zip(("pos", "neg"), texts, strict=True):
            (tmp_path / "raw" / split / name).mkdir(parents=True)
            for copy in range(3):
                (tmp_path / "raw" / split / name / f"{copy}_1.txt").write_bytes(text)
    folders = [f"--from={tmp_path / 'raw'}", f"--out={tmp_path / 'data'}"]
    words = [program, "data", "lra.text", *folders, "--set=hold_out=2"]
    subprocess.run(words, check=True, capture_output=True)
    monkeypatch.setenv("ATTNBENCH_DATA", str(tmp_path / "data"))
    found = attnbench.data("lra.text")
    assert len(found.validation) == 2
    assert found.train.tokens.dtype == np.uint16  # ids of bytes are one more
    for split, texts in (("train", contents["train"]), ("test", contents["test"])):
        rows: attnbench.PreparedSplit = getattr(found, split)
        read = {
            (found.classes[label], (ids - found.first_token).astype(np.uint8).tobytes())
            for label, ids in zip(rows.labels, rows.documents(), strict=True)
        }
        assert read == {("pos", texts[0]), ("neg", texts[1])}


def test_a_text_of_bytes_is_found_by_its_tokens(program: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"to be or not to be\n" * 100)
    words = [program, "data", "lm", f"--from={text}", f"--out={tmp_path}"]
    subprocess.run(words, check=True, capture_output=True)
    found = attnbench.data("lm", tmp_path, tokens="bytes", vocabulary=256)
    assert "tokens" not in found.settings  # as of data from before there was the setting
    assert found.train.tokens[:5].tobytes() == b"to be"
    with pytest.raises(attnbench.BadData, match="was prepared with tokens=bytes"):
        attnbench.data("lm", tmp_path, tokens="words")
    subprocess.run([*words, "--set=tokens=words"], check=True, capture_output=True)
    assert attnbench.data("lm", tmp_path, tokens="words").vocabulary == 256
    assert attnbench.data("lm", tmp_path, tokens="bytes").file == found.file


def test_what_is_missing_or_damaged_is_refused(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATTNBENCH_DATA", raising=False)
    with pytest.raises(attnbench.BadData, match="pass folder=… or set ATTNBENCH_DATA"):
        attnbench.data("lra.listops")
    prepare_listops(program, tmp_path)
    with pytest.raises(attnbench.BadData, match=r"attnbench data lm --out .*\n.*data of lra.listo"):
        attnbench.data("lm", tmp_path)
    with pytest.raises(attnbench.BadData, match=r"--set depth=3 --out .*\n.*with depth=10"):
        attnbench.data("lra.listops", tmp_path, depth=3)
    with pytest.raises(attnbench.BadData, match="says nothing of hold_out"):
        attnbench.data("lra.listops", tmp_path, hold_out=3)
    [file] = tmp_path.glob("*.prepared")
    prepare_listops(program, tmp_path / "longer", longest=80)
    with pytest.raises(attnbench.BadData, match="several data of lra.listops; say a setting"):
        attnbench.data("lra.listops", tmp_path)
    assert attnbench.data("lra.listops", tmp_path, length_maximum=np.int64(40)).file == file
    whole = file.read_bytes()
    block = whole.index(b"ARLBLOCK")
    for place, fault in (
        (0, "is not prepared data"),
        (8, "is of format version"),
        (40, "has a damaged header"),
        (block + 64, "rows 0 to 69 are damaged"),
        (block + 600, "rows 0 to 69 are damaged"),
        (len(whole) - 100, "has a damaged index"),
        (len(whole) - 64, "has a damaged end"),
        (len(whole) - 1, "is cut short"),
    ):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        with pytest.raises(attnbench.BadData, match=fault):
            attnbench.data("lra.listops", tmp_path, length_maximum=40)
    for kept in (0, 20, 100, len(whole) // 2):
        file.write_bytes(whole[:kept])
        with pytest.raises(attnbench.BadData, match=str(file)):
            attnbench.data("lra.listops", tmp_path, length_maximum=40)


def test_without_xxhash_it_says_what_to_install(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_listops(program, tmp_path)
    own = builtins.__import__

    def refuse(name: str, *more: Any) -> Any:
        if name == "xxhash":
            raise ImportError(name)
        return own(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install xxhash"):
        attnbench.data("lra.listops", tmp_path)


def test_two_documents_a_row_are_two_towers(program: str, tmp_path: Path) -> None:
    rows = {
        "train": [("1", "attention", "is all"), ("0", "x", "y")],
        "eval": [("0", "one", "two")],
        "test": [("1", "three", "four")],
    }
    for split, pairs in rows.items():
        lines = "".join(f"{label}\tA\tB\t{x}\t{y}\n" for label, x, y in pairs)
        (tmp_path / f"new_aan_pairs.{split}.tsv").write_text(lines)
    words = [program, "data", "lra.retrieval", f"--from={tmp_path}", f"--out={tmp_path}"]
    subprocess.run(words, check=True, capture_output=True)
    found = attnbench.data("lra.retrieval", tmp_path)
    for part, split in ((found.train, "train"), (found.validation, "eval"), (found.test, "test")):
        first, second = (
            [(ids - found.first_token).astype(np.uint8).tobytes().decode() for ids in documents]
            for documents in (part.documents(0), part.documents(1))
        )
        labels = [str(label) for label in part.labels]
        assert list(zip(labels, first, second, strict=True)) == rows[split]
    assert found.train.lengths.tolist() == [[9, 6], [1, 1]]
    assert found.train.padded(tower=1).shape == (2, 6)


def test_ids_of_a_tokeniser_keep_their_width(program: str, tmp_path: Path) -> None:
    for kind, vocabulary in (("uint16", 1 << 16), ("uint32", 1 << 17)):
        ids = np.arange(vocabulary - 1000, vocabulary, dtype=np.dtype(kind).newbyteorder("<"))
        (tmp_path / f"{kind}.bin").write_bytes(ids.tobytes())
        words = [program, "data", "lm", f"--from={tmp_path / kind}.bin", f"--out={tmp_path / kind}"]
        words += [f"--set=tokens={kind}", f"--set=vocabulary={vocabulary}"]
        subprocess.run(words, check=True, capture_output=True)
        found = attnbench.data("lm", tmp_path / kind, tokens=kind)
        assert found.vocabulary == vocabulary
        assert found.train.tokens.dtype == np.dtype(kind)
        assert (found.train.tokens == ids[:900]).all()
        assert (found.test.tokens == ids[950:]).all()
