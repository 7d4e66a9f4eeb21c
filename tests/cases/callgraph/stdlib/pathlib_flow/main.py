from pathlib import Path


class Store:
    def __init__(self, root):
        self.root = Path(root)

    def write(self, name, text):
        target = self.root
        target.write_text(text)
        return target.exists()


def read(path: Path) -> str:
    return path.read_text().strip()


store = Store("/tmp")
if store is None:
    store.write("a", "b")
