"""Callables as mechanisms: the word of a function or class, and its source where no file has it.

A function or class of a module that can be imported is measured from there. One of a notebook, of
__main__ or of another function is carried: its source, with the imports, constants, functions and
classes that it uses, is written to a file named by its content. Source, and no pickled bytecode: the
worker's Python may be another version, the file can be read and run again, and the program
knows it by its hash.
"""

from __future__ import annotations

import __future__

import ast
import builtins
import hashlib
import importlib
import inspect
import linecache
import math
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Mechanism = str | Callable[..., Any]

_ANNOTATIONS: int = __future__.annotations.compiler_flag
_INSTEAD = "write it to a file, and pass python:FILE.py:NAME"


def words_of(mechanisms: Sequence[Mechanism], folder: Path, taken: Sequence[str] = ()) -> list[str]:
    """The program's words for mechanisms: texts as they are, callables by their files.

    Files are written to `folder`. taken: names that a callable must not get. Raises ValueError,
    with the reason, for what cannot be carried.
    """
    words = [one if isinstance(one, str) else "" for one in mechanisms]
    names = {*taken, *words}
    for index, one in enumerate(mechanisms):
        if not isinstance(one, str):
            name = _free(mechanism_name(one), names)
            names.add(name)
            words[index] = f"{name}={python_word(one, folder)}"
    return words


def mechanism_name(thing: Callable[..., Any]) -> str:
    """What the program calls it: in lower case with _, MyModule is my_module."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", getattr(thing, "__name__", "it"))
    return re.sub(r"[^a-z0-9_]", "_", name.lower()).strip("_") or "it"


def _free(name: str, taken: set[str]) -> str:
    if name in taken:
        name += "_py"
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def python_word(thing: Callable[..., Any], folder: Path) -> str:
    """python:FILE.py:NAME of a function or class, or python:PACKAGE.MODULE:NAME.

    Writes its source to `folder` where no module has it. Raises ValueError.
    """
    if not isinstance(thing, (type, types.FunctionType)):
        kind = type(thing).__name__
        if isinstance(thing, types.BuiltinFunctionType):
            raise ValueError(f"{thing!r} is built in and has no source: call it in a function")
        raise ValueError(
            f"{thing!r} is an object ({kind}), whose values its source does not have: pass its "
            f"class or a function"
        )
    if thing.__name__ == "<lambda>":
        raise ValueError("a lambda has no name to be known by: define it by def")
    _expect_signature(thing)
    module = sys.modules.get(thing.__module__)
    if module is not None and module.__name__ != "__main__":
        if vars(module).get(thing.__qualname__) is thing:
            return _imported(thing, module)
    source = _Carried().source_of(thing)
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{mechanism_name(thing)}_{digest}.py"
    if not file.exists() or file.read_text(encoding="utf-8") != source:
        file.write_text(source, encoding="utf-8")
    return f"python:{file}:{thing.__name__}"


def _imported(thing: Callable[..., Any], module: types.ModuleType) -> str:
    """The word of what a module has: by its name in a package, else by its file."""
    file = getattr(module, "__file__", None)
    known = f"python:{module.__name__}:{thing.__name__}"
    if file is None or not file.endswith(".py") or _installed(file):
        return known
    for code in _codes(thing):
        if code.co_filename == file:
            _source(code, thing.__qualname__)
    if "." in module.__name__:
        return known
    path, working = Path(file).resolve(), Path.cwd().resolve()
    shown = path.relative_to(working) if working in path.parents else path
    return f"python:{shown}:{thing.__name__}"


def _installed(file: str) -> bool:
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or file.startswith(_STANDARD)


_STANDARD = str(Path(inspect.__file__).parent)


def _expect_signature(thing: Callable[..., Any]) -> None:
    """Refuses what takes no query, before a file is written."""
    call: Any = thing
    if isinstance(thing, type):
        module = any(base.__module__.startswith("torch.nn.") for base in thing.__mro__)
        calls = [vars(base)["__call__"] for base in thing.__mro__ if "__call__" in vars(base)]
        call = getattr(thing, "forward", None) if module else next(iter(calls), None)
        if call is None:
            raise ValueError(
                f"{thing.__qualname__} cannot be called: give it __call__, or derive it from "
                "torch.nn.Module and give it forward"
            )
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return
    if "query" not in parameters and not hasattr(thing, "roles"):
        there = ", ".join(name for name in parameters if name != "self") or "none"
        raise ValueError(
            f"{thing.__qualname__} takes no query; its parameters are: {there}. A mechanism takes "
            "query, key and value by these names (attnbench's docs/python.md)"
        )


def _codes(thing: Any) -> Iterator[types.CodeType]:
    """The code of a function, or of the functions of a class's body."""
    if isinstance(thing, type):
        for one in vars(thing).values():
            one = inspect.unwrap(getattr(one, "__func__", getattr(one, "fget", one)))
            if isinstance(one, types.FunctionType) and _is_in(thing, one):
                if one.__code__.co_filename != "<string>":  # of a dataclass
                    yield one.__code__
    else:
        yield inspect.unwrap(thing).__code__


