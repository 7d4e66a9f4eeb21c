from collections.abc import Callable


class Conn:
    def close(self):
        return 1


def use(connect: Callable[[str], Conn]):
    connection = connect("x")
    connection.close()
