"""The half of the bridge that is written in Python: finds what a word names, reads what it declares, makes it.

Runs in the process of one cell. Every complaint begins with a file and a line of Python.
"""

import ast
import copy
import difflib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import math
import os
import sys
import sysconfig
import traceback
import types
import typing

torch = None  # start imports it

ROLES = {"query": ("query_tokens", "head_dim"), "key": ("key_tokens", "head_dim"), "value": ("key_tokens", "value_dim")}
SIZES = ("heads", "kv_heads", "head_dim", "value_dim", "length", "key_length", "causal", "pattern")
OF_STATE = ("batch", "heads", "head_dim", "value_dim", "capacity", "dtype", "device")
PATTERNS = ("bidirectional", "causal", "cross")
CLAIMS = ("rows_sum_to_one", "linear_in_value", "permutation_equivariant", "last_row_agrees", "heads_independent")
GROWTH = ("time_in_length", "workspace_in_length", "time_in_head_dim")
DTYPES = ("float32", "float64", "bfloat16", "float16")
HOOKS = ("cost", "unavailable", "reference")
COSTS = ("model_flops", "executed_flops", "minimal_bytes", "exponentials", "workspace_bytes", "saved_bytes", "state_bytes")
NOT_THERE = object()
FIXED = ("heads", "kv_heads", "head_dim", "value_dim")  # in every call of a mechanism that is made
MOST_INTEGER = 2**63 - 1
MOST_WIDTH = 1 << 20
MOST_TEXT = 2000  # characters
OWN_FILES = "attnbench_file_"


class Unavailable(Exception):
    """What was named cannot be used here."""


class Refused(Exception):
    """What was named is no mechanism. The text begins with its place."""


# ---- places and complaints

def shown(file):
    """The path as the user knows it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


def place(thing, module):
    """FILE:LINE of a definition."""
    target = thing if isinstance(thing, (type, types.FunctionType, types.MethodType)) else type(thing)
    try:
        return f"{shown(inspect.getsourcefile(target))}:{inspect.getsourcelines(target)[1]}"
    except (OSError, TypeError):
        file = getattr(module, "__file__", None)
        return f"{shown(file)}:1" if file else module.__name__


def nearest(word, known):
    found = difflib.get_close_matches(str(word), [str(one) for one in known], n=1)
    return f"; did you mean {found[0]}?" if found else f"; there is {', '.join(str(one) for one in known) or 'nothing'}"


def brief(value):
    """A value as Python writes it, for a message."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= 200 else text[:200] + "…"


def readable(text):
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def is_own(file):
    return any(getattr(module, "__file__", None) == file for name, module in list(sys.modules.items())
               if name.startswith(OWN_FILES))


def first_line(error):
    """An exception's type and the first line of its message."""
    lines = "".join(traceback.format_exception_only(type(error), error)).split("\n")
    lines = [line.strip() for line in lines if line.strip()] or [type(error).__name__]
    if isinstance(error, SyntaxError):
        return lines[-1]  # after the line of code
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]  # some begin with a new line


def explain(error, trace):
    """(reason, traceback, kind) of an exception; kind is unsupported, memory or error."""
    if isinstance(error, (Unavailable, Refused)):
        return readable(str(error)[:MOST_TEXT]), "", "unsupported" if isinstance(error, Unavailable) else "error"
    text = first_line(error)
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename != __file__]
    own = [frame for frame in frames if is_own(frame.filename)]
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{shown(error.filename)}:{error.lineno or 1}: "
    elif own or frames:
        frame = (own or frames)[-1]
        where = f"{shown(frame.filename)}:{frame.lineno}: "
    kind = "error"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        kind = "memory"
    elif isinstance(error, (ModuleNotFoundError, NotImplementedError)):
        kind = "unsupported"
    if isinstance(error, ModuleNotFoundError) and error.name:
        text += f": python3 -m pip install {error.name.split('.')[0]}, for {interpreter()}"
    # The user's own frames and the one that failed: a library's own calls say nothing to its caller.
    ours = [frame for frame in frames if not is_library(frame.filename)] or frames
    ours += [frame for frame in frames[-1:] if frame not in ours]
    whole = "".join(["Traceback (most recent call last):\n", *traceback.format_list(ours),
                     *traceback.format_exception_only(type(error), error)])
    return readable(where + text)[:2000], readable(whole)[-15000:], kind


