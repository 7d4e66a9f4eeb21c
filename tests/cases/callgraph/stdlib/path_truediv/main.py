from pathlib import Path


def locate(name):
    base = Path("a") / "b" / name
    base.exists()
    base.parent.is_dir()
    for child in base.glob("*"):
        child.is_file()


locate("x")
