from pathlib import Path


def present(name):
    path = Path(name)
    return path.exists()


present("x")