def interpreter():
    return f"Python {sys.version.split()[0]} of {sys.prefix}"


# ---- starting

def version_of_torch(folder):
    """Without importing it."""
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            for line in file:
                if line.startswith(("__version__", "debug")) and "version" in line:
                    return line.split("=")[-1].strip().strip("'\"")
    except OSError:
        pass
    return "of unknown version"


def start(loaded, built_python, built_torch):
    """Imports PyTorch where it is the one whose library `loaded` is in this process already."""
    global torch
    built = f"this worker was built with Python {built_python} and PyTorch {built_torch}"
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        raise Unavailable(f"{interpreter()} has no PyTorch, and {built}: install it there (Debian: python3-torch), or "
                          "make the virtual environment with --system-site-packages")
    folder = list(found.submodule_search_locations)[0]
    library = os.path.join(folder, "lib", "libtorch_cpu.so")
    if not os.path.exists(library) or not os.path.samefile(library, loaded):
        raise Unavailable(f"{interpreter()} has PyTorch {version_of_torch(folder)} in {folder}, and {built}: leave the "
                          f"virtual environment or PYTHONPATH that brings it, or build for it with ATTNBENCH_TORCH={folder}")
    torch = importlib.import_module("torch")


def seed():
    """Gives this copy of a process random numbers of its own where a library keeps those of its import."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def openmp_runtimes():
    """The file names of all OpenMP runtimes in this process."""
    found = set()
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                file = line.split(maxsplit=5)[-1].strip()
                if os.path.basename(file).startswith(("libgomp", "libomp", "libiomp5")):
                    found.add(os.path.realpath(file))
    except OSError:
        pass
    return sorted(found)


# ---- what a word names

def is_library(path):
    """Whether a module's file is Python's own or an installed package's, of which the version says enough."""
    path = os.path.abspath(path)
    parts = path.split(os.sep)
    own = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"],
           *([os.path.dirname(torch.__file__)] if torch is not None else []))
    return "site-packages" in parts or "dist-packages" in parts or any(path.startswith(one + os.sep) for one in own)


def imported_files():
    """Of all modules in this process that are no library's."""
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(os.path.abspath(path) for path in paths if isinstance(path, str) and os.path.isfile(path)
                  and not is_library(path))


def expect_no_namesake(file):
    """Refuses a file that would get another's module where one of the same name is beside it."""
    folder = os.path.dirname(os.path.abspath(file))
    for name, module in list(sys.modules.items()):
        there = getattr(module, "__file__", None)
        if "." in name or not isinstance(there, str) or not os.path.isfile(there) or is_library(there):
            continue
        for beside in (os.path.join(folder, name + ".py"), os.path.join(folder, name, "__init__.py")):
            if os.path.isfile(beside) and not os.path.samefile(beside, there):
                raise Refused(f"{shown(file)}:1: {shown(beside)} cannot be imported, since {shown(there)} is {name} in this "
                              "process already: give one of them another name")


def compiled(source, file):
    zero = source.find(b"\0")
    if zero >= 0:
        raise Refused(f"{shown(file)}:{source.count(10, 0, zero) + 1}: it has a zero byte; expected text of Python in UTF-8")
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except (MemoryError, RecursionError):
        raise Refused(f"{shown(file)}:1: an expression is nested more deeply than Python compiles") from None
    except ValueError as error:
        raise Refused(f"{shown(file)}:1: it is no text of Python: {error}") from None


def package_of(file):
    """(folder that holds it, name) of the package whose file this is, as in ("/home/me", "kit.parts"); an empty name where
    no __init__.py is beside it."""
    folder, names = os.path.dirname(os.path.abspath(file)), []
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return folder, ".".join(names)


