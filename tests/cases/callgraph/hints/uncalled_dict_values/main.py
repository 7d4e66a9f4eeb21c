class Node:
    def visit(self):
        return 1


def walk(nodes: dict[str, Node]):
    for node in nodes.values():
        node.visit()


def walk_items(nodes: dict[str, list[Node]]) -> int:
    return sum(n.visit() for name, group in nodes.items() for n in group)


def pick(nodes: dict[str, Node], key: str):
    return nodes[key].visit()