def _is_in(cls: type, function: types.FunctionType) -> bool:
    return function.__qualname__ == f"{cls.__qualname__}.{function.__name__}"


def _source(code: types.CodeType, name: str) -> tuple[str, ast.Module]:
    """The file or cell of a code, also parsed. Raises ValueError where it is none, or another."""
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        raise ValueError(f"{name} has no source ({code.co_filename}): {_INSTEAD}")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | (code.co_flags & _ANNOTATIONS)  # as in a notebook
    try:
        tree = ast.parse(text)
        now = compile(text, code.co_filename, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{name}: {code.co_filename} is no Python now ({error})") from error
    if code not in _all_codes(now):
        raise ValueError(
            f"{name} is not what {code.co_filename} has at line {code.co_firstlineno}: the file was "
            "changed since it was run or imported; run or reload it"
        )
    return text, tree


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _all_codes(one)


class _Carried:
    """The source of a function or class with all that it uses, what is used first."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._known: dict[str, Any] = {}
        self._folders: list[str] = []
        self._annotations = False

    def source_of(self, thing: Any) -> str:
        self._add(thing, thing.__name__, thing.__qualname__)
        head = f'"""{thing.__qualname__}, carried by attnbench from {thing.__module__}."""\n\n'
        if self._annotations:
            head += "from __future__ import annotations\n\n"
        if self._folders:
            head += "import sys\n\n"
            head += "".join(f"sys.path.append({folder!r})\n" for folder in self._folders)
        return head + "\n".join(self._parts)

    def _add(self, value: Any, name: str, user: str) -> None:
        """Adds what a name stands for, once."""
        if name in self._known:
            if self._known[name] is not value:
                raise ValueError(f"{user} uses two things that are called {name}: rename one")
            return
        self._known[name] = value
        if isinstance(value, types.ModuleType):
            self._import_module(value, name, user)
        elif getattr(value, "__name__", "") == "<lambda>":
            raise ValueError(f"{user} uses the lambda {name}: define it by def")
        elif isinstance(value, (type, types.FunctionType)) and self._is_own(value):
            if value.__name__ != name:
                self._add(value, value.__name__, user)
                self._parts.append(f"{name} = {value.__name__}\n")
            else:
                self._define(value)
        else:
            self._parts.append(self._assigned(value, name, user))

    def _is_own(self, value: Any) -> bool:
        """Whether no module that can be imported has it."""
        return value.__module__ == "__main__" or "<locals>" in value.__qualname__

    def _define(self, thing: Any) -> None:
        text, free = self._text(thing)
        names: dict[str, Any] = {}
        for code in _codes(thing):
            self._annotations |= bool(code.co_flags & _ANNOTATIONS)
        surroundings = self._globals(thing)
        for name in free:
            if name in surroundings and name != thing.__name__:
                names[name] = surroundings[name]
        for name, value in names.items():
            self._add(value, name, thing.__qualname__)
        self._parts.append(text)
        for name, value in self._attributes(thing, text).items():
            if getattr(value, "__name__", "") == "<lambda>":
                raise ValueError(f"{thing.__qualname__}.{name} is a lambda: define it by def")
            if isinstance(value, types.FunctionType) and self._is_own(value):
                self._add(value, value.__name__, thing.__qualname__)
                self._parts.append(f"{thing.__name__}.{name} = {value.__name__}\n")
            else:
                whole = f"{thing.__name__}.{name}"
                self._parts.append(self._assigned(value, whole, thing.__qualname__))

    def _globals(self, thing: Any) -> dict[str, Any]:
        own = vars(thing).values() if isinstance(thing, type) else [thing]
        for one in own:
            one = inspect.unwrap(getattr(one, "__func__", one))
            if isinstance(one, types.FunctionType) and one.__module__ == thing.__module__:
                return one.__globals__
        return {}

    def _text(self, thing: Any) -> tuple[str, list[str]]:
        """Its definition, and the names that this takes from outside."""
        name = thing.__qualname__
        codes = list(_codes(thing))
        if not codes:
            raise ValueError(
                f"{name} has no method in its body, by which its source is found: give it one, or "
                f"{_INSTEAD}"
            )
        for code in codes:
            outer = [one for one in code.co_freevars if one != "__class__"]
            if outer:
                held = ", ".join(_held(thing, one) for one in outer)
                raise ValueError(
                    f"{name} closes over {held}: make that in the function, give it as the default "
                    f"of a parameter (int, float, bool or str), or {_INSTEAD}"
                )
        code = codes[0]
        lines, tree = _source(code, name)
        wanted = ast.ClassDef if isinstance(thing, type) else ast.FunctionDef
        for node in ast.walk(tree):
            if not isinstance(node, wanted) or node.name != _defined_as(thing):
                continue
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            last = node.end_lineno or first
            if isinstance(thing, type):
                there = first <= code.co_firstlineno <= last
            else:
                there = first == code.co_firstlineno
            if there and hasattr(thing, "__wrapped__") and not node.decorator_list:
                break  # its source alone would be another function
            if there:
                kept = "".join(lines.splitlines(keepends=True)[first - 1 : last])
                text = textwrap.dedent(kept).rstrip() + "\n"
                return text, _free_names(text)
        raise ValueError(
            f"{name} is made by a call, such as that of a decorator: write it as @… above the "
            f"definition, or {_INSTEAD}"
        )

    def _attributes(self, thing: Any, text: str) -> dict[str, Any]:
        """What was set on it after its definition, such as `patterns` and `reference`."""
        if isinstance(thing, types.FunctionType):
            return {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        body = ast.parse(text).body[0]
        assert isinstance(body, ast.ClassDef)
        table = symtable.symtable(text, "class", "exec").get_children()[0]
        defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
        later = {
            key: value
            for key, value in vars(thing).items()
            if not (key.startswith("__") and key.endswith("__")) and key not in defined
        }
        methods = {one.name for one in body.body if isinstance(one, ast.FunctionDef)}
        for key in methods:
            value = vars(thing).get(key)
            if isinstance(value, types.FunctionType) and not _is_in(thing, inspect.unwrap(value)):
                raise ValueError(
                    f"{thing.__qualname__}.{key} was replaced after the class was defined: define "
                    "it in the class"
                )
        return {key: value for key, value in later.items() if not key.startswith("_abc_")}

    def _import_module(self, module: types.ModuleType, name: str, user: str) -> None:
        if module.__name__ == "__main__" or module.__spec__ is None:
            raise ValueError(f"{user} uses the module {module.__name__}, which cannot be imported")
        self._reach(module)
        alias = "" if module.__name__ == name else f" as {name}"
        self._parts.append(f"import {module.__name__}{alias}\n")

    def _reach(self, module: types.ModuleType) -> None:
        """Modules of the user are found where they were, whatever folder is the working one."""
        root = sys.modules.get(module.__name__.split(".")[0], module)
        file = getattr(root, "__file__", None)
        if file is None or _installed(file):
            return
        place = Path(file).resolve().parent
        folder = str(place.parent if Path(file).name == "__init__.py" else place)
        if folder not in self._folders:
            self._folders.append(folder)

    def _assigned(self, value: Any, name: str, user: str) -> str:
        text = _literal(value)
        if text is not None:
            return f"{name} = {text}\n"
        kind = type(value)
        if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device"):
            self._add(importlib.import_module("torch"), "torch", user)
            said = repr(value) if kind.__name__ == "dtype" else f"torch.device({str(value)!r})"
            return f"{name} = {said}\n"
        found = _home(value, name.rpartition(".")[2])
        if found is not None:
            module, known = found
            self._reach(module)
            alias = f" as {name}" if known != name else ""
            if "." in name:
                return f"import {module.__name__}\n{name} = {module.__name__}.{known}\n"
            return f"from {module.__name__} import {known}{alias}\n"
        raise ValueError(
            f"{user} uses {name}, which is {_a(kind.__name__)} and cannot be carried: make it in the "
            f"function, or {_INSTEAD}"
        )


def _defined_as(thing: Any) -> str:
    """The name in the definition, which a decorator may have changed."""
    name: str = thing.__name__ if isinstance(thing, type) else inspect.unwrap(thing).__name__
    return name


def _held(thing: Any, name: str) -> str:
    if isinstance(thing, types.FunctionType):
        values = inspect.getclosurevars(inspect.unwrap(thing)).nonlocals
        if name in values:
            return f"{name} ({_a(type(values[name]).__name__)})"
    return name


def _a(name: str) -> str:
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def _free_names(text: str) -> list[str]:
    """Names that a definition takes from its module, in the order of the alphabet."""
    found: set[str] = set()

    def visit(table: symtable.SymbolTable, top: bool) -> None:
        for symbol in table.get_symbols():
            outside = not symbol.is_assigned() if top else symbol.is_global()
            if symbol.is_referenced() and outside:
                found.add(symbol.get_name())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(text, "definition", "exec"), True)
    return sorted(name for name in found if not hasattr(builtins, name))


def _literal(value: Any) -> str | None:
    """A value as Python writes it, or None where it is none of plain data."""
    if (
        hasattr(value, "dtype")
        and type(value).__module__ == "numpy"
        and not hasattr(value, "__len__")
    ):
        value = value.item()
    if isinstance(value, float) and type(value) is float and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or value is ... or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) in (list, tuple, set, frozenset):
        items = [_literal(one) for one in value]
        if any(one is None for one in items):
            return None
        if type(value) in (set, frozenset):
            items.sort(key=str)
            return f"{type(value).__name__}([{', '.join(map(str, items))}])"
        ends = "[]" if type(value) is list else "()"
        comma = "," if type(value) is tuple and len(items) == 1 else ""
        return f"{ends[0]}{', '.join(map(str, items))}{comma}{ends[1]}"
    if type(value) is dict:
        pairs = [(_literal(key), _literal(one)) for key, one in value.items()]
        if any(key is None or one is None for key, one in pairs):
            return None
        return "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    return None


def _home(value: Any, name: str) -> tuple[types.ModuleType, str] | None:
    """The module that has a value, by what it says of itself, else by looking; and its name there."""
    for own in (getattr(value, "__name__", name), name):
        said = sys.modules.get(getattr(value, "__module__", None) or "")
        if said is not None and said.__name__ != "__main__" and vars(said).get(own) is value:
            return said, own
        for key in sorted(sys.modules, key=lambda one: (one.count("."), len(one), one)):
            module = sys.modules[key]
            if key == "__main__" or key.startswith("_") or not isinstance(module, types.ModuleType):
                continue
            if vars(module).get(own) is value:
                return module, own
    return None
