import weakref


class Node:
    def ping(self):
        return 1


class Child:
    def __init__(self, parent):
        self._parent = weakref.ref(parent)

    @property
    def parent(self):
        return self._parent()

    def up(self):
        return self.parent.ping()


node = Node()
Child(node).up()
alive = weakref.WeakSet()
alive.add(node)
for each in alive:
    each.ping()
