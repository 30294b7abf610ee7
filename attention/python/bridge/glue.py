"""The half of the bridge that is written in Python: finds what a word names, reads what it declares, makes it.

Runs in the process of one cell. Every complaint begins with a file and a line of Python.
"""

import copy
import difflib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import sys
import traceback
import types

torch = None  # start imports it

ROLES = {"query": ("query_tokens", "head_dim"), "key": ("key_tokens", "head_dim"), "value": ("key_tokens", "value_dim")}
SIZES = ("heads", "kv_heads", "head_dim", "value_dim", "length", "key_length", "causal", "pattern")
OF_STATE = ("batch", "heads", "head_dim", "value_dim", "capacity", "dtype", "device")
PATTERNS = ("bidirectional", "causal", "cross")
CLAIMS = ("rows_sum_to_one", "linear_in_value", "permutation_equivariant", "last_row_agrees", "heads_independent")
GROWTH = ("time_in_length", "workspace_in_length", "time_in_head_dim")
DTYPES = ("float32", "float64", "bfloat16", "float16")
COSTS = ("model_flops", "executed_flops", "minimal_bytes", "exponentials", "workspace_bytes", "saved_bytes", "state_bytes")
NOT_THERE = object()
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
        return readable(str(error)), "", "unsupported" if isinstance(error, Unavailable) else "error"
    text = first_line(error)
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename != __file__]
    own = [frame for frame in frames if is_own(frame.filename)]
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{shown(error.filename)}:{error.lineno}: "
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
    whole = "".join(traceback.format_exception(type(error), error, trace))
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

def load_file(file):
    name = OWN_FILES + os.path.splitext(os.path.basename(file))[0] + f"_{abs(hash(file)):x}"
    if name in sys.modules:
        return sys.modules[name]
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
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
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
        value = getattr(self.thing, name, NOT_THERE)
        # A class may have a method of the name.
        if value is NOT_THERE or value is None or inspect.isroutine(value) and callable not in kinds:
            return default
        if any(kind is callable and callable(value) or kind is not callable and isinstance(value, kind) for kind in kinds):
            return value
        self.refuse(f"its attribute {name} is {value!r}; expected {what}")

    def words(self, name, known):
        given = self.get(name, (list, tuple, set, dict), f"a list of {', '.join(known)}", [])
        words = [word for word in given if not isinstance(given, dict) or given[word]]
        for word in given:
            if word not in known:
                self.refuse(f"its attribute {name} has {word!r}, which is none{nearest(word, known)}")
        return words

    def numbers(self, name, known):
        given = self.get(name, (dict,), f"a dictionary of {', '.join(known)}", {})
        for word, number in given.items():
            if word not in known:
                self.refuse(f"its attribute {name} has {word!r}{nearest(word, known)}")
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                self.refuse(f"its attribute {name}[{word!r}] is {number!r}; expected a number")
        return given

    def roles(self):
        roles = dict(ROLES)
        for name, said in self.get("roles", (dict,), "a dictionary", {}).items():
            said = said if isinstance(said, dict) else {"source": said}
            source, width = said.get("source", "key_tokens"), said.get("width", "head_dim")
            if source not in ("query_tokens", "key_tokens"):
                self.refuse(f"its role {name} has the source {source!r}; expected query_tokens or key_tokens")
            whole = isinstance(width, int) and not isinstance(width, bool) and width > 0
            if width not in ("head_dim", "value_dim") and not whole:
                self.refuse(f"its role {name} has the width {width!r}; expected head_dim, value_dim or a number")
            roles[name] = (source, str(width))
        return roles


def reason_of_absence(module, thing):
    asked = getattr(thing, "unavailable", None) or getattr(module, "unavailable", None)
    if asked is None:
        return None
    where = place(asked, module)
    if not callable(asked):
        raise Refused(f"{where}: unavailable is {asked!r}; expected a function that returns a reason or None")
    reason = asked()
    if reason is not None and not isinstance(reason, str):
        raise Refused(f"{where}: unavailable returned {reason!r}; expected a reason or None")
    return f"{where}: {reason}" if reason else None


def body_of(thing):
    """The function whose parameters are the inputs, and whether the first of them is self."""
    if isinstance(thing, type):
        return (thing.forward if issubclass(thing, torch.nn.Module) else thing.__call__), True
    if isinstance(thing, torch.nn.Module):
        return thing.forward, False
    return thing, False


def parameters_of(function, bound, where):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        raise Refused(f"{where}: its parameters cannot be read: wrap it in a function of Python") from None
    return parameters[1:] if bound else parameters


