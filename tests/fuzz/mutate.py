"""What is done to inputs: to bytes, to text, and to JSON as a tree."""

import copy
import json
import os

WORDS = ["", " ", "x", "latte", "softmax", "causal", "length/2", "length/0", "width", "auto", "cpu",
         "cuda:99", "kernel", "nan", "-1", "1e999", "../../../etc/passwd", "/dev/zero", "~", "%s%n",
         "python:../../x.py:Near", "a" * 350, "b" * 5000, "ж" * 300, "\u202eabc",
         "\x1b[31mred\x1b[0m", "\x07", "\x00", "a\nb", "\t", "\x7f", "\x9b31m", "\U0001f600" * 30,
         "<script>", "&amp;", "(a|a)*c", "((((((((((a", "[", "1..9223372036854775807", "true",
         "null", "{}"]
NUMBERS = [0, -1, 1, 2, 3, 7, 0.5, -0.0, 1e-320, 1e308, 1e16, 2**31 - 1, 2**31, 2**32, 2**53 + 1,
           2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 68719476736, 1000000, 65537, 1e-12, -5,
           100000]
CONSTANTS = [None, True, False, [], {}, [[]], [None], {"": None}, {"left": 1, "right": 0}]


def any_value(random):
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(WORDS)
    if kind == 1:
        return random.choice(NUMBERS)
    if kind == 2:
        return copy.deepcopy(random.choice(CONSTANTS))
    if kind == 3:
        return [any_value(random) for _ in range(random.randrange(4))]
    if kind == 4:
        return {random.choice(WORDS): any_value(random) for _ in range(random.randrange(3))}
    return random.choice(WORDS) * random.choice([1, 2, 20])


class Nested:
    """A value so deep that no recursion should follow it; written as text, since json would not."""

    def __init__(self, depth, opening="[", closing="]"):
        self.text = opening * depth + "1" * (opening == '{"a":') + closing * depth


def places(tree, at=()):
    """Paths of all values below the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield at + (key,)
        if isinstance(value, (dict, list)):
            yield from places(value, at + (key,))


def parent_of(tree, path):
    for key in path[:-1]:
        tree = tree[key]
    return tree


def some_place(random, tree):
    """One path, each depth as likely as another: trees are broad below."""
    by_depth = {}
    for path in places(tree):
        by_depth.setdefault(len(path), []).append(path)
    if not by_depth:
        return None
    return random.choice(by_depth[random.choice(sorted(by_depth))])


def nearly(random, word):
    """A word as a slip of the hand makes it."""
    if not word:
        return "x"
    at = random.randrange(len(word))
    return random.choice(
        [word[:at] + word[at + 1 :], word[:at] + word[at] * 2 + word[at + 1 :], word.upper(),
         word + " ", word[:at] + "\u0430" + word[at + 1 :]]
    )


def bend(random, value):
    """A value like `value`, and yet another."""
    if isinstance(value, bool) or value is None:
        return any_value(random)
    if isinstance(value, (int, float)) and random.random() < 0.7:
        return random.choice([random.choice(NUMBERS), -value, value + 1, str(value), [value]])
    if isinstance(value, str) and random.random() < 0.7:
        return random.choice([nearly(random, value), random.choice(WORDS), [value],
                              value * random.choice([20, 400, 10000])])
    if isinstance(value, list) and value and random.random() < 0.7:
        return random.choice(
            [value * 2, value[:1], value + [any_value(random)], value[::-1], value[0]]
        )
    return any_value(random)


def change_tree(random, tree):
    """One change in place; the root itself is left an object."""
    path = some_place(random, tree)
    if path is None:
        return
    above, key = parent_of(tree, path), path[-1]
    kind = random.randrange(9)
    if kind == 0:
        del above[key]
    elif kind == 1:
        other = some_place(random, tree)
        above[key] = copy.deepcopy(parent_of(tree, other)[other[-1]])
    elif kind == 2 and isinstance(above, dict):
        above[random.choice([nearly(random, key), random.choice(WORDS)])] = above.pop(key)
    elif kind == 3 and isinstance(above, dict):
        above[random.choice(WORDS)] = any_value(random)
    elif kind == 4:
        above[key] = any_value(random)
    elif kind == 5 and random.random() < 0.1:
        above[key] = Nested(random.choice([100, 5000, 20000, 100000]),
                            *random.choice([("[", "]"), ('{"a":', "}")]))
    elif kind == 6 and isinstance(above, list):
        above.insert(random.randrange(len(above) + 1), copy.deepcopy(above[key]))
    else:
        above[key] = bend(random, above[key])


def text_of(tree):
    """JSON, in which a surrogate of ours becomes an escape and a Nested its text."""
    nested = []

    def plain(value):
        nested.append(value.text)
        return f"@nested {len(nested) - 1}@"

    text = json.dumps(tree, indent=1, default=plain)
    for i, inside in enumerate(nested):
        text = text.replace(f'"@nested {i}@"', inside)
    return text


def change_text(random, text):
    """Bytes of a text, one slip away from it."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(random.choice([1, 1, 2, 5])):
        change_bytes(random, data)
    return bytes(data)


def change_bytes(random, data):
    """One change in place."""
    if not data:
        data += b"\x00"
        return
    at = random.randrange(len(data))
    kind = random.randrange(8)
    if kind == 0:
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        data[at] = random.randrange(256)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + random.choice([1, 2, 16, 200])]
    elif kind == 4:
        data[at:at] = bytes(random.randrange(256) for _ in range(random.choice([1, 4, 64])))
    elif kind == 5:
        data[at:at] = data[at : at + random.choice([1, 8, 100])]
    elif kind == 6:
        data[at:at] = random.choice(
            [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"\x1b[2J",
             b"\xef\xbb\xbf", b"\\u0000", b"\\ud800", b"\n", b"1e999"]
        )
    else:
        count = random.choice([1, 8, 64])
        data[at : at + count] = bytes(len(data[at : at + count]))


def repeat_key(random, text):
    """A line of an indented JSON text once more: mostly a key that is said twice."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    lines.insert(at, lines[at] if lines[at].endswith(",") else lines[at] + ",")
    return "\n".join(lines)


def changed_json(random, tree):
    """The bytes of a file that is `tree` after some changes."""
    tree = copy.deepcopy(tree)
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        change_tree(random, tree)
    text = text_of(tree)
    kind = random.random()
    if kind < 0.1:
        return change_text(random, text)
    if kind < 0.15:
        return repeat_key(random, text).encode()
    return text.encode()


def put_no_file(random, path):
    """Puts at `path`, in place of a file, what opens and is none, or does not open or end."""
    path.unlink(missing_ok=True)
    kind = random.randrange(4)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(path)
    else:
        path.symlink_to(random.choice(["/dev/zero", "/dev/null", "/proc/self/mem", "/dev/urandom"]))
