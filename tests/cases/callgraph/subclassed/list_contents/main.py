class Node:
    def go(self):
        return 1


class Nodes(list):
    def run(self):
        for node in self:
            node.go()


def fill():
    nodes = Nodes()
    nodes.append(Node())
    return nodes


fill().run()
fill()[0].go()
