"""Shared objects that are none, or no longer."""

from pathlib import Path

import mutate
from kind import Kind
from oracle import Case


class Plugins(Kind):
    """`list --plugin` of a plugin whose bytes were changed. One that is damaged where nothing looks
    may do as it likes in the worker, which is a process of its own; the program ends well."""

    def prepare(self):
        folder = Path(self.program).resolve().parent.parent
        found = [file
                 for part in ("lib", "plugins")
                 for file in sorted((folder / part).glob("lib*.so"))
                 if "attnbench" not in file.name]
        # A program is an ELF file, too, without what makes a plugin.
        found.append(Path(self.program).with_name("attnbench-worker").resolve())
        self.bases = [file.read_bytes() for file in found]

    def case(self, random, folder):
        file = folder / "libmine.so"
        kind = random.random()
        if kind < 0.75:
            data = bytearray(random.choice(self.bases))
            for _ in range(random.choice([1, 1, 2, 8])):
                self.change(random, data)
            file.write_bytes(data)
        elif kind < 0.9:
            file.write_bytes(
                random.choice(
                    [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"#!/bin/sh\n", b"\x1b[31m" * 100,
                     bytes(random.randrange(256) for _ in range(4096)),
                     self.bases[0][:64] + b"\xff" * 4096]
                )
            )
        else:
            mutate.put_no_file(random, file)
        command = random.choice([["list", "mechanisms"], ["describe", "softmax"]])
        name = random.choice(["", "", "new="]) + "libmine.so"
        return Case([*command, "--plugin", name], files=["libmine.so"])

    @staticmethod
    def change(random, data):
        if random.random() < 0.5:
            mutate.change_bytes(random, data)
            return
        # Headers and tables are a small part of the bytes, and the part that a loader reads.
        at = random.choice(
            [random.randrange(64), random.randrange(64, 1024), -1 - random.randrange(4096)]
        )
        if abs(at) < len(data):
            data[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
