from bases import Middle


class Leaf(Middle):
    def close(self):
        return super().close()


Leaf().close()
