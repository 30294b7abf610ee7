"""NumPy files, as `attnbench apply` reads them."""

import math
import struct

import mutate
from kind import Kind
from oracle import Case

TYPES = {"<f8": ("d", 8), "<f4": ("f", 4), "|b1": ("?", 1), "|u1": ("B", 1)}
OTHER_TYPES = [">f8", "<f2", "<c16", "<i8", "|O", "<U8", "f8", "<f16", "=f8", "<V8", "", "x" * 500,
               "\x1b[31m"]
MECHANISMS = {"softmax": (["query", "key", "value"], ["--pattern", "causal"]),
              "linear": (["query", "key", "value"], ["--pattern", "bidirectional"]),
              "latte": (["query_logits", "key_logits", "value"], ["--pattern", "causal"])}
SIZES = [0, 1, 2, 3, 7, -1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**64, 10**30]


def header_bytes(text, version=(1, 0), length=None):
    data = text.encode("utf-8", "surrogatepass")
    pad = -(10 + len(data) + 1) % 64
    data += b" " * pad + b"\n"
    width = "<H" if version[0] == 1 else "<I"
    said = (len(data) if length is None else length) % (1 << (16 if width == "<H" else 32))
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, said) + data


def dictionary(descr, order, shape):
    sizes = "(" + "".join(f"{size}, " for size in shape) + ")"
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {sizes}, }}"


def body(descr, shape, number=0.0):
    code, _ = TYPES[descr]
    count = math.prod(shape)
    values = [math.sin(i + number) for i in range(count)] if code in "df" else [1] * count
    return struct.pack(f"<{count}{code}", *values)


def array(descr, shape, number=0.0):
    return header_bytes(dictionary(descr, False, shape)) + body(descr, shape, number)


def changed_array(random, descr, shape):
    """The bytes of a file that is such an array after one change or more."""
    kind = random.randrange(10)
    data = bytearray(array(descr, shape))
    if kind == 0:
        data = bytearray(header_bytes(dictionary(random.choice(OTHER_TYPES), False, shape)))
        data += body(descr, shape)
    elif kind == 1:
        sizes = list(shape)
        for _ in range(random.choice([1, 1, 2])):
            sizes[random.randrange(len(sizes))] = random.choice(SIZES)
        data = bytearray(header_bytes(dictionary(descr, False, sizes)) + body(descr, shape))
    elif kind == 2:
        other = random.choice(
            [shape[:-1], shape + [1], [], [1] * 40, [math.prod(shape)], shape[::-1],
             [2] + shape[1:], shape[:-1] + [shape[-1] + 1]]
        )
        data = bytearray(array(descr, other))
    elif kind == 3:
        order = random.choice([True, "true", 1, None, "Fals", "'x'", "(" * 20000])
        data = bytearray(header_bytes(dictionary(descr, order, shape)) + body(descr, shape))
    elif kind == 4:
        text = dictionary(descr, False, shape)
        for _ in range(random.choice([1, 2, 4])):
            slip = bytearray(text.encode())
            mutate.change_bytes(random, slip)
            text = slip.decode("latin-1")
        data = bytearray(header_bytes(text) + body(descr, shape))
    elif kind == 5:
        version = random.choice([(2, 0), (3, 0), (0, 0), (9, 9), (1, 1)])
        length = random.choice([None, 0, 1, 65535, 2**32 - 1, 118])
        data = bytearray(
            header_bytes(dictionary(descr, False, shape), version, length) + body(descr, shape)
        )
    elif kind == 6:
        special = random.choice([math.nan, math.inf, -math.inf, 1e308, 5e-324, 1e30])
        if descr in ("<f8", "<f4"):
            code, size = TYPES[descr]
            at = len(data) - size * (1 + random.randrange(math.prod(shape)))
            limit = special if code == "d" or not math.isfinite(special) else 3e38
            data[at : at + size] = struct.pack("<" + code, limit)
    elif kind == 7:
        text = dictionary(descr, False, shape)[:-1]
        more = random.choice(
            ["'extra': 1, }", "'descr': '<f8', }", "\x1b[2J}", "'x': " + "(" * 5000 + "}",
             " " * 60000 + "}", "}}", ""]
        )
        data = bytearray(header_bytes(text + more) + body(descr, shape))
    else:
        for _ in range(random.choice([1, 1, 3])):
            mutate.change_bytes(random, data)
    return bytes(data)


class Arrays(Kind):
    """`apply` on tiny arrays, one of them changed, sometimes with a mask or a gradient."""

    def prepare(self):
        self.start("list", "mechanisms")

    def case(self, random, folder):
        mechanism = random.choice(list(MECHANISMS))
        roles, flags = MECHANISMS[mechanism]
        descr = random.choice(["<f8", "<f4"])
        shape = [1, 2, 5, 4]
        given = {role: (descr, shape) for role in roles}
        if random.random() < 0.3:
            given["mask"] = (random.choice(["|b1", "|u1"]), [1, 5])
        if random.random() < 0.3:
            given["gradient"] = (descr, shape)
        bad = random.choice(list(given))
        arguments = ["apply", mechanism, *flags, "--out", "out", "--threads", "1"]
        for number, (role, (kind, sizes)) in enumerate(given.items()):
            file = folder / f"{role}.npy"
            file.write_bytes(
                changed_array(random, kind, sizes) if role == bad else array(kind, sizes, number)
            )
            if role in ("mask", "gradient", "query", "key", "value"):
                arguments += ["--" + role, file.name]
            else:
                arguments += ["--role", f"{role}={file.name}"]
        if random.random() < 0.03:
            mutate.put_no_file(random, folder / f"{bad}.npy")
        return Case(arguments, files=[f"{role}.npy" for role in given])
