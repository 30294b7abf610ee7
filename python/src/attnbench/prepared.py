"""Prepared data as NumPy arrays: the files that `attnbench data TASK --out FOLDER` writes."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnbench.errors import BadData

_SPLITS = ("train", "validation", "test")

# What data have that say nothing of it: texts as bytes, as all were before there were tokens.
_UNSAID: Mapping[str, Mapping[str, Any]] = {"lm": {"tokens": "bytes", "vocabulary": 256}}

# tasks/data/cache_format.hpp describes the bytes; all numbers are little-endian.
_VERSION = 1
_MAGIC = b"ATTNLRA\n"
_BLOCK_MARK = 0x4B434F4C424C5241
_ROWS_PER_BLOCK = 1000
_ALIGNMENT = 64
_HEADER = struct.Struct("<8sIIQQ")  # magic, version, text's bytes and hash, bytes of a token
_BLOCK = struct.Struct("<QQQQQQ16x")  # mark, first row, rows, payload's bytes and hash, low half first
_TRAILER = struct.Struct("<QQQQQQ8x8s")  # footer: position, bytes, hash; facts' bytes, rows, blocks


@dataclass(frozen=True, repr=False)
class PreparedSplit:
    """The rows of a split, in the order of the data set.

    tokens: [sum of lengths], the ids of all documents, end to end, without padding; uint8, or uint16
    or uint32 where the vocabulary is larger than 2^8 or 2^16. lengths: [rows, towers], int64, tokens
    of each document; towers is 2 where a task compares documents, else 1. labels: [rows], int64,
    places in the classes.
    """

    tokens: NDArray[Any]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"{len(self):,} rows of {self.tokens.size:,} tokens"

    def documents(self, tower: int = 0) -> Iterator[NDArray[Any]]:
        """The ids of each row's document, views into tokens."""
        ends = np.cumsum(self.lengths.ravel()).reshape(self.lengths.shape)[:, tower]
        for end, length in zip(ends, self.lengths[:, tower], strict=True):
            yield self.tokens[end - length : end]

    def padded(
        self, length: int | None = None, *, tower: int = 0, truncate: bool = False
    ) -> NDArray[Any]:
        """The documents as [rows, length], with 0 after their end.

        length: tokens; None: of the longest one. Raises ValueError where a document is longer,
        unless truncate leaves its end out.
        """
        longest = int(self.lengths[:, tower].max(initial=0))
        columns = longest if length is None else length
        if columns < longest and not truncate:
            raise ValueError(
                f"a row has {longest} tokens, length is {columns}: expected at least that, or "
                "truncate=True"
            )
        rows = np.zeros((len(self), columns), self.tokens.dtype)
        for row, document in zip(rows, self.documents(tower), strict=True):
            row[: len(document)] = document[:columns]
        return rows


@dataclass(frozen=True, repr=False)
class PreparedData:
    """The data that a task trains on.

    classes: a name for each label. vocabulary: ids are below it. first_token: the least id, that of
    byte 0 where tokens are bytes of texts. width: pixels a line where rows are images, else 0.
    settings, source, notes: what the rows were made from, and what was left out. content_hash: equal
    for equal rows. file: where they are.
    """

    task: str
    train: PreparedSplit
    validation: PreparedSplit
    test: PreparedSplit
    classes: tuple[str, ...]
    vocabulary: int
    first_token: int
    width: int
    settings: Mapping[str, Any]
    source: str
    notes: Mapping[str, Any]
    content_hash: str
    file: Path

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(getattr(self, name)):,}" for name in _SPLITS)
        return f"{self.task}: {rows} rows, {len(self.classes)} classes, {self.vocabulary} ids"