def option_type(parameter):
    """integer, number, boolean or text; None where the default is no option."""
    value = parameter.default
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        whole = isinstance(value, int) and parameter.annotation not in (float, "float")
        return "integer" if whole else "number"
    return "text" if isinstance(value, str) else None


def plan_of(function, bound, roles, where, of_step=False):
    """[(parameter, what it gets, default)] of a call."""
    plan = []
    for parameter in parameters_of(function, bound, where):
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in roles:
            wants = "role"
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
        meaning = str(meanings.get(parameter.name, "of the Python mechanism"))
        option = {"name": parameter.name, "type": kind, "default": parameter.default, "meaning": meaning}
        if options.setdefault(parameter.name, option)["type"] != kind:
            declared.refuse(f"its option {parameter.name} is a {kind} here and a {options[parameter.name]['type']} there")
    for name in meanings:
        if name not in options:
            declared.refuse(f"its attribute options has {name!r}, which is no parameter with a default{nearest(name, options)}")
    return list(options.values())


def title_of(declared, word):
    thing = declared.thing
    inherited = isinstance(thing, type) and "__doc__" not in vars(thing)
    first = "" if inherited else (inspect.getdoc(thing) or "").strip().partition("\n")[0]
    target, _, name = word.partition(":")[2].rpartition(":")
    return declared.get("title", (str,), "a text", first or f"{shown(target) if target.endswith('.py') else target}:{name}")


def reference_of(declared, roles):
    """(kind, name): own, python, or a mechanism of ours."""
    reference = declared.get("reference", (str, callable), "a function, a class or a mechanism's name")
    if reference is None:
        return "own"
    if isinstance(reference, str):
        return reference
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
    steps = plan_of(thing.step, bound, roles, place(thing.step, module), of_step=True) if state else []
    cost = declared.get("cost", (callable,), "a function")
    return json.dumps({
        "place": declared.place,
        "title": title_of(declared, word),
        "citation": declared.get("citation", (str,), "a text", ""),
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
    })


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
    """The files on which the answer depends: its own, those beside it that it imports, and one of each package."""
    file = getattr(module, "__file__", None)
    files = {os.path.abspath(file)} if file else set()
    folder = os.path.dirname(os.path.abspath(file)) if file else ""
    own = word.partition(":")[2].rpartition(":")[0].endswith(".py")
    for other in list(sys.modules.values()) if own else []:
        path = getattr(other, "__file__", None)
        if path and "site-packages" not in path and "dist-packages" not in path \
                and os.path.abspath(path).startswith(folder + os.sep) and not is_own(path):
            files.add(os.path.abspath(path))
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
    where = place(thing.cost, module)
    wanted = parameters_of(thing.cost, False, where)
    found = thing.cost(**{one.name: sizes[one.name] for one in wanted if one.name in sizes})
    if not isinstance(found, dict):
        raise Refused(f"{where}: cost returned {found!r}; expected a dictionary of {', '.join(COSTS)}")
    for name, number in found.items():
        if name not in COSTS:
            raise Refused(f"{where}: cost returned {name!r}{nearest(name, COSTS)}")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise Refused(f"{where}: cost returned {number!r} for {name}; expected a number")
    return {name: float(number) for name, number in found.items()}


class Made:
    """A mechanism, or the reference of one, made for sizes and options."""

    def __init__(self, word, which, sizes, options):
        self.module, thing = load(word)
        self.roles = Declared(self.module, thing).roles()
        if which == "reference":
            thing = thing.reference
        self.thing, self.sizes, self.options = thing, sizes, options
        self.place = place(thing, self.module)
        self.name = getattr(thing, "__name__", type(thing).__name__)
        self.dtype = getattr(torch, sizes["dtype"])
        self.device = torch.device(sizes["device"])
        self.object = self.constructed(0) if isinstance(thing, type) else thing
        if isinstance(self.object, torch.nn.Module):
            # An object's own tensors must not change their dtype under others that use it.
            self.object = self.object if isinstance(thing, type) else copy.deepcopy(self.object)
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
        constants = {"causal": self.sizes["causal"], "pattern": self.sizes["pattern"]}
        return [(name, wants, self.value(name, default) if wants == "option" else constants.get(wants))
                for name, wants, default in plan]

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
        plain = lambda named: [(name.replace(".", "_"), tensor) for name, tensor in named]
        return plain(self.object.named_parameters()), plain(self.object.named_buffers())

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
