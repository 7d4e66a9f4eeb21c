from collections import deque


class Node:
    def __init__(self, name):
        self.name = name
        self.edges = []

    def link(self, other, weight=1):
        self.edges.append(Edge(self, other, weight))
        return other

    def neighbours(self):
        return (edge.target for edge in self.edges)


class Edge:
    def __init__(self, source, target, weight):
        self.source = source
        self.target = target
        self.weight = weight

    def cost(self):
        return self.weight


def bfs(start, on_visit):
    seen, queue = {start}, deque([start])
    while queue:
        node = queue.popleft()
        on_visit(node)
        for other in node.neighbours():
            if other not in seen:
                seen.add(other)
                queue.append(other)


def cost(node):
    return sum(edge.cost() for edge in node.edges)


names = []
root = Node("a")
root.link(Node("b")).link(Node("c"))
bfs(root, lambda node: names.append(node.name))
bfs(root, cost)