def data(task: str, folder: str | os.PathLike[str] | None = None, **settings: Any) -> PreparedData:
    """The data that a task trains on, such as "lra.listops" or "lm", read into memory.

    They are those that `attnbench data TASK --out FOLDER` has prepared: this makes none. folder:
    looked through with the folders in it; else ATTNBENCH_DATA. settings: those of the data, which
    tell several of one task apart. Padding is 0 where rows differ in length, and left to the caller
    (PreparedSplit.padded). Every part is held to its checksum, for which the package xxhash is needed.

    Raises BadData where nothing fits (with the command that prepares it), several files do, or one is
    damaged or of another version; ImportError without xxhash.

    >>> listops = attnbench.data("lra.listops", "data", length_maximum=40)
    >>> listops
    lra.listops: train 60, validation 5, test 5 rows, 10 classes, 16 ids
    >>> listops.test.padded(40).shape, listops.test.labels.shape
    ((5, 40), (5,))
    """
    where = os.fspath(folder) if folder is not None else os.environ.get("ATTNBENCH_DATA", "")
    said = "".join(f" --set {name}={value}" for name, value in settings.items())
    remedy = f"prepare it with `attnbench data {task}{said} --out {where or 'FOLDER'}`"
    if not where:
        raise BadData(f"no folder of data: pass folder=… or set ATTNBENCH_DATA; {remedy}")
    found, others = [], []
    for path in sorted({*Path(where).glob("*.prepared"), *Path(where).glob("*/*.prepared")}):
        try:
            file = _File(path)
        except BadData as error:
            others.append(str(error))
            continue
        fault = file.difference(task, settings)
        if fault:
            others.append(f"{path} {fault}")
        else:
            found.append(file)
    if not found:
        there = "".join(f"\n  {one}" for one in others) or "\n  nothing"
        raise BadData(f"{where}: no data of {task} as wanted; {remedy}. There is:{there}")
    if len(found) > 1:
        each = "".join(f"\n  {file.path}: {json.dumps(file.settings)}" for file in found)
        raise BadData(f"{where}: several data of {task}; say a setting in which they differ:{each}")
    return found[0].read()