def imports_relatively(code):
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(code))


def load_package(file, folder, name):
    """Imports the package of a file that says `from . import`, from the folder that it is in and no other."""
    top = name.partition(".")[0]
    there = os.path.join(folder, top, "__init__.py")
    if top not in sys.modules:
        spec = importlib.util.spec_from_file_location(top, there, submodule_search_locations=[os.path.dirname(there)])
        sys.modules[top] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[top])
        except BaseException:
            del sys.modules[top]
            raise
    known = getattr(sys.modules[top], "__file__", None)
    if known is None or not os.path.samefile(known, there):
        raise Refused(f"{shown(file)}:1: its package {top} in {shown(os.path.dirname(there))} cannot be imported, since "
                      f"{known or 'a built-in module'} is {top} in this process already: give the folder another name")
    importlib.import_module(name)


def load_file(file):
    name = OWN_FILES + os.path.splitext(os.path.basename(file))[0] + f"_{abs(hash(file)):x}"
    if name in sys.modules:
        return sys.modules[name]
    expect_no_namesake(file)
    folder = os.path.dirname(os.path.abspath(file))
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file fla.py must not hide the library fla
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    try:
        with open(file, "rb") as stream:
            source = stream.read()
        # Not through the import system: its cache of compiled files knows times of whole seconds.
        code = compiled(source, file)
        holder, package = package_of(file)
        if package and imports_relatively(ast.parse(source, file)):
            load_package(file, holder, package)
            module.__package__ = package
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_module(name):
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise
        raise Unavailable(f"there is no module {error.name} in {interpreter()}: python3 -m pip install "
                          f"{error.name.split('.')[0]}, or correct the name") from None


def load(word):
    """(module, thing) of python:FILE.py:NAME or python:PACKAGE.MODULE:NAME."""
    target, _, name = word.partition(":")[2].rpartition(":")
    module = load_file(target) if target.endswith(".py") else load_module(target)
    thing = module
    for part in name.split("."):
        if not hasattr(thing, part):
            known = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
            file = getattr(module, "__file__", None)
            raise Refused(f"{shown(file) + ':1' if file else target}: there is no {name}{nearest(name, known)}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise Refused(f"{place_of_name(module, name)}: {name} is {type(thing).__name__}, which cannot be called; expected "
                      "a class, an object or a function")
    return module, thing


def place_of_name(module, name):
    """Where a file assigns `name`."""
    file = getattr(module, "__file__", None)
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if line.split("=")[0].strip() == name:
                    return f"{shown(file)}:{number}"
    except (OSError, TypeError):
        pass
    return f"{shown(file)}:1" if file else module.__name__


# ---- what it declares

