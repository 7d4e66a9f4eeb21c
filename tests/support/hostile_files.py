"""Write hostile files, and the repositories that the tests of whole builds share."""

from __future__ import annotations

from pathlib import Path

from support.callgraph_score import cases
from support.folders import CASES

GOLDEN = CASES / "golden"
HOSTILE = {
    "broken.py": b"def f(:\n    g()\n",
    "python2.py": b"print f()\n",
    "refused.py": b"f()\nnonlocal x\n",
    "undecodable.py": b"x = '\xff'\n",
    "empty.py": b"",
    "umlaut.py": "def größe(): pass\r\nß = größe\r\nß()\r\n".encode(),
    "deep.py": b"x = " + b"f(" * 90 + b"1" + b")" * 90 + b"\n",
    "sum.py": b"x = " + b" + ".join(b"f()" for _ in range(2000)) + b"\n",
    "mro.py": b"class A: pass\nclass B(A): pass\nclass C(A, B): pass\n",
    "cycle.py": b"from cycle import *\nfrom cycle2 import *\nclass X(Y): pass\n",
    "cycle2.py": b"from cycle import *\nclass Y(X): pass\nY().m()\n",
    "itself.py": b"x = []\nx.append(x)\nx[0][0]()\ndef f(a=f): a(a)\nf(f)\n",
}
# Further ones, in a repository of their own.
STRANGE = {
    "undecodable.py": b"x = '\xff'\n",
    "zeros.py": b"x = 1\x00\n",
    "deep.py": b"x = " + b"(" * 150 + b"1" + b")" * 150 + b"\n",
    "deeper.py": b"x = " + b"[" * 5000 + b"]" * 5000 + b"\n",
    "future.py": b"type X[T] = list[T]\ndef f[U](u: U) -> U: return u\nclass C[V]: pass\n",
    "late.py": b"from __future__ import annotations\ndef f(x: (lambda: y)) -> [z for z in w]: ...\n",
    "markup.py": b"x = '<script>alert(1)</script>' ; y = '\\ud800' ; z = \"it's\"\n",
    "name with space.py": b"import os\n",
}


def repositories_in(folder: Path) -> dict[str, Path]:
    """Write hostile files into a folder; return them, labelled call cases and the goldens by name.

    The cases are those of imports: a repository takes Spark a quarter of a second.
    """
    for name, files in (("hostile", HOSTILE), ("strange", STRANGE)):
        (folder / name).mkdir()
        for path, content in files.items():
            (folder / name / path).write_bytes(content)
    chosen = {case.repo_id: case.folder for case in cases() if case.construct == "imports"}
    goldens = {each.name: each for each in sorted(GOLDEN.glob("[a-z]*")) if each.is_dir()}
    return {"hostile": folder / "hostile", "strange": folder / "strange", **chosen, **goldens}