class _File:
    """A file of prepared data, mapped. Header and index are checked here, blocks when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._bytes = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:  # ValueError: it is empty
            raise BadData(f"{path}: cannot be read: {error}") from error
        self._size = self._bytes.size
        try:
            self._read_header()
            self._read_footer()
        except (struct.error, ValueError, KeyError, TypeError) as error:
            if isinstance(error, BadData):
                raise
            raise self._refusal(f"has a header or an end that cannot be used ({error})") from error

    def _refusal(self, fault: str) -> BadData:
        return BadData(
            f"{self.path}: {fault}; remove it and prepare it again with `attnbench data`"
        )

    def _part(self, position: int, count: int) -> bytes:
        return self._bytes[position : position + count].tobytes()

    def _array(self, kind: str, position: int, count: int) -> NDArray[Any]:
        whole = self._part(position, count * np.dtype(kind).itemsize)
        return np.frombuffer(whole, kind)

    def _read_header(self) -> None:
        magic, version, count, text_hash, self._width = _HEADER.unpack(self._part(0, _HEADER.size))
        if magic != _MAGIC:
            raise self._refusal("is not prepared data")
        if version != _VERSION:
            raise self._refusal(f"is of format version {version}, this package reads {_VERSION}")
        text = self._part(_HEADER.size, count)
        if _hash(text)[0] != text_hash or self._width not in (1, 2, 4):
            raise self._refusal("has a damaged header")
        self._description: dict[str, Any] = json.loads(text)
        self.settings: dict[str, Any] = self._description["settings"]
        self._towers: int = self._description["towers"]

    def _read_footer(self) -> None:
        end = self._size - _TRAILER.size
        position, count, footer_hash, facts_bytes, self._rows, blocks, magic = _TRAILER.unpack(
            self._part(max(0, end), _TRAILER.size)
        )
        if magic != _MAGIC:
            raise self._refusal("is cut short or was not prepared to its end")
        tables = 8 * blocks + 4 * self._rows
        if position + count != end or _rounded_up(tables + facts_bytes, _ALIGNMENT) != count:
            raise self._refusal("has a damaged end")
        if _hash(self._part(position, count))[0] != footer_hash:
            raise self._refusal("has a damaged index")
        self._blocks = self._array("<u8", position, blocks)
        self._order = self._array("<u4", position + 8 * blocks, self._rows)
        facts = json.loads(self._part(position + tables, facts_bytes))
        self._content_hash: str = facts["content_hash"]
        self._rows_of: list[int] = [facts["splits"][name]["rows"] for name in _SPLITS]

    def difference(self, task: str, settings: Mapping[str, Any]) -> str:
        """In what it is other than wanted; empty where in nothing."""
        if self._description["task"] != task:
            return f"holds data of {self._description['task']}"
        known = {**_UNSAID.get(task, {}), **self.settings}
        for name, value in settings.items():
            if name not in known:
                return f"says nothing of {name}; its settings: {', '.join(known)}"
            if known[name] != value:
                return f"was prepared with {name}={known[name]}"
        return ""

    def read(self) -> PreparedData:
        blocks = [self._block(number) for number in range(len(self._blocks))]
        orders = np.split(self._order, np.cumsum(self._rows_of)[:-1])
        train, validation, test = (self._split(blocks, order) for order in orders)
        said = self._description
        return PreparedData(
            said["task"],
            train,
            validation,
            test,
            classes=tuple(said["classes"]),
            vocabulary=said["vocabulary"],
            first_token=said["first_token"],
            width=said["width"],
            settings=self.settings,
            source=said["source"],
            notes=said["notes"],
            content_hash=self._content_hash,
            file=self.path.absolute(),
        )

    def _block(self, number: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Offsets, labels and stored tokens of a block, once it is held to its hash."""
        first = number * _ROWS_PER_BLOCK
        rows = min(_ROWS_PER_BLOCK, self._rows - first)
        position = int(self._blocks[number])
        begin = position + _BLOCK.size
        counted = rows * self._towers + 1
        labels = 4 * counted
        tokens = _rounded_up(labels + 9 * rows, 8)  # after labels, orders and splits
        header = self._part(position, _BLOCK.size)
        if len(header) == _BLOCK.size:
            mark, first_row, count, size, low, high = _BLOCK.unpack(header)
            sound = (mark, first_row, count) == (_BLOCK_MARK, first, rows) and size >= tokens
            if sound and _hash(self._part(begin, size)) == (low, high):
                return (
                    self._array("<u4", begin, counted).astype(np.int64),
                    self._array("<i4", begin + labels, rows),
                    self._array(f"<u{self._width}", begin + tokens, (size - tokens) // self._width),
                )
        raise self._refusal(f"rows {first} to {first + rows - 1} are damaged")

    def _split(
        self,
        blocks: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
        order: NDArray[Any],
    ) -> PreparedSplit:
        lengths = np.zeros((len(order), self._towers), np.int64)
        labels = np.zeros(len(order), np.int64)
        most = self._description["vocabulary"]
        kind = np.dtype("uint8" if most <= 1 << 8 else "uint16" if most <= 1 << 16 else "uint32")
        documents = [np.zeros(0, kind)]
        for place, row in enumerate(order):
            offsets, of_block, tokens = blocks[row // _ROWS_PER_BLOCK]
            first = int(row % _ROWS_PER_BLOCK)
            ends = offsets[first * self._towers : (first + 1) * self._towers + 1]
            lengths[place] = np.diff(ends)
            labels[place] = of_block[first]
            documents.append(tokens[ends[0] : ends[-1]])  # the towers' are beside each other
        ids: NDArray[Any] = np.concatenate(documents, dtype=kind)
        np.add(ids, self._description["first_token"], out=ids)
        return PreparedSplit(ids, lengths, labels)


def _rounded_up(count: int, to: int) -> int:
    return -(-count // to) * to


def _hash(part: bytes) -> tuple[int, int]:
    """The XXH3 in 128 bits, low and high half."""
    try:
        import xxhash
    except ImportError as missing:
        raise ImportError(
            "attnbench.data holds prepared data to their checksums with xxhash, which is not "
            "installed: python3 -m pip install xxhash"
        ) from missing
    value: int = xxhash.xxh3_128_intdigest(part)
    return value & (2**64 - 1), value >> 64
