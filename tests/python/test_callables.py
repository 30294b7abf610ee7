"""Callables as mechanisms: what is carried, what is refused, and that what is new is measured."""

from __future__ import annotations

import ast
import functools
import json
import linecache
import re
import sys
import types
from pathlib import Path
from typing import Any

import attnbench
import numpy as np
import pytest
from attnbench.callables import mechanism_name, python_word, words_of
from attnbench.running import words_of_command
from conftest import Tensor


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cell(source: str, number: int = 1) -> dict[str, Any]:
    """What a notebook's cell defines: in __main__, with lines that only linecache has."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, name, "exec", dont_inherit=True), names)
    return names


def written(thing: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    """The source that is carried for it, and what this defines when it is run alone."""
    word = python_word(thing, folder)
    file, _, name = word.removeprefix("python:").rpartition(":")
    names: dict[str, Any] = {"__name__": "carried"}
    text = Path(file).read_text()
    exec(compile(text, file, "exec", dont_inherit=True), names)
    assert name in names
    return text, names


def test_a_function_is_carried_with_what_it_uses(tmp_path: Path) -> None:
    names = cell(
        """
import math
import json as js
from collections import OrderedDict
import numpy as np

def unused():
    return undefined

SLOPES = (1.0, math.inf)
both = lambda value: value
twice = 2

def scale(value, by=twice):
    return float(np.abs(value)) * SLOPES[0] * by

def mix(query, key, value, causal: bool):
    def inner(x):
        return scale(x) + len(OrderedDict())
    twice = js.loads("3")
    return inner(value) + 0 * twice

def definition(query, key, value, causal: bool):
    return value

mix.patterns = ["causal"]
mix.reference = definition
"""
    )
    text, there = written(names["mix"], tmp_path / "runs")
    assert there["mix"](0, 0, -4, True) == 8
    assert there["mix"].patterns == ["causal"]
    assert there["mix"].reference is there["definition"]
    assert "unused" not in text
    assert "lambda" not in text
    assert text.index("twice = 2") < text.index("def scale") < text.index("def mix")
    ast.parse(text)


def test_a_class_is_carried_with_its_bases_and_attributes(tmp_path: Path) -> None:
    names = cell(
        """
from __future__ import annotations
import functools

class Base:
    slope = 0.25

    def __init__(self):
        super().__init__()

def logged(function):
    @functools.wraps(function)
    def inner(*given, **more):
        return function(*given, **more)
    return inner

class Near(Base):
    claims = ["heads_independent"]

    @logged
    def __call__(self, query: NotDefined, key, value):
        return value * self.slope

Near.reference = "softmax"
"""
    )
    text, there = written(names["Near"], tmp_path)
    assert there["Near"]()(None, None, 8) == 2
    assert there["Near"].reference == "softmax"
    assert text.startswith('"""Near, carried by attnbench from __main__."""')
    assert "from __future__ import annotations" in text


def test_what_is_redefined_has_a_new_file(tmp_path: Path) -> None:
    source = "def mine(query, key, value):\n    return value * {}\n"
    first = python_word(cell(source.format(1))["mine"], tmp_path)
    again = python_word(cell(source.format(1), 2)["mine"], tmp_path)
    second = python_word(cell(source.format(2), 3)["mine"], tmp_path)
    assert first == again != second
    old = cell(source.format(3), 4)["mine"]
    cell(source.format(4), 4)
    with pytest.raises(ValueError, match="was changed since it was run or imported"):
        python_word(old, tmp_path)
    one, two = cell(source.format(1))["mine"], cell(source.format(2), 2)["mine"]
    named = [word.partition("=")[0] for word in words_of([one, two], tmp_path, ["mine"])]
    assert named == ["mine_py", "mine_py_2"]


def test_a_function_of_a_file_is_measured_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_near.py").write_text("def near(query, key, value):\n    return value\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("own_near")
    assert python_word(module.near, tmp_path / "runs") == "python:own_near.py:near"
    assert not (tmp_path / "runs").exists()
    (tmp_path / "own_near.py").write_text("def near(query, key, value):\n    return key\n")
    with pytest.raises(ValueError, match="own_near.py has at line 1: the file was changed"):
        python_word(module.near, tmp_path)
    del sys.modules["own_near"]


def test_names_are_those_of_the_program() -> None:
    for name, expected in (("MyModule", "my_module"), ("near", "near"), ("Near2D", "near2_d")):
        assert mechanism_name(types.new_class(name)) == expected


def closing_over(handle: Any) -> Any:
    def reads(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value * handle.read()

    return reads


def refused(thing: Any) -> str:
    with pytest.raises(ValueError) as caught:
        attnbench.run([thing], length=16, progress="none")
    return str(caught.value)


def test_what_cannot_be_carried_is_refused(program: str) -> None:
    with Path(__file__).open() as handle:
        reason = refused(closing_over(handle))
    assert "closes over handle (a TextIOWrapper): make that in the function" in reason
    assert "a lambda has no name" in refused(lambda query, key, value: value)
    no_source: dict[str, Any] = {"__name__": "__main__"}
    exec("def mine(query, key, value): return value", no_source)
    assert "mine has no source (<string>): write it to a file" in refused(no_source["mine"])
    assert "is built in and has no source" in refused(len)
    assert "takes no query; its parameters are: a, b" in refused(cell("def f(a, b): pass")["f"])
    assert "an object (partial)" in refused(functools.partial(closing_over, 3))
    assert "Plain cannot be called" in refused(cell("class Plain:\n  x = 1\n")["Plain"])
    uses = "def f(query, key, value): return value * table\n"
    names = cell(uses)
    names["table"] = np.zeros(3)
    assert "f uses table, which is a ndarray and cannot be carried" in refused(names["f"])
    names = cell(uses, 2)
    names["table"] = lambda: 3
    assert "f uses the lambda table: define it by def" in refused(names["f"])
    wrapped = functools.wraps(names["f"])(lambda *given: 3)
    assert "f is made by a call, such as that of a decorator" in refused(wrapped)
    assert not Path("runs").exists()


def test_callables_are_named_beside_ours(program: str) -> None:
    names = cell(
        """
HALF = 0.5

def half(value):
    return value * HALF

def mine(query, key, value, causal: bool):
    return half(value)

class Softmax:
    def __call__(self, query, key, value, causal: bool, gain: float = 1.0):
        return half(value) * gain
"""
    )
    mine, softmax = names["mine"], names["Softmax"]
    words = words_of_command(program, [mine, "flash"], {"with_": softmax}, Path("runs"))
    assert [without_hash(word) for word in words] == [
        "mine=python:runs/mine_HASH.py:mine",
        "flash",
        "--with=softmax_py=python:runs/softmax_HASH.py:Softmax",
    ]
    listed = {"ours": {"use": mine, "as": "own"}, "theirs": softmax, "flash": {"use": "flash"}}
    for mechanisms in (listed, [mine, softmax, "flash"]):
        [file] = words_of_command(program, {"mechanisms": mechanisms}, {}, Path("runs"))
        said = json.loads(without_hash(Path(file).read_text()))["mechanisms"]
        ours, theirs, flash = said.values()
        assert ours["use"] == "python:mine_HASH.py:mine"
        assert theirs == {"as": "softmax_py", "use": "python:softmax_HASH.py:Softmax"}
        assert flash == {"use": "flash"}
    assert list(said) == ["mine", "softmax_py", "flash"]


def without_hash(text: str) -> str:
    return re.sub(r"_[0-9a-f]{12}\.py", "_HASH.py", text)