class Declared:
    """A mechanism's attributes, checked."""

    def __init__(self, module, thing):
        self.module, self.thing = module, thing
        self.place = place(thing, module)

    def refuse(self, what):
        raise Refused(f"{self.place}: {what}")

    def get(self, name, kinds, what, default=None):
        value = hook(self.thing, name, self.place)
        # A class may have a method of the name.
        if value is NOT_THERE or value is None or inspect.isroutine(value) and callable not in kinds:
            return default
        if any(kind is callable and callable(value) or kind is not callable and isinstance(value, kind) for kind in kinds):
            return value
        self.refuse(f"its attribute {name} is {brief(value)}; expected {what}")

    def text(self, value, what):
        """The text, where it can be written and shown."""
        if len(value) > MOST_TEXT:
            self.refuse(f"{what} has {len(value)} characters; expected at most {MOST_TEXT}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            self.refuse(f"{what} has {brief(value[error.start])} at {error.start}, which is no character")
        return str(value)

    def number(self, value, what):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not finite(value):
            self.refuse(f"{what} is {brief(value)}; expected a finite number")
        return value

    def words(self, name, known):
        given = self.get(name, (list, tuple, set, dict), f"a list of {', '.join(known)}", [])
        words = [word for word in given if not isinstance(given, dict) or given[word]]
        for word in given:
            if word not in known:
                self.refuse(f"its attribute {name} has {brief(word)}, which is none{nearest(word, known)}")
        return words

    def numbers(self, name, known):
        given = self.get(name, (dict,), f"a dictionary of {', '.join(known)}", {})
        for word, number in given.items():
            if word not in known:
                self.refuse(f"its attribute {name} has {brief(word)}{nearest(word, known)}")
            self.number(number, f"its attribute {name}[{word!r}]")
        return given

    def roles(self):
        roles = dict(ROLES)
        for name, said in self.get("roles", (dict,), "a dictionary", {}).items():
            said = said if isinstance(said, dict) else {"source": said}
            source, width = said.get("source", "key_tokens"), said.get("width", "head_dim")
            if source not in ("query_tokens", "key_tokens"):
                self.refuse(f"its role {brief(name)} has the source {brief(source)}; expected query_tokens or key_tokens")
            whole = isinstance(width, int) and not isinstance(width, bool) and 0 < width <= MOST_WIDTH
            if width not in ("head_dim", "value_dim") and not whole:
                self.refuse(f"its role {brief(name)} has the width {brief(width)}; expected head_dim, value_dim or a number "
                            f"from 1 to {MOST_WIDTH}")
            roles[name] = (source, str(width))
        return roles


def finite(number):
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def hook(thing, name, where):
    """An attribute of a mechanism; NOT_THERE where there is none. A function that stands in a class's body, as in
    `cost = cost`, is that function, not a method, unless its first parameter is self."""
    raw = inspect.getattr_static(thing, name, NOT_THERE)
    is_class = isinstance(thing, type)
    if not isinstance(raw, types.FunctionType) or not is_class and name in getattr(thing, "__dict__", {}):
        return getattr(thing, name, NOT_THERE)
    if next(iter(inspect.signature(raw).parameters), None) != "self":
        return raw
    if is_class and name in HOOKS:
        raise Refused(f"{where}: its {name} takes self, and it is asked before there is an object: leave self out, or make it "
                      "a @staticmethod")
    return getattr(thing, name)


def answer(function, name, where, known):
    """What a hook returns that may take values of `known` by their names."""
    given = {}
    for one in parameters_of(function, False, where):
        if one.name in known and one.kind is not one.POSITIONAL_ONLY:
            given[one.name] = known[one.name]
        elif one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise Refused(f"{where}: its {name} wants {one.name}; expected a function " +
                          (f"of {', '.join(known)}, by name" if known else "without arguments"))
    return function(**given)


def reason_of_absence(module, thing):
    asked = hook(thing, "unavailable", place(thing, module))
    if asked is NOT_THERE or asked is None:
        asked = getattr(module, "unavailable", None)
    if asked is None:
        return None
    where = place(asked, module) if callable(asked) else place(thing, module)
    if not callable(asked):
        raise Refused(f"{where}: unavailable is {brief(asked)}; expected a function that returns a reason or None")
    reason = answer(asked, "unavailable", where, {})
    if reason is not None and not isinstance(reason, str):
        raise Refused(f"{where}: unavailable returned {brief(reason)}; expected a reason or None")
    return f"{where}: {reason}" if reason else None


def method_of(thing, name):
    """A method, and whether the first of its parameters is self."""
    raw = inspect.getattr_static(thing, name, None)
    alone = not isinstance(thing, type) or isinstance(raw, (staticmethod, classmethod))
    return getattr(thing, name), not alone


def body_of(thing):
    """The function whose parameters are the inputs, and whether the first of them is self."""
    of = thing if isinstance(thing, type) else type(thing)
    if issubclass(of, torch.nn.Module):
        return method_of(thing, "forward")
    return method_of(thing, "__call__") if isinstance(thing, type) else (thing, False)


def parameters_of(function, bound, where):
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        raise Refused(f"{where}: its parameters cannot be read: wrap it in a function of Python") from None
    try:  # annotations may be text, and name what is there for a type checker alone
        signature = inspect.signature(function, eval_str=True)
    except Exception:
        pass
    parameters = list(signature.parameters.values())
    return parameters[1:] if bound else parameters


def option_type(parameter):
    """integer, number, boolean or text; None where the default is no option."""
    value = parameter.default
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        kind = parameter.annotation
        kind = kind.__origin__ if typing.get_origin(kind) is typing.Annotated else kind
        return "integer" if isinstance(value, int) and kind not in (float, "float") else "number"
    return "text" if isinstance(value, str) else None


def limits_of(declared, parameter, kind):
    """What Annotated[float, (0, 1)] and Literal["a", "b"] say of an option; None in a pair is no limit."""
    what, value = f"its option {parameter.name}", parameter.default
    if typing.get_origin(parameter.annotation) is typing.Literal:
        words = typing.get_args(parameter.annotation)
        if kind != "text" or value not in words or not all(isinstance(word, str) for word in words):
            declared.refuse(f"{what} is Literal{brief(list(words))} with the default {brief(value)}; expected texts, the "
                            "default among them")
        return {"choices": [declared.text(word, f"a choice of {what}") for word in words]}
    if typing.get_origin(parameter.annotation) is not typing.Annotated:
        return {}
    pairs = [one for one in parameter.annotation.__metadata__ if isinstance(one, (tuple, list))]
    if not pairs:
        return {}
    pair = pairs[0]
    if kind not in ("integer", "number") or len(pair) != 2:
        declared.refuse(f"{what} has the range {brief(pair)}; expected (least, greatest) of a number, None where there is none")
    found = {name: declared.number(one, f"a limit of {what}") for name, one in zip(("minimum", "maximum"), pair)
             if one is not None}
    if not found.get("minimum", value) <= value <= found.get("maximum", value):
        declared.refuse(f"{what} has the default {brief(value)}, which is not in its range {brief(pair)}")
    return found


def plan_of(function, bound, roles, where, of_step=False):
    """[(parameter, what it gets, default)] of a call."""
    plan = []
    for parameter in parameters_of(function, bound, where):
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in roles:
            wants = "role"
        elif name in FIXED:
            wants = "size"
        elif name in ("length", "key_length", "batch") and option_type(parameter):
            raise Refused(f"{where}: its parameter {name} has the name of a size that each call may have another of: take it "
                          "from the shape of an input, or give the option another name")
        elif name in ("causal", "pattern", "key_mask") or of_step and name in ("state", "position"):
            wants = name
        elif parameter.default is parameter.empty:
            raise Refused(f"{where}: its parameter {name} has no default and is none of {', '.join(roles)}, causal, pattern, "
                          "key_mask: give it a default, or describe it in roles")
        elif option_type(parameter):
            wants = "option"
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise Refused(f"{where}: its parameter {name} cannot be given by name: wrap it in a function")
        plan.append((name, wants, None if parameter.default is parameter.empty else parameter.default))
    if not any(wants == "role" and roles[name][0] == "query_tokens" for name, wants, _ in plan):
        raise Refused(f"{where}: it takes no parameter query; expected query, key and value by these names, or roles")
    if of_step and not any(wants == "state" for _, wants, _ in plan):
        raise Refused(f"{where}: its step takes no parameter state")
    return plan


def constructor_of(thing, where):
    """[(parameter, size or option, default)] of a class's constructor."""
    plan = []
    for parameter in parameters_of(thing.__init__, True, where):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in SIZES:
            plan.append((parameter.name, "size", None))
        elif parameter.default is parameter.empty:
            raise Refused(f"{where}: its constructor wants {parameter.name}; it is given {', '.join(SIZES)} where it asks "
                          "for them by name, and everything else needs a default")
        elif option_type(parameter):
            plan.append((parameter.name, "option", parameter.default))
    return plan


def checked_default(declared, name, value):
    """The default of an option, where it can be told apart from others."""
    what = f"the default of its option {name}"
    if isinstance(value, str):
        return declared.text(value, what)
    if isinstance(value, int) and abs(value) > MOST_INTEGER:
        declared.refuse(f"{what} is {brief(value)}; expected a number of 64 bits")
    return value if isinstance(value, bool) else declared.number(value, what)


def has_state(thing, where):
    have = [name for name in ("step", "empty_state") if callable(getattr(thing, name, None))]
    if len(have) == 1:
        raise Refused(f"{where}: it has {have[0]} alone; decoding needs step and empty_state")
    return bool(have)


def options_of(declared, thing, body, bound, roles):
    meanings = declared.get("options", (dict,), "a dictionary of meanings", {})
    sources = parameters_of(body, bound, declared.place)
    if isinstance(thing, type):
        sources = parameters_of(thing.__init__, True, declared.place) + sources
    options = {}
    for parameter in sources:
        kind = option_type(parameter)
        if kind is None or parameter.name in roles or parameter.name in SIZES + ("key_mask", "state", "position"):
            continue
        name = parameter.name
        meaning = declared.text(str(meanings.get(name, "of the Python mechanism")), f"the meaning of its option {name}")
        option = {"name": name, "type": kind, "default": checked_default(declared, name, parameter.default),
                  "meaning": meaning, **limits_of(declared, parameter, kind)}
        if options.setdefault(parameter.name, option)["type"] != kind:
            declared.refuse(f"its option {parameter.name} is a {kind} here and a {options[parameter.name]['type']} there")
    for name in meanings:
        if name not in options:
            declared.refuse(f"its attribute options has {brief(name)}, which is no parameter with a default{nearest(name, options)}")
    return list(options.values())


def title_of(declared, word):
    thing = declared.thing
    inherited = isinstance(thing, type) and "__doc__" not in vars(thing)
    first = "" if inherited else (inspect.getdoc(thing) or "").strip().partition("\n")[0][:MOST_TEXT]
    target, _, name = word.partition(":")[2].rpartition(":")
    title = declared.get("title", (str,), "a text", first or f"{shown(target) if target.endswith('.py') else target}:{name}")
    return declared.text(title, "its title")


def reference_of(declared, roles):
    """(kind, name): own, python, or a mechanism of ours."""
    reference = declared.get("reference", (str, callable), "a function, a class or a mechanism's name")
    if reference is None:
        return "own"
    if isinstance(reference, str):
        return declared.text(reference, "its reference")
    where = place(reference, declared.module)
    body, bound = body_of(reference)
    plan_of(body, bound, roles, where)
    if isinstance(reference, type):
        constructor_of(reference, where)
    return "python"


def describe(word):
    """What `word` declares, as JSON."""
    module, thing = load(word)
    absence = reason_of_absence(module, thing)
    if absence:
        raise Unavailable(absence)
    declared = Declared(module, thing)
    roles = declared.roles()
    body, bound = body_of(thing)
    plan = plan_of(body, bound, roles, declared.place)
    constructor = constructor_of(thing, declared.place) if isinstance(thing, type) else []
    patterns = declared.words("patterns", PATTERNS)
    asked = [name for name, _, _ in plan] + [name for name, _, _ in constructor]
    if not patterns and "causal" not in asked and "pattern" not in asked:
        declared.refuse("it takes neither causal nor pattern, so its attribute patterns must say what it computes")
    state = has_state(thing, declared.place)
    steps = plan_of(*method_of(thing, "step"), roles, place(thing.step, module), of_step=True) if state else []
    cost = declared.get("cost", (callable,), "a function")
    return json.dumps({
        "place": declared.place,
        "title": title_of(declared, word),
        "citation": declared.text(declared.get("citation", (str,), "a text", ""), "its citation"),
        "formula": declared.text(declared.get("formula", (str,), "a text", ""), "its formula"),
        "reference": reference_of(declared, roles),
        "patterns": [pattern for pattern in PATTERNS if pattern in patterns] or ["bidirectional", "causal"],
        "options": options_of(declared, thing, body, bound, roles),
        "roles": [{"name": name, "source": roles[name][0], "width": roles[name][1]}
                  for name, wants, _ in plan if wants == "role"],
        "claims": declared.words("claims", CLAIMS),
        "growth": declared.numbers("growth", GROWTH),
        "dtypes": declared.words("dtypes", DTYPES),
        "devices": declared.words("devices", ("cpu", "cuda")),
        "differentiable": bool(declared.get("differentiable", (bool,), "True or False", True)),
        "shares_heads": bool(declared.get("shares_heads", (bool,), "True or False", False)),
        "key_mask": any(wants == "key_mask" for _, wants, _ in plan),
        "step_key_mask": any(wants == "key_mask" for _, wants, _ in steps),
        "state": state,
        "cost": cost is not None,
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "packages": packages_of(declared, word),
        "files": files_of(module, word),
    }, allow_nan=False)


# ---- where it came from

def distribution(name):
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def imported_packages(module, word):
    """The top names of what a file imports, and of a module that is named itself."""
    names = set()
    if not word.partition(":")[2].rpartition(":")[0].endswith(".py"):
        names.add(module.__name__.partition(".")[0])
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and not name.startswith(OWN_FILES):
            names.add(name.partition(".")[0])
    return {name for name in names if name not in sys.stdlib_module_names}


def packages_of(declared, word):
    """Versions by distribution."""
    wanted = declared.get("packages", (list, tuple, set), "a list of distributions", [])
    found = {name: one.version for name, one in ((str(name), distribution(str(name))) for name in wanted) if one}
    found["torch"] = str(torch.__version__)
    owners = None
    for name in imported_packages(declared.module, word):
        if name in found:
            continue
        one = distribution(name)
        if one is None:
            owners = importlib.metadata.packages_distributions() if owners is None else owners
            one = distribution(owners[name][0]) if owners.get(name) else None
        if one is not None:
            found[one.metadata["Name"]] = one.version
    return dict(sorted(found.items()))


def files_of(module, word):
    """The files on which the answer depends: all that were imported beside libraries, and one of each package."""
    files = set(imported_files())
    for name in imported_packages(module, word) | {"torch"}:
        top = sys.modules.get(name)
        path = getattr(top, "__file__", None)
        version = os.path.join(os.path.dirname(path), "version.py") if path else ""
        one = distribution(name)
        metadata = getattr(one, "_path", None)
        if metadata is not None and os.path.exists(os.path.join(str(metadata), "METADATA")):
            files.add(os.path.join(str(metadata), "METADATA"))
        elif version and os.path.exists(version):
            files.add(version)
        elif path:
            files.add(os.path.abspath(path))
    return sorted(files)


# ---- making and calling it

def numbers_of_cost(word, sizes):
    module, thing = load(word)
    cost = hook(thing, "cost", place(thing, module))
    where = place(cost, module)
    found = answer(cost, "cost", where, sizes)
    if not isinstance(found, dict):
        raise Refused(f"{where}: cost returned {brief(found)}; expected a dictionary of {', '.join(COSTS)}")
    for name, number in found.items():
        if name not in COSTS:
            raise Refused(f"{where}: cost returned {brief(name)}{nearest(name, COSTS)}")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not finite(number):
            raise Refused(f"{where}: cost returned {brief(number)} for {name}; expected a finite number")
    return {name: float(number) for name, number in found.items()}


def plain(name):
    """A tensor's name as a mechanism of ours may have it."""
    return name.replace(".", "_")


class Made:
    """A mechanism, or the reference of one, made for sizes and options."""

    def __init__(self, word, which, sizes, options):
        self.module, thing = load(word)
        self.roles = Declared(self.module, thing).roles()
        if which == "reference":
            thing = hook(thing, "reference", place(thing, self.module))
        self.thing, self.sizes, self.options = thing, sizes, options
        self.place = place(thing, self.module)
        self.name = getattr(thing, "__name__", type(thing).__name__)
        self.dtype = getattr(torch, sizes["dtype"])
        self.device = torch.device(sizes["device"])
        self.object = self.constructed(0) if isinstance(thing, type) else thing
        if isinstance(self.object, torch.nn.Module):
            # An object's own tensors must not change their dtype under others that use it.
            self.object = self.object if isinstance(thing, type) else copy.deepcopy(self.object)
            self.refuse_unfit_tensors()
            self.object.to(device=self.device, dtype=self.dtype)
            self.object.eval()
        body, _ = body_of(self.object)
        self.call, self.call_plan = self.object, self.filled(plan_of(body, False, self.roles, self.place))
        self.query = next(name for name, wants, _ in self.call_plan
                          if wants == "role" and self.roles[name][0] == "query_tokens")
        self.step = self.step_plan = None
        if callable(getattr(self.object, "step", None)):
            self.step = self.object.step
            self.step_plan = self.filled(plan_of(self.step, False, self.roles, self.place, of_step=True))

    def value(self, name, default):
        return self.options.get(name, default)

    def filled(self, plan):
        """The plan with the constants in it: None where each call has its own."""
        constant = {"option": self.value, "size": lambda name, default: self.sizes[name],
                    "causal": lambda name, default: self.sizes[name], "pattern": lambda name, default: self.sizes[name]}
        return [(name, wants, constant[wants](name, default) if wants in constant else None)
                for name, wants, default in plan]

    def refuse_unfit_tensors(self):
        """Those that the mechanism's dtype would change, or whose names it cannot tell apart."""
        names = {}
        for name, tensor in [*self.object.named_parameters(), *self.object.named_buffers()]:
            if tensor.is_complex():
                raise Refused(f"{self.place}: its tensor {name} is complex, and the cell's dtype would make it real: keep it "
                              "as torch.view_as_real gives it, and use torch.view_as_complex in the call")
            other = names.setdefault(plain(name), name)
            if other != name:
                raise Refused(f"{self.place}: its tensors {other} and {name} would both be called {plain(name)}: rename one")

    def constructed(self, seed):
        given = {}
        for name, wants, default in constructor_of(self.thing, self.place):
            given[name] = self.sizes[name] if wants == "size" else self.value(name, default)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            with torch.enable_grad():
                return self.thing(**given)

    def tensors(self):
        """([parameters], [buffers]) with their names."""
        if not isinstance(self.object, torch.nn.Module):
            return [], []
        return tuple([(plain(name), tensor) for name, tensor in named]
                     for named in (self.object.named_parameters(), self.object.named_buffers()))

    def draw(self, seed):
        """Parameters and buffers from the seed alone, the same numbers in every dtype."""
        if not isinstance(self.thing, type) or not isinstance(self.object, torch.nn.Module):
            return
        fresh = self.constructed(seed)
        with torch.no_grad():
            for mine, theirs in ((self.object.named_parameters(), dict(fresh.named_parameters())),
                                 (self.object.named_buffers(), dict(fresh.named_buffers()))):
                for name, tensor in mine:
                    tensor.copy_(theirs[name])

    def empty_state(self, batch, capacity, dtype, device):
        known = dict(self.sizes, batch=batch, capacity=capacity, dtype=getattr(torch, dtype), device=torch.device(device))
        where = place(self.object.empty_state, self.module)
        given = {}
        for parameter in parameters_of(self.object.empty_state, False, where):
            several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if parameter.name in OF_STATE:
                given[parameter.name] = known[parameter.name]
            elif parameter.default is parameter.empty and not several:
                raise Refused(f"{where}: empty_state wants {parameter.name}; it may take {', '.join(OF_STATE)}")
        state = self.object.empty_state(**given)
        if not isinstance(state, dict) or not all(isinstance(one, torch.Tensor) for one in state.values()):
            raise Refused(f"{where}: empty_state returned {type(state).__name__}; expected a dictionary of tensors by name")
        return state


def empty_call(plan):
    """A function of the same parameters that does nothing."""
    names = ", ".join(f"{name}=None" for name, _, _ in plan)
    first = next(name for name, wants, _ in plan if wants == "role")
    space = {}
    exec(f"def empty({names}): return {first}", space)
    return space["empty"]
