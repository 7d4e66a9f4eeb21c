from __future__ import annotations


class Node:
    parent: "Node | None"

    def child(self, of: "Node", name: str = "x") -> "list[Node]":
        return [of]


def later(node: Node) -> Unknown: ...
