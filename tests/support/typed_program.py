"""A program of several files whose calls and types a type checker resolves."""

from __future__ import annotations

PROGRAM = {
    "src/shop/__init__.py": "",
    "src/shop/base.py": """\
import os
from pathlib import Path

class Base:
    def __init__(self, path: Path):
        self.path = path

    def run(self):
        return os.path.join("a", "b").upper()

    @property
    def size(self):
        return self.path.stat().st_size

class Child(Base):
    def run(self):
        return super().run()
""",
    "src/shop/use.py": """\
from shop.base import Base, Child

class Holder:
    def __init__(self, base: Base):
        self.base = base

    def __iter__(self):
        return iter([1])

    def go(self):
        é = "😀"; self.base.run()
        return é.strip(), self.base.size

def outer(path):
    def inner():
        return Child(path)
    holder = Holder(inner())
    for each in holder:
        print(each)
    unknown(each)
    return map(inner, [])
""",
    "script.py": "import shop.use as u\nu.outer('x')\n",
    "odd-name.py": "def g(): ...\ng()\n",
}
