from abc import ABC, abstractmethod
from typing import Iterator, Optional


class Leaf:
    def text(self) -> str:
        return "t"


class Tree(ABC):
    @property
    @abstractmethod
    def root(self) -> Leaf: ...

    @abstractmethod
    def find(self, key: str) -> Optional[Leaf]: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Leaf]: ...

    @abstractmethod
    def __getitem__(self, n: int) -> Leaf: ...


def show(tree: Tree):
    tree.root.text()
    leaf = tree.find("a")
    if leaf:
        leaf.text().upper()
    for each in tree:
        each.text()
    tree[0].text()
